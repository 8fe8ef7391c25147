/* It has dtypes that nobody has. */
#include "honest.h"

LIAR("garbage-dtypes", plugin.capabilities.dtypes = UINT64_MAX)
