/* Its errors are not UTF-8. */
#include "honest.h"

static uint32_t run(lw_code *code, lw_text kernel, const lw_argument *arguments, size_t count, const lw_writer *error) {
    (void)code, (void)kernel, (void)arguments, (void)count;
    say(error, "out of \xff\xfe");
    return LW_FAILED;
}

LIAR("garbage-error", plugin.run = run)
