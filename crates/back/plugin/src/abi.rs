//! The border between the host and a plug-in: plain C.
//!
//! The C header of a plug-in, `include/loopwright_plugin.h`, is generated from this file, doc comments
//! and all (`BLESS=1 cargo test -p loopwright-plugin --test header`). Names in C begin with `lw_`: a
//! [`PluginTable`] is an `lw_plugin`.
//!
//! No type here has a value that is not allowed: kinds and statuses are numbers, functions may be
//! missing, so that whatever a plug-in says can be looked at before it is believed.

use std::ffi::{c_char, c_void};

/// The version of everything in this header. A plug-in of another version is refused. It changes when
/// something here changes its meaning or its place; what is only added, at the end of a structure that
/// begins with its size, does not change it.
pub const LW_ABI_VERSION: u32 = 1;

/// The form of a program: the kernel IR's text. One module, `loopwright kernel 1` in its first line.
pub const LW_FORM_KERNEL: u32 = 1;
/// The form of a program: C11 with the vector extensions of GCC and Clang, one function for each kernel.
///
/// A kernel's entry point is `void symbol(void *const *args, const lw_runtime *runtime)`, where `args` has
/// the address of each argument's memory or scalar. For results that are right to the last bit, compile with
/// `-fwrapv -fno-strict-aliasing -ffp-contract=off`, with
/// `-fno-builtin-NAME` for every name in `math`, and without `-ffast-math`.
pub const LW_FORM_C: u32 = 2;
/// The form of a program: as `LW_FORM_C`, in ISO C99 and nothing beyond it, for any C compiler. There are no
/// atomics in it. `-fwrapv` and `-fno-strict-aliasing` are not needed; what is said of contraction, `math` and
/// `-ffast-math` holds.
pub const LW_FORM_C99: u32 = 3;
/// The form of a program: its graph, `loopwright program 1` in the first line, and its schedule,
/// `loopwright schedule 1` in the first line.
pub const LW_FORM_PROGRAM: u32 = 4;

/// Needs the host's processor.
pub const LW_HARDWARE_CPU: u32 = 0;
/// Needs a graphics processor.
pub const LW_HARDWARE_GPU: u32 = 1;
/// Needs another processor.
pub const LW_HARDWARE_ACCELERATOR: u32 = 2;
/// Needs nothing, and computes nothing.
pub const LW_HARDWARE_NOTHING: u32 = 3;

/// Prefers to run on worker threads, one for each stream.
pub const LW_SCHEDULER_THREADS: u32 = 0;
/// Prefers to run inside the call that schedules it.
pub const LW_SCHEDULER_SYNC: u32 = 1;

/// A dtype: boolean, one byte of 0 or 1.
pub const LW_DTYPE_BOOL: u32 = 0;
/// A dtype: 8-bit two's complement integer.
pub const LW_DTYPE_I8: u32 = 1;
/// A dtype: 16-bit two's complement integer.
pub const LW_DTYPE_I16: u32 = 2;
/// A dtype: 32-bit two's complement integer.
pub const LW_DTYPE_I32: u32 = 3;
/// A dtype: 64-bit two's complement integer.
pub const LW_DTYPE_I64: u32 = 4;
/// A dtype: 8-bit unsigned integer.
pub const LW_DTYPE_U8: u32 = 5;
/// A dtype: 16-bit unsigned integer.
pub const LW_DTYPE_U16: u32 = 6;
/// A dtype: 32-bit unsigned integer.
pub const LW_DTYPE_U32: u32 = 7;
/// A dtype: 64-bit unsigned integer.
pub const LW_DTYPE_U64: u32 = 8;
/// A dtype: 8-bit float, 4 exponent and 3 mantissa bits, no infinities.
pub const LW_DTYPE_F8E4M3: u32 = 9;
/// A dtype: 8-bit float, 5 exponent and 2 mantissa bits.
pub const LW_DTYPE_F8E5M2: u32 = 10;
/// A dtype: IEEE binary16.
pub const LW_DTYPE_F16: u32 = 11;
/// A dtype: the upper half of a binary32.
pub const LW_DTYPE_BF16: u32 = 12;
/// A dtype: IEEE binary32.
pub const LW_DTYPE_F32: u32 = 13;
/// A dtype: IEEE binary64.
pub const LW_DTYPE_F64: u32 = 14;
/// The set of all dtypes: bit `LW_DTYPE_X` stands for dtype X.
pub const LW_DTYPES_ALL: u64 = 0x7fff;

