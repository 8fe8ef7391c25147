/* It fails without a word. */
#include "honest.h"

static uint32_t compile(const lw_program *program, const lw_options *options, lw_code **code, const lw_writer *error) {
    (void)program, (void)options, (void)code, (void)error;
    return LW_FAILED;
}

LIAR("silent", plugin.compile = compile)
