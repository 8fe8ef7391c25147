/* Nothing is wrong with this one. */
#include "honest.h"

LIAR("honest", (void)0)
