/* Its kernels give a status that is none. */
#include "honest.h"

static uint32_t run(lw_code *code, lw_text kernel, const lw_argument *arguments, size_t count, const lw_writer *error) {
    (void)code, (void)kernel, (void)arguments, (void)count, (void)error;
    return 99;
}

LIAR("garbage-run", plugin.run = run)
