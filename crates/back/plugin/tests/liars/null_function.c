/* It cannot run what it compiles. */
#include "honest.h"

LIAR("null-function", plugin.run = NULL)
