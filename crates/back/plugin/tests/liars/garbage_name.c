/* Its name is another language'\''s. */
#include "honest.h"

LIAR("Gerät!", (void)0)
