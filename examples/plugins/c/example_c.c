/* A Loopwright plug-in in C: a backend that has the machine's C compiler compile kernels.
 *
 * It asks for programs as C99 text, writes the text to a private directory, runs `cc` on it, loads the library
 * that comes out, and calls the kernels in it. Parallel loops run serially, which is allowed.
 *
 * Nothing here is shared between calls, so all functions may be called from several threads at once. */

#define _POSIX_C_SOURCE 200809L

#include "loopwright_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- Words to the host ---- */

static void tell(const lw_writer *writer, const char *text, size_t length) {
    if (writer != NULL && writer->write != NULL) {
        writer->write(writer->context, text, length);
    }
}

static void tell_text(const lw_writer *writer, const char *text) {
    tell(writer, text, strlen(text));
}

/* What did not work, on what, and why, if that is known. */
static void tell_failure(const lw_writer *writer, const char *what, const char *path, const char *why) {
    tell_text(writer, what);
    if (path != NULL) {
        tell_text(writer, " ");
        tell_text(writer, path);
    }
    if (why != NULL) {
        tell_text(writer, ": ");
        tell_text(writer, why);
    }
}

/* ---- Compiled code ---- */

typedef void (*entry_point)(void *const *arguments, const lw_runtime *runtime);

typedef struct kernel {
    char *name; /* Not terminated; `name_length` bytes. */
    size_t name_length;
    uint32_t group[3];
    entry_point entry;
} kernel;

struct lw_code {
    void *library;
    kernel *kernels;
    size_t kernel_count;
    char *source;
    size_t source_length;
};

/* A copy with a zero behind it, or null where there is no memory. */
static char *copy_text(lw_text text) {
    char *copy = malloc(text.length + 1);
    if (copy != NULL) {
        if (text.length > 0) {
            memcpy(copy, text.start, text.length);
        }
        copy[text.length] = '\0';
    }
    return copy;
}

static void release(lw_code *code) {
    if (code == NULL) {
        return;
    }
    if (code->library != NULL) {
        dlclose(code->library);
    }
    for (size_t at = 0; code->kernels != NULL && at < code->kernel_count; at++) {
        free(code->kernels[at].name);
    }
    free(code->kernels);
    free(code->source);
    free(code);
}

/* ---- The private directory ---- */

typedef struct workplace {
    char directory[PATH_MAX];
    char source[PATH_MAX + 16];
    char library[PATH_MAX + 16];
    char log[PATH_MAX + 16];
} workplace;

static bool open_workplace(workplace *place, const lw_writer *error) {
    const char *shared = getenv("TMPDIR");
    if (shared == NULL || shared[0] != '/') {
        shared = "/tmp";
    }
    int length = snprintf(place->directory, sizeof place->directory, "%s/loopwright-example-c-XXXXXX", shared);
    if (length < 0 || (size_t)length >= sizeof place->directory) {
        tell_text(error, "the name of the directory for temporary files is too long");
        return false;
    }
    /* Made for this user alone. */
    if (mkdtemp(place->directory) == NULL) {
        tell_failure(error, "cannot make the directory", place->directory, strerror(errno));
        return false;
    }
    snprintf(place->source, sizeof place->source, "%s/module.c", place->directory);
    snprintf(place->library, sizeof place->library, "%s/module.so", place->directory);
    snprintf(place->log, sizeof place->log, "%s/log", place->directory);
    return true;
}

/* What is loaded stays loaded when its file is gone. There is nobody to tell of what cannot be removed. */
static void clear_workplace(const workplace *place) {
    unlink(place->source);
    unlink(place->library);
    unlink(place->log);
    rmdir(place->directory);
}

static bool write_file(const char *path, lw_text text, const lw_writer *error) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        tell_failure(error, "cannot write", path, strerror(errno));
        return false;
    }
    size_t done = 0;
    while (done < text.length) {
        ssize_t written = write(file, text.start + done, text.length - done);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            tell_failure(error, "cannot write", path, strerror(errno));
            close(file);
            return false;
        }
        done += (size_t)written;
    }
    if (close(file) != 0) {
        tell_failure(error, "cannot write", path, strerror(errno));
        return false;
    }
    return true;
}

/* What the compiler said. */
static void tell_log(const char *path, const lw_writer *error) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return;
    }
    char bytes[4096];
    for (;;) {
        ssize_t got = read(file, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        tell(error, bytes, (size_t)got);
    }
    close(file);
}

/* ---- The compiler ---- */

/* None of them lets the compiler change a value. */
static const char *const FLAGS[] = {
    "-O1",
    "-std=c99",
    "-fPIC",
    "-shared",
    "-w",
};

