/* Its table ends before its functions. */
#include "honest.h"

LIAR("small-struct", plugin.struct_size = 24)