/// A feature: atomic operations on memory.
pub const LW_FEATURE_ATOMICS: u32 = 1;
/// A feature: the work-items of a group can wait for each other.
pub const LW_FEATURE_BARRIERS: u32 = 2;
/// A feature: matrix tiles.
pub const LW_FEATURE_TILES: u32 = 4;
/// Not a feature: everything is done but computing. Results are whatever was in memory.
pub const LW_FEATURE_COMPUTES_NOTHING: u32 = 8;
/// Not a feature: kernels with structures are refused before the plug-in sees them.
pub const LW_FEATURE_NO_STRUCTS: u32 = 16;

/// A flag: all functions may be called from several threads at once. Without it the host calls one at a
/// time.
pub const LW_FLAG_THREAD_SAFE: u32 = 1;

/// An option: keep every rounding where the program has it, also inside of functions.
pub const LW_STRICT: u32 = 1;

/// An argument: memory that is only read.
pub const LW_ARGUMENT_READ: u32 = 1;
/// An argument: memory that is written, and may be read. No other argument overlaps it.
pub const LW_ARGUMENT_WRITE: u32 = 2;
/// An argument: memory that is written, and may be read. Others of this kind may overlap it.
pub const LW_ARGUMENT_SHARED: u32 = 3;
/// An argument: one scalar.
pub const LW_ARGUMENT_SCALAR: u32 = 4;

/// A status: it is done.
pub const LW_OK: u32 = 0;
/// A status: the plug-in cannot do what the program asks for. It has written what.
pub const LW_UNSUPPORTED: u32 = 1;
/// A status: it failed. The plug-in has written why.
pub const LW_FAILED: u32 = 2;

/// A status of devices' functions: there is not as much memory as was asked for.
pub const LW_OUT_OF_MEMORY: u32 = 3;
/// A status of devices' functions: the device is gone, and nothing on it can be used any more. The plug-in has
/// written why.
pub const LW_LOST: u32 = 4;

/// An argument of a launch: bytes of a device's memory.
pub const LW_LAUNCH_MEMORY: u32 = 1;
/// An argument of a launch: an integer, `LW_DTYPE_I64`, that stays as it is.
pub const LW_LAUNCH_INTEGER: u32 = 2;
/// An argument of a launch: an integer, `LW_DTYPE_I64`, that every call gives.
pub const LW_LAUNCH_STATIC: u32 = 3;
/// An argument of a launch: bytes of a device's memory that every call gives, to be read only.
pub const LW_LAUNCH_MERGE: u32 = 4;

/// An availability: it can be used on this machine.
pub const LW_AVAILABLE: u32 = 0;
/// An availability: something is missing. The plug-in has written what, and what would help.
pub const LW_MISSING: u32 = 1;
/// An availability: what it needs is there and does not work. The plug-in has written why.
pub const LW_BROKEN: u32 = 2;

/// A text: UTF-8, not terminated by a zero. `start` may be null where `length` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The first byte.
    pub start: *const c_char,
    /// How many bytes there are.
    pub length: usize,
}

/// Where a plug-in writes text to: call `write(context, text, length)`, as often as is convenient, from one
/// thread at a time, before the function that was given the writer returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// Takes some UTF-8. Never null.
    pub write:
        Option<unsafe extern "C" fn(context: *mut c_void, text: *const c_char, length: usize)>,
    /// The first argument of `write`.
    pub context: *mut c_void,
}