enum { FLAG_COUNT = sizeof FLAGS / sizeof FLAGS[0] };

/* Runs `cc` to its end, without a shell. Gives whether it started and succeeded. */
static bool run_compiler(char *const *command, const char *log, const lw_writer *error) {
    posix_spawn_file_actions_t files;
    int failure = posix_spawn_file_actions_init(&files);
    if (failure != 0) {
        tell_failure(error, "cannot start", command[0], strerror(failure));
        return false;
    }
    failure = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (failure == 0) {
        failure = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_EXCL,
                                                   S_IRUSR | S_IWUSR);
    }
    if (failure == 0) {
        failure = posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    }
    pid_t process = 0;
    if (failure == 0) {
        failure = posix_spawnp(&process, command[0], &files, NULL, command, environ);
    }
    posix_spawn_file_actions_destroy(&files);
    if (failure != 0) {
        tell_failure(error, "cannot start", command[0], strerror(failure));
        return false;
    }
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) {
            tell_failure(error, "lost sight of", command[0], strerror(errno));
            return false;
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return true;
    }
    tell_failure(error, command[0], "does not compile the kernels", NULL);
    tell_text(error, ":\n");
    tell_log(log, error);
    return false;
}

static bool compile_source(const workplace *place, const lw_program *program, bool strict, const lw_writer *error) {
    static const char NO_BUILTIN[] = "-fno-builtin-";
    /* cc, the flags, contraction, one for each function, -o LIBRARY SOURCE -lm, and the null at the end. */
    char **command = calloc(1 + FLAG_COUNT + 1 + program->math_count + 4 + 1, sizeof *command);
    /* The ones that are made here, each with its name behind. */
    char **made = calloc(program->math_count + 1, sizeof *made);
    bool done = false;
    size_t words = 0;
    if (command == NULL || made == NULL) {
        tell_text(error, "there is no memory for the compiler's arguments");
        goto end;
    }
    command[words++] = "cc";
    for (size_t at = 0; at < FLAG_COUNT; at++) {
        command[words++] = (char *)FLAGS[at];
    }
    command[words++] = strict ? "-ffp-contract=off" : "-ffp-contract=fast";
    for (size_t at = 0; at < program->math_count; at++) {
        lw_text name = program->math[at];
        made[at] = malloc(sizeof NO_BUILTIN + name.length);
        if (made[at] == NULL) {
            tell_text(error, "there is no memory for the compiler's arguments");
            goto end;
        }
        memcpy(made[at], NO_BUILTIN, sizeof NO_BUILTIN - 1);
        memcpy(made[at] + sizeof NO_BUILTIN - 1, name.start, name.length);
        made[at][sizeof NO_BUILTIN - 1 + name.length] = '\0';
        command[words++] = made[at];
    }
    command[words++] = "-o";
    command[words++] = (char *)place->library;
    command[words++] = (char *)place->source;
    command[words++] = "-lm";
    done = run_compiler(command, place->log, error);
end:
    for (size_t at = 0; made != NULL && at < program->math_count; at++) {
        free(made[at]);
    }
    free(made);
    free(command);
    return done;
}

/* ---- Loading ---- */

static bool find_kernels(lw_code *code, const lw_program *program, const lw_writer *error) {
    code->kernels = calloc(program->kernel_count + 1, sizeof *code->kernels);
    if (code->kernels == NULL) {
        tell_text(error, "there is no memory for the list of kernels");
        return false;
    }
    code->kernel_count = program->kernel_count;
    for (size_t at = 0; at < program->kernel_count; at++) {
        const lw_kernel *given = &program->kernels[at];
        kernel *found = &code->kernels[at];
        char *symbol = copy_text(given->symbol);
        found->name = copy_text(given->name);
        found->name_length = given->name.length;
        memcpy(found->group, given->group, sizeof found->group);
        if (symbol == NULL || found->name == NULL) {
            tell_text(error, "there is no memory for the list of kernels");
            free(symbol);
            return false;
        }
        void *address = dlsym(code->library, symbol);
        if (address == NULL) {
            tell_failure(error, "the compiled module has no function", symbol, NULL);
            free(symbol);
            return false;
        }
        free(symbol);
        /* C has no cast between the two; POSIX says that they are the same size. */
        memcpy(&found->entry, &address, sizeof address);
    }
    return true;
}

