/* It has more memory than the world. */
#include "honest.h"

LIAR("garbage-sizes", plugin.capabilities.max_buffer = UINT64_MAX)