/// The body of a parallel loop, over the iterations `begin` to before `stop`.
pub type Task = Option<unsafe extern "C" fn(environment: *mut c_void, begin: i64, stop: i64)>;

/// Runs all iterations of a parallel loop, and returns when they are done.
pub type ParallelFor = Option<
    unsafe extern "C" fn(context: *mut c_void, count: i64, task: Task, environment: *mut c_void),
>;

/// What the host does for plug-ins. It stays where it is for as long as the process runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostTable {
    /// The host's `LW_ABI_VERSION`.
    pub abi_version: u32,
    /// Bytes of this structure. A newer host's is larger; look before you use what was added later.
    pub struct_size: u32,
    /// The first argument of `parallel_for`.
    pub context: *mut c_void,
    /// Runs a parallel loop on the host's threads: `task(environment, begin, stop)` for ranges that
    /// together are `0` to before `count`, from several threads at once. It has the type that kernels in
    /// the forms C and C99 expect.
    pub parallel_for: ParallelFor,
}

/// What kernels in the forms C and C99 are called with; the text declares it as well.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    /// The first argument of `parallel_for`.
    pub context: *mut c_void,
    /// Runs a parallel loop: the host's, or one of your own.
    pub parallel_for: ParallelFor,
    /// Work-items along each axis: the kernel's `group`.
    pub global_size: [i64; 3],
    /// Work-items of a group along each axis: the kernel's `group`.
    pub local_size: [i64; 3],
}

/// One kernel of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// What `run` will call it.
    pub name: Text,
    /// The name of its entry point, in the forms C and C99; else empty.
    pub symbol: Text,
    /// The work-items it is run with, along each axis; mostly one.
    pub group: [u32; 3],
}

/// A program to compile. It and all it points to are there until `compile` returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Bytes of this structure. A newer host's is larger.
    pub struct_size: u32,
    /// The plug-in's `form`.
    pub form: u32,
    /// The program.
    pub text: Text,
    /// The schedule, in the form `LW_FORM_PROGRAM`; else empty.
    pub schedule: Text,
    /// The kernels. In the form `LW_FORM_PROGRAM` the only one is the program itself.
    pub kernels: *const Kernel,
    /// How many there are.
    pub kernel_count: usize,
    /// The functions of the mathematics library that text in the forms C and C99 calls. A compiler must
    /// not replace them by its own idea of them.
    pub math: *const Text,
    /// How many there are.
    pub math_count: usize,
}

/// How to compile.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of this structure. A newer host's is larger.
    pub struct_size: u32,
    /// A set of options: `LW_STRICT`.
    pub flags: u32,
}

/// One argument of a kernel. For kernels there is one for each parameter, in order. In the form
/// `LW_FORM_PROGRAM` there is a scalar for each size and static, then memory for each input, state,
/// constant and output, found by name; the new value of a state goes to the state's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// `LW_ARGUMENT_READ` or another kind.
    pub kind: u32,
    /// The dtype of the scalar or of the elements; for memory of structures, 0.
    pub dtype: u32,
    /// The first byte of the memory, or of the scalar, whose lowest byte is the first, as that of
    /// elements is. Never null. Elements are aligned to their size.
    pub memory: *mut c_void,
    /// How many bytes there are.
    pub bytes: u64,
    /// The parameter's name, for messages. In the form `LW_FORM_PROGRAM` the name of the size or node;
    /// a node without one is `%3`, as in the text.
    pub name: Text,
}

/// What a plug-in has made of a program. Only the plug-in knows what is in it.
// Without `repr(C)`, which the header takes for: nobody may look inside.
pub struct Code {
    _private: [u8; 0],
}

