/* Its description is not UTF-8. */
#include "honest.h"

LIAR("garbage-text", plugin.description = text("\xff\xfe"))
