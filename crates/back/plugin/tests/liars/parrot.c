/* Not a liar: it repeats what it is given. Built once for each form. */
#include "honest.h"

#ifndef FORM
#define FORM LW_FORM_KERNEL
#endif

static void repeat(const lw_writer *error, const char *what, lw_text said) {
    say(error, what);
    say(error, "<");
    error->write(error->context, said.start, said.length);
    say(error, "> ");
}

static uint32_t compile(const lw_program *program, const lw_options *options, lw_code **code, const lw_writer *error) {
    (void)code;
    if (program->struct_size < sizeof *program || options->struct_size < sizeof *options || program->form != FORM) {
        say(error, "this is not what the header says");
        return LW_FAILED;
    }
    repeat(error, "text", program->text);
    repeat(error, "schedule", program->schedule);
    for (size_t at = 0; at < program->kernel_count; at++) {
        repeat(error, "kernel", program->kernels[at].name);
        repeat(error, "symbol", program->kernels[at].symbol);
    }
    for (size_t at = 0; at < program->math_count; at++) {
        repeat(error, "math", program->math[at]);
    }
    say(error, (options->flags & LW_STRICT) != 0 ? "strict" : "not strict");
    return LW_UNSUPPORTED;
}

#define NAME_OF(form) "parrot-" #form
#define NAME(form) NAME_OF(form)

LIAR(NAME(FORM), (plugin.form = FORM, plugin.compile = compile))