/// What a plug-in can do. What it cannot is refused before the plug-in sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CapabilityTable {
    /// The set of dtypes that kernels may compute with: bit `LW_DTYPE_X` for dtype X. `bool` and `i64`
    /// must be among them.
    pub dtypes: u64,
    /// A set of `LW_FEATURE_X`.
    pub features: u32,
    /// Lanes of the widest vector: 1 for scalars only, `UINT32_MAX` for any.
    pub vector_lanes: u32,
    /// Bytes that the work-items of a group share; 0 for none, `UINT64_MAX` for any number.
    pub local_memory: u64,
    /// Bytes of a work-item's own arrays; 0 for no limit that is known.
    pub private_memory: u64,
    /// Bytes of the largest array; 0 for no limit that is known.
    pub max_buffer: u64,
    /// Parameters of a kernel; 0 for no limit that is known.
    pub max_params: u32,
    /// How many ops are missing.
    pub missing_op_count: u32,
    /// The names of ops that it does not have.
    pub missing_ops: *const Text,
}

/// How far the results of one op may be off.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OpAccuracy {
    /// The op's name.
    pub op: Text,
    /// Units in the last place of a correctly rounded result, in binary32 and binary64. In narrower floats
    /// it is one unit at most.
    pub ulps: u32,
}

/// What schedules are made for. All 0 is a machine of which nothing is known.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TargetTable {
    /// Bytes of a vector register; 0 where vectors do not pay.
    pub vector_bytes: u32,
    /// Vector registers.
    pub vector_registers: u32,
    /// Threads of a parallel loop; 0 for those of the host's `parallel_for`.
    pub threads: u32,
    /// Bytes of the first-level data cache; 0 if that is not known.
    pub l1_bytes: u32,
    /// Bytes of the second-level cache; 0 if that is not known.
    pub l2_bytes: u32,
}

/// A device of a plug-in. Only the plug-in knows what is in it.
pub struct Device {
    _private: [u8; 0],
}

/// Memory of a device. Only the plug-in knows what is in it.
pub struct DeviceMemory {
    _private: [u8; 0],
}

/// A kernel with its arguments, ready to be launched. Only the plug-in knows what is in it.
pub struct Launch {
    _private: [u8; 0],
}

/// What a device has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceLimits {
    /// Bytes of this structure, filled in by the host. A newer host's is larger; what you leave alone is 0.
    pub struct_size: u32,
    /// Threads that one kernel can use; 0 counts as 1.
    pub threads: u32,
    /// How many streams make good use of it; 0 counts as 1.
    pub streams: u32,
    /// Bytes of memory; 0 if that is not known.
    pub memory: u64,
}

/// One argument of a launch. There is one for each parameter of the kernel, in order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchArgument {
    /// `LW_LAUNCH_MEMORY` or another kind.
    pub kind: u32,
    /// What the kernel does with memory: `LW_ARGUMENT_READ`, `LW_ARGUMENT_WRITE` or `LW_ARGUMENT_SHARED`. 0 for
    /// integers.
    pub access: u32,
    /// The memory, for `LW_LAUNCH_MEMORY`; else null.
    pub memory: *mut DeviceMemory,
    /// Where the argument starts in the memory, in bytes. It is aligned for its elements.
    pub offset: u64,
    /// How many bytes it has, for `LW_LAUNCH_MEMORY` and `LW_LAUNCH_MERGE`.
    pub bytes: u64,
    /// The value, for `LW_LAUNCH_INTEGER`; for `LW_LAUNCH_STATIC` its place in `lw_launch_call.statics`.
    pub value: i64,
    /// The parameter's name, for messages.
    pub name: Text,
}

/// What a launch adds to the arguments that it was prepared with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchCall {
    /// Bytes of this structure. A newer host's is larger.
    pub struct_size: u32,
    /// The values of `LW_LAUNCH_STATIC`.
    pub statics: *const i64,
    /// How many there are.
    pub static_count: usize,
    /// The memory of `LW_LAUNCH_MERGE`; null if there is none.
    pub merge: *mut DeviceMemory,
    /// Where the argument starts in there, in bytes.
    pub merge_offset: u64,
}

