/* Asked whether it can be used, it says something else. */
#include "honest.h"

static uint32_t availability(const lw_writer *reason, const lw_writer *help) {
    (void)reason, (void)help;
    return 42;
}

LIAR("garbage-availability", plugin.availability = availability)