static uint32_t compile(const lw_program *program, const lw_options *options, lw_code **code, const lw_writer *error) {
    if (program->form != LW_FORM_C99) {
        tell_text(error, "it takes programs as C99");
        return LW_UNSUPPORTED;
    }
    lw_code *made = calloc(1, sizeof *made);
    if (made == NULL) {
        tell_text(error, "there is no memory for the code");
        return LW_FAILED;
    }
    made->source = copy_text(program->text);
    made->source_length = program->text.length;
    if (made->source == NULL) {
        tell_text(error, "there is no memory for the source");
        release(made);
        return LW_FAILED;
    }
    workplace place;
    if (!open_workplace(&place, error)) {
        release(made);
        return LW_FAILED;
    }
    bool strict = (options->flags & LW_STRICT) != 0;
    bool compiled = write_file(place.source, program->text, error) && compile_source(&place, program, strict, error);
    if (compiled) {
        made->library = dlopen(place.library, RTLD_NOW | RTLD_LOCAL);
        if (made->library == NULL) {
            tell_failure(error, "cannot load what was compiled", NULL, dlerror());
        }
    }
    clear_workplace(&place);
    if (made->library == NULL || !find_kernels(made, program, error)) {
        release(made);
        return LW_FAILED;
    }
    *code = made;
    return LW_OK;
}

/* ---- Running ---- */

/* All iterations, one after the other. */
static void serial_for(void *context, int64_t count, lw_task task, void *environment) {
    (void)context;
    if (count > 0) {
        task(environment, 0, count);
    }
}

enum { FEW = 32 };

static uint32_t run(lw_code *code, lw_text name, const lw_argument *arguments, size_t count, const lw_writer *error) {
    const kernel *found = NULL;
    for (size_t at = 0; at < code->kernel_count && found == NULL; at++) {
        const kernel *one = &code->kernels[at];
        if (one->name_length == name.length && memcmp(one->name, name.start, name.length) == 0) {
            found = one;
        }
    }
    if (found == NULL) {
        tell_text(error, "the module has no kernel of that name");
        return LW_FAILED;
    }
    /* A kernel is given the address of every argument's memory, or of the scalar itself. */
    void *few[FEW];
    void **addresses = few;
    if (count > FEW) {
        addresses = calloc(count, sizeof *addresses);
        if (addresses == NULL) {
            tell_text(error, "there is no memory for the arguments");
            return LW_FAILED;
        }
    }
    for (size_t at = 0; at < count; at++) {
        addresses[at] = arguments[at].memory;
    }
    lw_runtime runtime;
    runtime.context = NULL;
    runtime.parallel_for = serial_for;
    for (int axis = 0; axis < 3; axis++) {
        runtime.global_size[axis] = found->group[axis];
        runtime.local_size[axis] = found->group[axis];
    }
    found->entry(addresses, &runtime);
    if (addresses != few) {
        free(addresses);
    }
    return LW_OK;
}

static void code_text(lw_code *code, const lw_writer *text) {
    tell(text, code->source, code->source_length);
}

/* ---- Who we are ---- */

/* Whether there is a program of that name in a directory of PATH. */
static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        int written = snprintf(file, sizeof file, "%.*s/%s", (int)length, path, program);
        if (length > 0 && written > 0 && (size_t)written < sizeof file && access(file, X_OK) == 0) {
            return true;
        }
        path += length;
        if (*path == ':') {
            path++;
        }
    }
    return false;
}

static uint32_t availability(const lw_writer *reason, const lw_writer *help) {
    if (in_path("cc")) {
        return LW_AVAILABLE;
    }
    tell_text(reason, "there is no C compiler: no `cc` in PATH");
    tell_text(help, "install one, or add its directory to PATH");
    return LW_MISSING;
}

#define TEXT(literal) {literal, sizeof literal - 1}

static const lw_plugin PLUGIN = {
    .abi_version = LW_ABI_VERSION,
    .struct_size = sizeof(lw_plugin),
    .name = TEXT("example-c"),
    .description = TEXT("The C compiler as a plug-in in C"),
    .priority = -10,
    .hardware = LW_HARDWARE_CPU,
    .form = LW_FORM_C99,
    .scheduler = LW_SCHEDULER_THREADS,
    .flags = LW_FLAG_THREAD_SAFE,
    .target = {.threads = 1},
    .capabilities =
        {
            .dtypes = LW_DTYPES_ALL,
            .vector_lanes = UINT32_MAX,
        },
    .availability = availability,
    .compile = compile,
    .run = run,
    .code_text = code_text,
    .release = release,
};

const lw_plugin *loopwright_plugin(uint32_t abi_version, const lw_host *host) {
    (void)host;
    return abi_version == LW_ABI_VERSION ? &PLUGIN : NULL;
}
