/* It has the name of another. */
#include "honest.h"

LIAR("honest", (void)0)
