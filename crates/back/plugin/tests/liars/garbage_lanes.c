/* Its vectors are nothing. */
#include "honest.h"

LIAR("garbage-lanes", plugin.capabilities.vector_lanes = 0)
