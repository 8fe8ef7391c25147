/* The border between Loopwright and a plug-in that brings a backend. A plug-in is a shared library with one
 * symbol, loopwright_plugin, declared at the end of this file.
 *
 * Generated from crates/back/plugin/src/abi.rs; do not edit. */

#ifndef LW_PLUGIN_H
#define LW_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

// The version of everything in this header. A plug-in of another version is refused. It changes when
// something here changes its meaning or its place; what is only added, at the end of a structure that
// begins with its size, does not change it.
#define LW_ABI_VERSION 1

// The form of a program: the kernel IR's text. One module, `loopwright kernel 1` in its first line.
#define LW_FORM_KERNEL 1

// The form of a program: C11 with the vector extensions of GCC and Clang, one function for each kernel.
//
// A kernel's entry point is `void symbol(void *const *args, const lw_runtime *runtime)`, where `args` has
// the address of each argument's memory or scalar. For results that are right to the last bit, compile with
// `-fwrapv -fno-strict-aliasing -ffp-contract=off`, with
// `-fno-builtin-NAME` for every name in `math`, and without `-ffast-math`.
#define LW_FORM_C 2

// The form of a program: as `LW_FORM_C`, in ISO C99 and nothing beyond it, for any C compiler. There are no
// atomics in it. `-fwrapv` and `-fno-strict-aliasing` are not needed; what is said of contraction, `math` and
// `-ffast-math` holds.
#define LW_FORM_C99 3

// The form of a program: its graph, `loopwright program 1` in the first line, and its schedule,
// `loopwright schedule 1` in the first line.
#define LW_FORM_PROGRAM 4

// Needs the host's processor.
#define LW_HARDWARE_CPU 0

// Needs a graphics processor.
#define LW_HARDWARE_GPU 1

// Needs another processor.
#define LW_HARDWARE_ACCELERATOR 2

// Needs nothing, and computes nothing.
#define LW_HARDWARE_NOTHING 3

// Prefers to run on worker threads, one for each stream.
#define LW_SCHEDULER_THREADS 0

// Prefers to run inside the call that schedules it.
#define LW_SCHEDULER_SYNC 1

// A dtype: boolean, one byte of 0 or 1.
#define LW_DTYPE_BOOL 0

// A dtype: 8-bit two's complement integer.
#define LW_DTYPE_I8 1

// A dtype: 16-bit two's complement integer.
#define LW_DTYPE_I16 2

// A dtype: 32-bit two's complement integer.
#define LW_DTYPE_I32 3

// A dtype: 64-bit two's complement integer.
#define LW_DTYPE_I64 4

// A dtype: 8-bit unsigned integer.
#define LW_DTYPE_U8 5

// A dtype: 16-bit unsigned integer.
#define LW_DTYPE_U16 6

// A dtype: 32-bit unsigned integer.
#define LW_DTYPE_U32 7

// A dtype: 64-bit unsigned integer.
#define LW_DTYPE_U64 8

// A dtype: 8-bit float, 4 exponent and 3 mantissa bits, no infinities.
#define LW_DTYPE_F8E4M3 9

// A dtype: 8-bit float, 5 exponent and 2 mantissa bits.
#define LW_DTYPE_F8E5M2 10

// A dtype: IEEE binary16.
#define LW_DTYPE_F16 11

// A dtype: the upper half of a binary32.
#define LW_DTYPE_BF16 12

// A dtype: IEEE binary32.
#define LW_DTYPE_F32 13

// A dtype: IEEE binary64.
#define LW_DTYPE_F64 14

// The set of all dtypes: bit `LW_DTYPE_X` stands for dtype X.
#define LW_DTYPES_ALL 32767

// A feature: atomic operations on memory.
#define LW_FEATURE_ATOMICS 1

// A feature: the work-items of a group can wait for each other.
#define LW_FEATURE_BARRIERS 2

// A feature: matrix tiles.
#define LW_FEATURE_TILES 4

// Not a feature: everything is done but computing. Results are whatever was in memory.
#define LW_FEATURE_COMPUTES_NOTHING 8

// Not a feature: kernels with structures are refused before the plug-in sees them.
#define LW_FEATURE_NO_STRUCTS 16

