/* It was built with a header of another version. */
#include "honest.h"

LIAR("wrong-version", plugin.abi_version = 77)