/// The functions of a plug-in that brings devices with memory of their own. All but `copy` must be there.
///
/// What gives a status has written the reason to `error` if that is not `LW_OK`, and has left its result alone.
/// Each call does one thing to its end before it returns; the host sees to it that nothing is read while it is
/// written. Memory and launches keep working until they are given back; a device is closed after all of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceTable {
    /// Bytes of this structure, `sizeof(lw_device_table)`.
    pub struct_size: u32,
    /// How many devices there are. It may be asked again and may have changed, as when one is lost and there is
    /// another in its place.
    pub count: Option<unsafe extern "C" fn() -> u32>,
    /// Gives device number `number`, from 0. This is a handle: what takes time or may fail can wait for the
    /// first use. A device may be opened several times.
    pub open: Option<
        unsafe extern "C" fn(number: u32, device: *mut *mut Device, error: *const Writer) -> u32,
    >,
    /// Takes the handle back. Its memory and its launches have been given back before.
    pub close: Option<unsafe extern "C" fn(device: *mut Device)>,
    /// Says what it has, and describes it in one line.
    pub limits: Option<
        unsafe extern "C" fn(
            device: *mut Device,
            limits: *mut DeviceLimits,
            description: *const Writer,
        ),
    >,
    /// Allocates `bytes` bytes, all 0. `bytes` may be 0. `LW_OUT_OF_MEMORY` where there is not as much.
    pub allocate: Option<
        unsafe extern "C" fn(
            device: *mut Device,
            bytes: u64,
            memory: *mut *mut DeviceMemory,
            error: *const Writer,
        ) -> u32,
    >,
    /// Takes memory back.
    pub free: Option<unsafe extern "C" fn(memory: *mut DeviceMemory)>,
    /// Copies `bytes` bytes of the host's to the memory, from `offset` on. They lie within it.
    pub write: Option<
        unsafe extern "C" fn(
            memory: *mut DeviceMemory,
            offset: u64,
            from: *const c_void,
            bytes: u64,
            error: *const Writer,
        ) -> u32,
    >,
    /// Copies `bytes` bytes of the memory, from `offset` on, to the host.
    pub read: Option<
        unsafe extern "C" fn(
            memory: *mut DeviceMemory,
            offset: u64,
            to: *mut c_void,
            bytes: u64,
            error: *const Writer,
        ) -> u32,
    >,
    /// Copies between two pieces of memory of this plug-in, which may be of two devices; what is copied does not
    /// overlap. `LW_UNSUPPORTED`, with nothing done, where these two have no way to each other: then the host
    /// copies through its own memory, as it does where this is null.
    pub copy: Option<
        unsafe extern "C" fn(
            to: *mut DeviceMemory,
            to_offset: u64,
            from: *mut DeviceMemory,
            from_offset: u64,
            bytes: u64,
            error: *const Writer,
        ) -> u32,
    >,
    /// Prepares a kernel of this code to be launched with these arguments: loads the code where it is not
    /// loaded, and finds addresses once. The host has checked the arguments against the kernel's parameters.
    pub prepare: Option<
        unsafe extern "C" fn(
            device: *mut Device,
            code: *mut Code,
            kernel: Text,
            arguments: *const LaunchArgument,
            count: usize,
            launch: *mut *mut Launch,
            error: *const Writer,
        ) -> u32,
    >,
    /// Runs the kernel to its end. No other call of this launch is under way.
    pub launch: Option<
        unsafe extern "C" fn(
            launch: *mut Launch,
            call: *const LaunchCall,
            error: *const Writer,
        ) -> u32,
    >,
    /// Takes a launch back, before its code and the memory of its arguments.
    pub release_launch: Option<unsafe extern "C" fn(launch: *mut Launch)>,
}