// A flag: all functions may be called from several threads at once. Without it the host calls one at a
// time.
#define LW_FLAG_THREAD_SAFE 1

// An option: keep every rounding where the program has it, also inside of functions.
#define LW_STRICT 1

// An argument: memory that is only read.
#define LW_ARGUMENT_READ 1

// An argument: memory that is written, and may be read. No other argument overlaps it.
#define LW_ARGUMENT_WRITE 2

// An argument: memory that is written, and may be read. Others of this kind may overlap it.
#define LW_ARGUMENT_SHARED 3

// An argument: one scalar.
#define LW_ARGUMENT_SCALAR 4

// A status: it is done.
#define LW_OK 0

// A status: the plug-in cannot do what the program asks for. It has written what.
#define LW_UNSUPPORTED 1

// A status: it failed. The plug-in has written why.
#define LW_FAILED 2

// A status of devices' functions: there is not as much memory as was asked for.
#define LW_OUT_OF_MEMORY 3

// A status of devices' functions: the device is gone, and nothing on it can be used any more. The plug-in has
// written why.
#define LW_LOST 4

// An argument of a launch: bytes of a device's memory.
#define LW_LAUNCH_MEMORY 1

// An argument of a launch: an integer, `LW_DTYPE_I64`, that stays as it is.
#define LW_LAUNCH_INTEGER 2

// An argument of a launch: an integer, `LW_DTYPE_I64`, that every call gives.
#define LW_LAUNCH_STATIC 3

// An argument of a launch: bytes of a device's memory that every call gives, to be read only.
#define LW_LAUNCH_MERGE 4

// An availability: it can be used on this machine.
#define LW_AVAILABLE 0

// An availability: something is missing. The plug-in has written what, and what would help.
#define LW_MISSING 1

// An availability: what it needs is there and does not work. The plug-in has written why.
#define LW_BROKEN 2

// What a plug-in has made of a program. Only the plug-in knows what is in it.
typedef struct lw_code lw_code;

// A device of a plug-in. Only the plug-in knows what is in it.
typedef struct lw_device lw_device;

// Memory of a device. Only the plug-in knows what is in it.
typedef struct lw_memory lw_memory;

// A kernel with its arguments, ready to be launched. Only the plug-in knows what is in it.
typedef struct lw_launch lw_launch;

// A text: UTF-8, not terminated by a zero. `start` may be null where `length` is 0.
typedef struct {
    // The first byte.
    const char *start;
    // How many bytes there are.
    size_t length;
} lw_text;

// Where a plug-in writes text to: call `write(context, text, length)`, as often as is convenient, from one
// thread at a time, before the function that was given the writer returns.
typedef struct {
    // Takes some UTF-8. Never null.
    void (*write)(void *context, const char *text, size_t length);
    // The first argument of `write`.
    void *context;
} lw_writer;

// The body of a parallel loop, over the iterations `begin` to before `stop`.
typedef void (*lw_task)(void *environment, int64_t begin, int64_t stop);

// Runs all iterations of a parallel loop, and returns when they are done.
typedef void (*lw_parallel_for)(void *context, int64_t count, lw_task task, void *environment);

// What the host does for plug-ins. It stays where it is for as long as the process runs.
typedef struct {
    // The host's `LW_ABI_VERSION`.
    uint32_t abi_version;
    // Bytes of this structure. A newer host's is larger; look before you use what was added later.
    uint32_t struct_size;
    // The first argument of `parallel_for`.
    void *context;
    // Runs a parallel loop on the host's threads: `task(environment, begin, stop)` for ranges that
    // together are `0` to before `count`, from several threads at once. It has the type that kernels in
    // the forms C and C99 expect.
    lw_parallel_for parallel_for;
} lw_host;

// What kernels in the forms C and C99 are called with; the text declares it as well.
typedef struct {
    // The first argument of `parallel_for`.
    void *context;
    // Runs a parallel loop: the host's, or one of your own.
    lw_parallel_for parallel_for;
    // Work-items along each axis: the kernel's `group`.
    int64_t global_size[3];
    // Work-items of a group along each axis: the kernel's `group`.
    int64_t local_size[3];
} lw_runtime;

