/* Its compiler gives a status that is none. */
#include "honest.h"

static uint32_t compile(const lw_program *program, const lw_options *options, lw_code **code, const lw_writer *error) {
    (void)program, (void)options, (void)code;
    say(error, "all is well");
    return 77;
}

LIAR("garbage-compile", plugin.compile = compile)
