/* A plug-in that keeps its word, and a way to have it break it in one place. It compiles everything to
 * nothing, and says so when it is run. */

#include "loopwright_plugin.h"

#include <string.h>

static inline lw_text text(const char *of) {
    lw_text made = {of, strlen(of)};
    return made;
}

static inline void say(const lw_writer *writer, const char *what) {
    writer->write(writer->context, what, strlen(what));
}

struct lw_code {
    int nothing;
};

static struct lw_code nothing;

static inline uint32_t honest_compile(const lw_program *program, const lw_options *options, lw_code **code,
                                      const lw_writer *error) {
    (void)program, (void)options, (void)error;
    *code = &nothing;
    return LW_OK;
}

static inline uint32_t honest_run(lw_code *code, lw_text kernel, const lw_argument *arguments, size_t count,
                                  const lw_writer *error) {
    (void)code, (void)kernel, (void)arguments, (void)count;
    say(error, "there is nothing to run");
    return LW_FAILED;
}

static inline void honest_release(lw_code *code) {
    (void)code;
}

static inline lw_plugin honest(const char *name) {
    lw_plugin made = {0};
    made.abi_version = LW_ABI_VERSION;
    made.struct_size = sizeof made;
    made.name = text(name);
    made.description = text("for tests");
    made.form = LW_FORM_KERNEL;
    made.capabilities.dtypes = LW_DTYPES_ALL;
    made.capabilities.vector_lanes = 16;
    made.capabilities.features = LW_FEATURE_ATOMICS;
    made.compile = honest_compile;
    made.run = honest_run;
    made.release = honest_release;
    return made;
}

/* The plug-in of this name, with one thing changed. */
#define LIAR(name_, lie)                                                                    \
    const lw_plugin *loopwright_plugin(uint32_t abi_version, const lw_host *host) {         \
        static lw_plugin plugin;                                                            \
        (void)abi_version, (void)host;                                                      \
        plugin = honest(name_);                                                             \
        lie;                                                                                \
        return &plugin;                                                                     \
    }