// One kernel of a program.
typedef struct {
    // What `run` will call it.
    lw_text name;
    // The name of its entry point, in the forms C and C99; else empty.
    lw_text symbol;
    // The work-items it is run with, along each axis; mostly one.
    uint32_t group[3];
} lw_kernel;

// A program to compile. It and all it points to are there until `compile` returns.
typedef struct {
    // Bytes of this structure. A newer host's is larger.
    uint32_t struct_size;
    // The plug-in's `form`.
    uint32_t form;
    // The program.
    lw_text text;
    // The schedule, in the form `LW_FORM_PROGRAM`; else empty.
    lw_text schedule;
    // The kernels. In the form `LW_FORM_PROGRAM` the only one is the program itself.
    const lw_kernel *kernels;
    // How many there are.
    size_t kernel_count;
    // The functions of the mathematics library that text in the forms C and C99 calls. A compiler must
    // not replace them by its own idea of them.
    const lw_text *math;
    // How many there are.
    size_t math_count;
} lw_program;

// How to compile.
typedef struct {
    // Bytes of this structure. A newer host's is larger.
    uint32_t struct_size;
    // A set of options: `LW_STRICT`.
    uint32_t flags;
} lw_options;

// One argument of a kernel. For kernels there is one for each parameter, in order. In the form
// `LW_FORM_PROGRAM` there is a scalar for each size and static, then memory for each input, state,
// constant and output, found by name; the new value of a state goes to the state's memory.
typedef struct {
    // `LW_ARGUMENT_READ` or another kind.
    uint32_t kind;
    // The dtype of the scalar or of the elements; for memory of structures, 0.
    uint32_t dtype;
    // The first byte of the memory, or of the scalar, whose lowest byte is the first, as that of
    // elements is. Never null. Elements are aligned to their size.
    void *memory;
    // How many bytes there are.
    uint64_t bytes;
    // The parameter's name, for messages. In the form `LW_FORM_PROGRAM` the name of the size or node;
    // a node without one is `%3`, as in the text.
    lw_text name;
} lw_argument;

// What a plug-in can do. What it cannot is refused before the plug-in sees it.
typedef struct {
    // The set of dtypes that kernels may compute with: bit `LW_DTYPE_X` for dtype X. `bool` and `i64`
    // must be among them.
    uint64_t dtypes;
    // A set of `LW_FEATURE_X`.
    uint32_t features;
    // Lanes of the widest vector: 1 for scalars only, `UINT32_MAX` for any.
    uint32_t vector_lanes;
    // Bytes that the work-items of a group share; 0 for none, `UINT64_MAX` for any number.
    uint64_t local_memory;
    // Bytes of a work-item's own arrays; 0 for no limit that is known.
    uint64_t private_memory;
    // Bytes of the largest array; 0 for no limit that is known.
    uint64_t max_buffer;
    // Parameters of a kernel; 0 for no limit that is known.
    uint32_t max_params;
    // How many ops are missing.
    uint32_t missing_op_count;
    // The names of ops that it does not have.
    const lw_text *missing_ops;
} lw_capabilities;

// How far the results of one op may be off.
typedef struct {
    // The op's name.
    lw_text op;
    // Units in the last place of a correctly rounded result, in binary32 and binary64. In narrower floats
    // it is one unit at most.
    uint32_t ulps;
} lw_op_accuracy;

// What a device has.
typedef struct {
    // Bytes of this structure, filled in by the host. A newer host's is larger; what you leave alone is 0.
    uint32_t struct_size;
    // Threads that one kernel can use; 0 counts as 1.
    uint32_t threads;
    // How many streams make good use of it; 0 counts as 1.
    uint32_t streams;
    // Bytes of memory; 0 if that is not known.
    uint64_t memory;
} lw_device_limits;