/// What a plug-in is: the table that `loopwright_plugin` gives. It and all it points to stay as they are
/// for as long as the process runs; a plug-in is never unloaded.
///
/// Functions must return: no exceptions, `longjmp` or panics across them. Everything the host passes is
/// the host's, and good until the function returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PluginTable {
    /// `LW_ABI_VERSION`.
    pub abi_version: u32,
    /// Bytes of this structure, `sizeof(lw_plugin)`. What a later header adds at the end is 0 for those
    /// built with an earlier one.
    pub struct_size: u32,
    /// The name people choose it by: small letters, digits, `_` and `-`, at most 32, no other backend's.
    pub name: Text,
    /// One line about it.
    pub description: Text,
    /// The available backend with the highest priority is chosen where nobody asks for one. The
    /// interpreter has 0, the C compiler 100.
    pub priority: i32,
    /// `LW_HARDWARE_X`.
    pub hardware: u32,
    /// The form of program it wants: `LW_FORM_X`.
    pub form: u32,
    /// How its work is best run, where nobody has asked for anything else: `LW_SCHEDULER_X`.
    pub scheduler: u32,
    /// A set of `LW_FLAG_X`.
    pub flags: u32,
    /// What schedules are made for.
    pub target: TargetTable,
    /// What it can do.
    pub capabilities: CapabilityTable,
    /// Whether it can be used on this machine. If not, it writes what is missing to `reason` and what
    /// would help to `help`. Null where it always can.
    pub availability:
        Option<unsafe extern "C" fn(reason: *const Writer, help: *const Writer) -> u32>,
    /// Compiles a program and puts what it made into `*code`, which the host gives to `run` and, once,
    /// to `release`. Gives a status; if that is not `LW_OK`, it has left `*code` alone and has written the
    /// reason to `error`.
    pub compile: Option<
        unsafe extern "C" fn(
            program: *const Program,
            options: *const Options,
            code: *mut *mut Code,
            error: *const Writer,
        ) -> u32,
    >,
    /// Runs a kernel to its end. Gives a status; if that is not `LW_OK`, it has written the reason to
    /// `error`. The host has checked the arguments against the kernel's parameters. One code may be run by
    /// several threads at once if the plug-in is thread-safe. Not called, and may be null, where there is
    /// `device`.
    pub run: Option<
        unsafe extern "C" fn(
            code: *mut Code,
            kernel: Text,
            arguments: *const Argument,
            count: usize,
            error: *const Writer,
        ) -> u32,
    >,
    /// Writes the code in the plug-in's own language, for people. Null where there is nothing to show but
    /// the program's text.
    pub code_text: Option<unsafe extern "C" fn(code: *mut Code, text: *const Writer)>,
    /// Takes back what `compile` made. No `run` of it is under way.
    pub release: Option<unsafe extern "C" fn(code: *mut Code)>,
    /// By how many units in the last place the results of functions like `exp`, `sin` and `pow` may be off, but
    /// for those in `op_accuracies`. 0: results are, with `LW_STRICT`, those of the host's own functions bit
    /// for bit. Tables that end before this field say 0.
    pub math_ulps: u32,
    /// How many ops are in `op_accuracies`.
    pub op_accuracy_count: u32,
    /// Ops with an accuracy of their own.
    pub op_accuracies: *const OpAccuracy,
    /// The functions of a plug-in that brings devices with memory of their own. It takes kernels, in any of their
    /// forms; code that `compile` made is launched on its devices. Null where the plug-in works in the host's
    /// memory, with `run`.
    pub device: *const DeviceTable,
}

/// The one symbol of a plug-in, `loopwright_plugin`: says who it is. Gives null where it does not go
/// with a host of that version.
pub type Entry =
    unsafe extern "C" fn(abi_version: u32, host: *const HostTable) -> *const PluginTable;

/// The name of the symbol.
pub(crate) const ENTRY_SYMBOL: &[u8] = b"loopwright_plugin\0";
