/* Not a liar: it does not say that it can be called from several threads at once, and complains if it is. */
#include "honest.h"

#include <sched.h>

static int inside;

static uint32_t run(lw_code *code, lw_text kernel, const lw_argument *arguments, size_t count, const lw_writer *error) {
    (void)code, (void)kernel, (void)arguments, (void)count;
    uint32_t status = LW_OK;
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST) != 0) {
        say(error, "somebody else is here");
        status = LW_FAILED;
    }
    for (int round = 0; round < 100; round++) {
        sched_yield();
    }
    __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    return status;
}

LIAR("one-at-a-time", plugin.run = run)