// One argument of a launch. There is one for each parameter of the kernel, in order.
typedef struct {
    // `LW_LAUNCH_MEMORY` or another kind.
    uint32_t kind;
    // What the kernel does with memory: `LW_ARGUMENT_READ`, `LW_ARGUMENT_WRITE` or `LW_ARGUMENT_SHARED`. 0 for
    // integers.
    uint32_t access;
    // The memory, for `LW_LAUNCH_MEMORY`; else null.
    lw_memory *memory;
    // Where the argument starts in the memory, in bytes. It is aligned for its elements.
    uint64_t offset;
    // How many bytes it has, for `LW_LAUNCH_MEMORY` and `LW_LAUNCH_MERGE`.
    uint64_t bytes;
    // The value, for `LW_LAUNCH_INTEGER`; for `LW_LAUNCH_STATIC` its place in `lw_launch_call.statics`.
    int64_t value;
    // The parameter's name, for messages.
    lw_text name;
} lw_launch_argument;

// What a launch adds to the arguments that it was prepared with.
typedef struct {
    // Bytes of this structure. A newer host's is larger.
    uint32_t struct_size;
    // The values of `LW_LAUNCH_STATIC`.
    const int64_t *statics;
    // How many there are.
    size_t static_count;
    // The memory of `LW_LAUNCH_MERGE`; null if there is none.
    lw_memory *merge;
    // Where the argument starts in there, in bytes.
    uint64_t merge_offset;
} lw_launch_call;

// The functions of a plug-in that brings devices with memory of their own. All but `copy` must be there.
//
// What gives a status has written the reason to `error` if that is not `LW_OK`, and has left its result alone.
// Each call does one thing to its end before it returns; the host sees to it that nothing is read while it is
// written. Memory and launches keep working until they are given back; a device is closed after all of them.
typedef struct {
    // Bytes of this structure, `sizeof(lw_device_table)`.
    uint32_t struct_size;
    // How many devices there are. It may be asked again and may have changed, as when one is lost and there is
    // another in its place.
    uint32_t (*count)(void);
    // Gives device number `number`, from 0. This is a handle: what takes time or may fail can wait for the
    // first use. A device may be opened several times.
    uint32_t (*open)(uint32_t number, lw_device **device, const lw_writer *error);
    // Takes the handle back. Its memory and its launches have been given back before.
    void (*close)(lw_device *device);
    // Says what it has, and describes it in one line.
    void (*limits)(lw_device *device, lw_device_limits *limits, const lw_writer *description);
    // Allocates `bytes` bytes, all 0. `bytes` may be 0. `LW_OUT_OF_MEMORY` where there is not as much.
    uint32_t (*allocate)(lw_device *device,
                         uint64_t bytes,
                         lw_memory **memory,
                         const lw_writer *error);
    // Takes memory back.
    void (*free)(lw_memory *memory);
    // Copies `bytes` bytes of the host's to the memory, from `offset` on. They lie within it.
    uint32_t (*write)(lw_memory *memory,
                      uint64_t offset,
                      const void *from,
                      uint64_t bytes,
                      const lw_writer *error);
    // Copies `bytes` bytes of the memory, from `offset` on, to the host.
    uint32_t (*read)(lw_memory *memory,
                     uint64_t offset,
                     void *to,
                     uint64_t bytes,
                     const lw_writer *error);
    // Copies between two pieces of memory of this plug-in, which may be of two devices; what is copied does not
    // overlap. `LW_UNSUPPORTED`, with nothing done, where these two have no way to each other: then the host
    // copies through its own memory, as it does where this is null.
    uint32_t (*copy)(lw_memory *to,
                     uint64_t to_offset,
                     lw_memory *from,
                     uint64_t from_offset,
                     uint64_t bytes,
                     const lw_writer *error);
    // Prepares a kernel of this code to be launched with these arguments: loads the code where it is not
    // loaded, and finds addresses once. The host has checked the arguments against the kernel's parameters.
    uint32_t (*prepare)(lw_device *device,
                        lw_code *code,
                        lw_text kernel,
                        const lw_launch_argument *arguments,
                        size_t count,
                        lw_launch **launch,
                        const lw_writer *error);
    // Runs the kernel to its end. No other call of this launch is under way.
    uint32_t (*launch)(lw_launch *launch, const lw_launch_call *call, const lw_writer *error);
    // Takes a launch back, before its code and the memory of its arguments.
    void (*release_launch)(lw_launch *launch);
} lw_device_table;

// What schedules are made for. All 0 is a machine of which nothing is known.
typedef struct {
    // Bytes of a vector register; 0 where vectors do not pay.
    uint32_t vector_bytes;
    // Vector registers.
    uint32_t vector_registers;
    // Threads of a parallel loop; 0 for those of the host's `parallel_for`.
    uint32_t threads;
    // Bytes of the first-level data cache; 0 if that is not known.
    uint32_t l1_bytes;
    // Bytes of the second-level cache; 0 if that is not known.
    uint32_t l2_bytes;
} lw_target;

// What a plug-in is: the table that `loopwright_plugin` gives. It and all it points to stay as they are
// for as long as the process runs; a plug-in is never unloaded.
//
// Functions must return: no exceptions, `longjmp` or panics across them. Everything the host passes is
// the host's, and good until the function returns.
typedef struct {
    // `LW_ABI_VERSION`.
    uint32_t abi_version;
    // Bytes of this structure, `sizeof(lw_plugin)`. What a later header adds at the end is 0 for those
    // built with an earlier one.
    uint32_t struct_size;
    // The name people choose it by: small letters, digits, `_` and `-`, at most 32, no other backend's.
    lw_text name;
    // One line about it.
    lw_text description;
    // The available backend with the highest priority is chosen where nobody asks for one. The
    // interpreter has 0, the C compiler 100.
    int32_t priority;
    // `LW_HARDWARE_X`.
    uint32_t hardware;
    // The form of program it wants: `LW_FORM_X`.
    uint32_t form;
    // How its work is best run, where nobody has asked for anything else: `LW_SCHEDULER_X`.
    uint32_t scheduler;
    // A set of `LW_FLAG_X`.
    uint32_t flags;
    // What schedules are made for.
    lw_target target;
    // What it can do.
    lw_capabilities capabilities;
    // Whether it can be used on this machine. If not, it writes what is missing to `reason` and what
    // would help to `help`. Null where it always can.
    uint32_t (*availability)(const lw_writer *reason, const lw_writer *help);
    // Compiles a program and puts what it made into `*code`, which the host gives to `run` and, once,
    // to `release`. Gives a status; if that is not `LW_OK`, it has left `*code` alone and has written the
    // reason to `error`.
    uint32_t (*compile)(const lw_program *program,
                        const lw_options *options,
                        lw_code **code,
                        const lw_writer *error);
    // Runs a kernel to its end. Gives a status; if that is not `LW_OK`, it has written the reason to
    // `error`. The host has checked the arguments against the kernel's parameters. One code may be run by
    // several threads at once if the plug-in is thread-safe. Not called, and may be null, where there is
    // `device`.
    uint32_t (*run)(lw_code *code,
                    lw_text kernel,
                    const lw_argument *arguments,
                    size_t count,
                    const lw_writer *error);
    // Writes the code in the plug-in's own language, for people. Null where there is nothing to show but
    // the program's text.
    void (*code_text)(lw_code *code, const lw_writer *text);
    // Takes back what `compile` made. No `run` of it is under way.
    void (*release)(lw_code *code);
    // By how many units in the last place the results of functions like `exp`, `sin` and `pow` may be off, but
    // for those in `op_accuracies`. 0: results are, with `LW_STRICT`, those of the host's own functions bit
    // for bit. Tables that end before this field say 0.
    uint32_t math_ulps;
    // How many ops are in `op_accuracies`.
    uint32_t op_accuracy_count;
    // Ops with an accuracy of their own.
    const lw_op_accuracy *op_accuracies;
    // The functions of a plug-in that brings devices with memory of their own. It takes kernels, in any of their
    // forms; code that `compile` made is launched on its devices. Null where the plug-in works in the host's
    // memory, with `run`.
    const lw_device_table *device;
} lw_plugin;

// The one symbol of a plug-in, `loopwright_plugin`: says who it is. Gives null where it does not go
// with a host of that version.
typedef const lw_plugin *(*lw_entry)(uint32_t abi_version, const lw_host *host);

#if defined(_WIN32)
#define LW_EXPORT __declspec(dllexport)
#else
#define LW_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The one symbol of a plug-in: says who it is. Gives null where it does not go with a host of that version.
LW_EXPORT const lw_plugin *loopwright_plugin(uint32_t abi_version, const lw_host *host);

#ifdef __cplusplus
}
#endif

#endif
