//! Reading what a plug-in says of itself, without believing any of it.

use crate::abi::{
    self, CapabilityTable, DeviceTable, LW_ABI_VERSION, LW_DTYPE_BOOL, LW_DTYPE_I64, LW_DTYPES_ALL,
    LW_FEATURE_ATOMICS, LW_FEATURE_BARRIERS, LW_FEATURE_COMPUTES_NOTHING, LW_FEATURE_NO_STRUCTS,
    LW_FEATURE_TILES, LW_FLAG_THREAD_SAFE, LW_FORM_C, LW_FORM_C99, LW_FORM_KERNEL, LW_FORM_PROGRAM,
    LW_HARDWARE_CPU, LW_SCHEDULER_SYNC, LW_SCHEDULER_THREADS, PluginTable, TargetTable, Text,
};
use crate::error::PluginError;
use loopwright_backend::{Capabilities, Hardware, MathAccuracy, Scheduler, Target};
use loopwright_ops::{DType, Op};
use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::path::Path;

/// The smallest table: that of the first header of this version. When something is added at the end of
/// [`PluginTable`], this stays what it is.
const SMALLEST: usize = offset_of!(PluginTable, math_ulps);

/// The same of the table of devices: when something is added to [`DeviceTable`], what a shorter one lacks has to be
/// filled with zeros as in [`read`].
const SMALLEST_OF_DEVICES: usize = size_of::<DeviceTable>();

/// A larger table is no table.
const LARGEST: usize = 64 << 10;

/// Bytes of the longest name.
const LONGEST_NAME: usize = 32;

/// Bytes of the longest description.
const LONGEST_DESCRIPTION: usize = 1000;

/// No memory is larger than this: 64 pebibytes.
const MOST_BYTES: u64 = 1 << 56;

/// A function that is further off is none.
const MOST_ULPS: u32 = 1 << 20;

/// Vectors, registers, threads, parameters: nothing has more of them.
const MOST_COUNT: u32 = 1 << 16;

/// The form of program that a plug-in takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Kernel,
    C,
    C99,
    Program,
}

/// A plug-in's table after it was checked.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) priority: i32,
    pub(crate) form: Form,
    pub(crate) hardware: Hardware,
    pub(crate) scheduler: Scheduler,
    pub(crate) thread_safe: bool,
    pub(crate) target: Target,
    /// Those of devices, where it brings any.
    pub(crate) device: Option<DeviceFunctions>,
    /// Whether the target's threads are the host's.
    pub(crate) host_threads: bool,
    pub(crate) capabilities: Capabilities,
    pub(crate) functions: Functions,
}

/// The functions of a plug-in that are there for sure, and those that may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) availability:
        Option<unsafe extern "C" fn(*const abi::Writer, *const abi::Writer) -> u32>,
    pub(crate) compile: unsafe extern "C" fn(
        *const abi::Program,
        *const abi::Options,
        *mut *mut abi::Code,
        *const abi::Writer,
    ) -> u32,
    /// There where there are no devices.
    pub(crate) run: Option<
        unsafe extern "C" fn(
            *mut abi::Code,
            Text,
            *const abi::Argument,
            usize,
            *const abi::Writer,
        ) -> u32,
    >,
    pub(crate) code_text: Option<unsafe extern "C" fn(*mut abi::Code, *const abi::Writer)>,
    pub(crate) release: unsafe extern "C" fn(*mut abi::Code),
}

/// The functions of devices. All but `copy` are there for sure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceFunctions {
    pub(crate) count: unsafe extern "C" fn() -> u32,
    pub(crate) open: unsafe extern "C" fn(u32, *mut *mut abi::Device, *const abi::Writer) -> u32,
    pub(crate) close: unsafe extern "C" fn(*mut abi::Device),
    pub(crate) limits:
        unsafe extern "C" fn(*mut abi::Device, *mut abi::DeviceLimits, *const abi::Writer),
    pub(crate) allocate: unsafe extern "C" fn(
        *mut abi::Device,
        u64,
        *mut *mut abi::DeviceMemory,
        *const abi::Writer,
    ) -> u32,
    pub(crate) free: unsafe extern "C" fn(*mut abi::DeviceMemory),
    pub(crate) write: unsafe extern "C" fn(
        *mut abi::DeviceMemory,
        u64,
        *const c_void,
        u64,
        *const abi::Writer,
    ) -> u32,
    pub(crate) read: unsafe extern "C" fn(
        *mut abi::DeviceMemory,
        u64,
        *mut c_void,
        u64,
        *const abi::Writer,
    ) -> u32,
    pub(crate) copy: Option<
        unsafe extern "C" fn(
            *mut abi::DeviceMemory,
            u64,
            *mut abi::DeviceMemory,
            u64,
            u64,
            *const abi::Writer,
        ) -> u32,
    >,
    pub(crate) prepare: unsafe extern "C" fn(
        *mut abi::Device,
        *mut abi::Code,
        Text,
        *const abi::LaunchArgument,
        usize,
        *mut *mut abi::Launch,
        *const abi::Writer,
    ) -> u32,
    pub(crate) launch:
        unsafe extern "C" fn(*mut abi::Launch, *const abi::LaunchCall, *const abi::Writer) -> u32,
    pub(crate) release_launch: unsafe extern "C" fn(*mut abi::Launch),
}

/// Reads and checks a plug-in's table.
///
/// # Safety
/// `table` is null, or as many bytes can be read there as its second number says, and those say the truth
/// about where its texts lie. That cannot be checked, and is what a plug-in is trusted with.
pub(crate) unsafe fn read(table: *const PluginTable, path: &Path) -> Result<Checked, PluginError> {
    let refuse = |reason: String| PluginError::Table {
        path: path.to_owned(),
        reason,
    };
    if table.is_null() {
        return Err(PluginError::NoTable {
            path: path.to_owned(),
        });
    }
    if !table.is_aligned() {
        return Err(refuse("its table is not aligned".to_owned()));
    }
    // SAFETY: the caller says that the table is there, of which these are the first bytes in every version.
    let (version, size) = unsafe {
        (
            (&raw const (*table).abi_version).read(),
            (&raw const (*table).struct_size).read() as usize,
        )
    };
    if version != LW_ABI_VERSION {
        return Err(PluginError::Version {
            path: path.to_owned(),
            found: version,
        });
    }
    if !(SMALLEST..=LARGEST).contains(&size) {
        return Err(refuse(format!(
            "its table has {size} bytes; those of this version have {SMALLEST} or more"
        )));
    }
    let mut known = MaybeUninit::<PluginTable>::zeroed();
    // SAFETY: so many bytes can be read, and so many fit. What a shorter table lacks stays zero, and
    // every value of every field is allowed.
    let known = unsafe {
        let bytes = size.min(size_of::<PluginTable>());
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), known.as_mut_ptr().cast(), bytes);
        known.assume_init()
    };
    // SAFETY: the caller says that texts lie where the table says.
    unsafe { check(&known) }.map_err(refuse)
}

unsafe fn check(table: &PluginTable) -> Result<Checked, String> {
    // SAFETY: as for `read`.
    let name = unsafe { text("name", &table.name, LONGEST_NAME) }?;
    check_name(&name)?;
    // SAFETY: as for `read`.
    let description = unsafe { text("description", &table.description, LONGEST_DESCRIPTION) }?;
    if description.contains(char::is_control) {
        return Err("its description is not one line".to_owned());
    }
    let form = match table.form {
        LW_FORM_KERNEL => Form::Kernel,
        LW_FORM_C => Form::C,
        LW_FORM_C99 => Form::C99,
        LW_FORM_PROGRAM => Form::Program,
        other => {
            return Err(format!("it wants programs in form {other}, which is none"));
        }
    };
    // `Hardware::ALL` is in the order of the numbers.
    let hardware = table.hardware.checked_sub(LW_HARDWARE_CPU);
    let hardware = hardware.and_then(|number| Hardware::ALL.get(number as usize));
    let Some(hardware) = hardware else {
        return Err(format!(
            "it needs hardware {}, which is none",
            table.hardware
        ));
    };
    let scheduler = match table.scheduler {
        LW_SCHEDULER_THREADS => Scheduler::Threads,
        LW_SCHEDULER_SYNC => Scheduler::Sync,
        other => return Err(format!("it prefers scheduler {other}, which is none")),
    };
    if table.flags & !LW_FLAG_THREAD_SAFE != 0 {
        return Err(format!(
            "it has flags that are none: {:#x}",
            table.flags & !LW_FLAG_THREAD_SAFE
        ));
    }
    let missing = |function: &str| format!("it has no function `{function}`");
    // SAFETY: as for `read`.
    let device = unsafe { device(table.device) }?;
    if device.is_some() && form == Form::Program {
        return Err("it has devices and wants whole programs; devices take kernels".to_owned());
    }
    if device.is_none() && table.run.is_none() {
        return Err(missing("run"));
    }
    Ok(Checked {
        name,
        description,
        priority: table.priority,
        form,
        hardware: *hardware,
        scheduler,
        thread_safe: table.flags & LW_FLAG_THREAD_SAFE != 0,
        device,
        target: target(&table.target)?,
        host_threads: table.target.threads == 0,
        // SAFETY: as for `read`.
        capabilities: unsafe { capabilities(table) }?,
        functions: Functions {
            availability: table.availability,
            compile: table.compile.ok_or_else(|| missing("compile"))?,
            run: table.run,
            code_text: table.code_text,
            release: table.release.ok_or_else(|| missing("release"))?,
        },
    })
}

/// The functions of devices; none where the plug-in has no table of them.
unsafe fn device(table: *const DeviceTable) -> Result<Option<DeviceFunctions>, String> {
    if table.is_null() {
        return Ok(None);
    }
    if !table.is_aligned() {
        return Err("its table of devices is not aligned".to_owned());
    }
    // SAFETY: as for `read`: the table is there, and this is its first field in every version.
    let size = unsafe { (&raw const (*table).struct_size).read() } as usize;
    if !(SMALLEST_OF_DEVICES..=LARGEST).contains(&size) {
        return Err(format!(
            "its table of devices has {size} bytes; those of this version have {SMALLEST_OF_DEVICES} or more"
        ));
    }
    // SAFETY: it is as large as the first header with such a table says, and every value of every field is allowed.
    let table = unsafe { table.read() };
    let missing = |function: &str| format!("its table of devices has no function `{function}`");
    Ok(Some(DeviceFunctions {
        count: table.count.ok_or_else(|| missing("count"))?,
        open: table.open.ok_or_else(|| missing("open"))?,
        close: table.close.ok_or_else(|| missing("close"))?,
        limits: table.limits.ok_or_else(|| missing("limits"))?,
        allocate: table.allocate.ok_or_else(|| missing("allocate"))?,
        free: table.free.ok_or_else(|| missing("free"))?,
        write: table.write.ok_or_else(|| missing("write"))?,
        read: table.read.ok_or_else(|| missing("read"))?,
        copy: table.copy,
        prepare: table.prepare.ok_or_else(|| missing("prepare"))?,
        launch: table.launch.ok_or_else(|| missing("launch"))?,
        release_launch: table
            .release_launch
            .ok_or_else(|| missing("release_launch"))?,
    }))
}

fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    if !name.chars().all(allowed) || name.starts_with('-') {
        return Err(format!(
            "its name is {name:?}; names have small letters, digits, `_` and `-`, and begin with no `-`"
        ));
    }
    if name == "auto" {
        return Err("its name is `auto`, which stands for the best device there is".to_owned());
    }
    Ok(())
}

fn target(table: &TargetTable) -> Result<Target, String> {
    let bounded = |what: &str, value: u32, most: u32| match value <= most {
        true => Ok(value),
        false => Err(format!("it has {value} {what}, which cannot be")),
    };
    let vector_bytes = bounded("bytes in a vector register", table.vector_bytes, MOST_COUNT)?;
    if vector_bytes != 0 && !vector_bytes.is_power_of_two() {
        return Err(format!(
            "it has vector registers of {vector_bytes} bytes, which is no power of two"
        ));
    }
    let known = |bytes: u32, otherwise: u32| if bytes == 0 { otherwise } else { bytes };
    Ok(Target {
        vector_bytes,
        vector_registers: bounded("vector registers", table.vector_registers, MOST_COUNT)?,
        threads: bounded("threads", table.threads, MOST_COUNT)?.max(1),
        l1_bytes: known(table.l1_bytes, Target::SCALAR.l1_bytes),
        l2_bytes: known(table.l2_bytes, Target::SCALAR.l2_bytes),
        ..Target::SCALAR
    })
}

unsafe fn capabilities(whole: &PluginTable) -> Result<Capabilities, String> {
    let table = &whole.capabilities;
    if table.dtypes & !LW_DTYPES_ALL != 0 {
        return Err(format!(
            "it has dtypes that are none: {:#x}",
            table.dtypes & !LW_DTYPES_ALL
        ));
    }
    // `DType::ALL` is in the order of the numbers.
    let dtypes: Vec<DType> = (0u32..)
        .zip(DType::ALL)
        .filter(|(number, _)| table.dtypes >> number & 1 != 0)
        .map(|(_, dtype)| dtype)
        .collect();
    for (number, dtype) in [(LW_DTYPE_BOOL, DType::Bool), (LW_DTYPE_I64, DType::I64)] {
        if table.dtypes >> number & 1 == 0 {
            return Err(format!(
                "it does not have {dtype}; indices and conditions are of i64 and bool"
            ));
        }
    }
    let features = LW_FEATURE_ATOMICS
        | LW_FEATURE_BARRIERS
        | LW_FEATURE_TILES
        | LW_FEATURE_COMPUTES_NOTHING
        | LW_FEATURE_NO_STRUCTS;
    if table.features & !features != 0 {
        return Err(format!(
            "it has features that are none: {:#x}",
            table.features & !features
        ));
    }
    let has = |feature: u32| table.features & feature != 0;
    let lanes = table.vector_lanes;
    if lanes == 0 || (lanes > MOST_COUNT && lanes != u32::MAX) {
        return Err(format!(
            "its vectors have {lanes} lanes; they have 1 to {MOST_COUNT}, or any number, UINT32_MAX"
        ));
    }
    let bytes = |what: &str, bytes: u64| match bytes <= MOST_BYTES {
        true => Ok(bytes),
        false => Err(format!("it has {bytes} bytes of {what}, which cannot be")),
    };
    let limit = |number: u64| (number != 0).then_some(number);
    let local_memory = match table.local_memory {
        u64::MAX => u64::MAX,
        number => bytes("local memory", number)?,
    };
    if table.max_params > MOST_COUNT {
        return Err(format!(
            "its kernels have up to {} parameters, which cannot be",
            table.max_params
        ));
    }
    Ok(Capabilities {
        computes: !has(LW_FEATURE_COMPUTES_NOTHING),
        dtypes,
        // SAFETY: as for `read`.
        missing_ops: unsafe { missing_ops(table) }?,
        // SAFETY: as for `read`.
        math: unsafe { math(whole) }?,
        vector_lanes: lanes,
        structs: !has(LW_FEATURE_NO_STRUCTS),
        local_memory,
        private_memory: limit(bytes("private memory", table.private_memory)?),
        atomics: has(LW_FEATURE_ATOMICS),
        barriers: has(LW_FEATURE_BARRIERS),
        matrix_tiles: has(LW_FEATURE_TILES),
        max_buffer: limit(bytes("memory in one array", table.max_buffer)?),
        max_params: (table.max_params != 0).then_some(table.max_params as usize),
    })
}

unsafe fn missing_ops(table: &CapabilityTable) -> Result<Vec<Op>, String> {
    let count = table.missing_op_count as usize;
    if count > Op::ALL.len() {
        return Err(format!(
            "it lacks {count} ops, and there are {}",
            Op::ALL.len()
        ));
    }
    if count > 0 && (table.missing_ops.is_null() || !table.missing_ops.is_aligned()) {
        return Err("the list of ops that it lacks is not there".to_owned());
    }
    let mut missing = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: as for `read`; the list is as long as the table says.
        let name = unsafe { text("missing op", &*table.missing_ops.add(at), LONGEST_NAME) }?;
        // A name that was mistyped would claim an op that is not there.
        let op = Op::from_name(&name)
            .ok_or_else(|| format!("it lacks the op {name:?}, which there is not"))?;
        missing.push(op);
    }
    Ok(missing)
}

/// How near the plug-in's math functions are.
unsafe fn math(table: &PluginTable) -> Result<MathAccuracy, String> {
    let checked = |what: &str, ulps: u32| match ulps <= MOST_ULPS {
        true => Ok(ulps),
        false => Err(format!(
            "{what} may be off by {ulps} units in the last place; the most that can be stated is {MOST_ULPS}"
        )),
    };
    let mut accuracy = MathAccuracy::within(checked("its math functions", table.math_ulps)?);
    let count = table.op_accuracy_count as usize;
    if count > Op::ALL.len() {
        return Err(format!(
            "it states the accuracy of {count} ops, and there are {}",
            Op::ALL.len()
        ));
    }
    let list = table.op_accuracies;
    if count > 0 && (list.is_null() || !list.is_aligned()) {
        return Err("the list of the ops whose accuracy it states is not there".to_owned());
    }
    for at in 0..count {
        // SAFETY: as for `read`; the list is as long as the table says.
        let stated = unsafe { &*list.add(at) };
        // SAFETY: as for `read`.
        let name = unsafe { text("op", &stated.op, LONGEST_NAME) }?;
        let op = Op::from_name(&name).ok_or_else(|| {
            format!("it states the accuracy of the op {name:?}, which there is not")
        })?;
        accuracy = accuracy.with(op, checked(&format!("its `{op}`"), stated.ulps)?);
    }
    Ok(accuracy)
}

/// A text of the table, which may be at most so long.
unsafe fn text(what: &str, text: &Text, most: usize) -> Result<String, String> {
    if text.length > most {
        let length = text.length;
        return Err(format!(
            "its {what} has {length} bytes, and the most is {most}"
        ));
    }
    if text.length == 0 {
        return Ok(String::new());
    }
    if text.start.is_null() {
        return Err(format!("its {what} is not there"));
    }
    // SAFETY: as for `read`: the plug-in says that so many bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(text.start.cast::<u8>(), text.length) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "its {what} is not UTF-8 from byte {} on",
            error.valid_up_to()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::OpAccuracy;

    /// The numbers in the header are those of the lists they stand for.
    #[test]
    fn numbers_are_in_order() {
        use crate::abi::*;
        let dtypes = [
            (LW_DTYPE_BOOL, DType::Bool),
            (LW_DTYPE_I8, DType::I8),
            (LW_DTYPE_I16, DType::I16),
            (LW_DTYPE_I32, DType::I32),
            (LW_DTYPE_I64, DType::I64),
            (LW_DTYPE_U8, DType::U8),
            (LW_DTYPE_U16, DType::U16),
            (LW_DTYPE_U32, DType::U32),
            (LW_DTYPE_U64, DType::U64),
            (LW_DTYPE_F8E4M3, DType::F8E4M3),
            (LW_DTYPE_F8E5M2, DType::F8E5M2),
            (LW_DTYPE_F16, DType::F16),
            (LW_DTYPE_BF16, DType::BF16),
            (LW_DTYPE_F32, DType::F32),
            (LW_DTYPE_F64, DType::F64),
        ];
        assert_eq!(dtypes.map(|(_, dtype)| dtype), DType::ALL);
        for (at, (number, dtype)) in dtypes.into_iter().enumerate() {
            assert_eq!(number as usize, at);
            assert_eq!(
                number, dtype as u32,
                "arguments say the dtype by its number"
            );
        }
        assert_eq!(LW_DTYPES_ALL, (1 << DType::ALL.len()) - 1);
        let hardware = [
            (LW_HARDWARE_CPU, Hardware::Cpu),
            (LW_HARDWARE_GPU, Hardware::Gpu),
            (LW_HARDWARE_ACCELERATOR, Hardware::Accelerator),
            (LW_HARDWARE_NOTHING, Hardware::Nothing),
        ];
        for (number, hardware) in hardware {
            assert_eq!(Hardware::ALL[number as usize], hardware);
        }
    }

    fn of(text: &'static str) -> Text {
        Text {
            start: text.as_ptr().cast(),
            length: text.len(),
        }
    }

    unsafe extern "C" fn compile(
        _: *const abi::Program,
        _: *const abi::Options,
        _: *mut *mut abi::Code,
        _: *const abi::Writer,
    ) -> u32 {
        abi::LW_FAILED
    }

    unsafe extern "C" fn run(
        _: *mut abi::Code,
        _: Text,
        _: *const abi::Argument,
        _: usize,
        _: *const abi::Writer,
    ) -> u32 {
        abi::LW_FAILED
    }

    unsafe extern "C" fn release(_: *mut abi::Code) {}

    fn table() -> PluginTable {
        PluginTable {
            abi_version: LW_ABI_VERSION,
            struct_size: size_of::<PluginTable>() as u32,
            name: of("some"),
            description: of("some plug-in"),
            priority: 3,
            hardware: LW_HARDWARE_CPU,
            form: LW_FORM_KERNEL,
            scheduler: LW_SCHEDULER_SYNC,
            flags: LW_FLAG_THREAD_SAFE,
            target: TargetTable {
                vector_bytes: 32,
                vector_registers: 16,
                threads: 2,
                l1_bytes: 0,
                l2_bytes: 0,
            },
            capabilities: CapabilityTable {
                dtypes: LW_DTYPES_ALL,
                features: LW_FEATURE_ATOMICS,
                vector_lanes: 16,
                local_memory: 0,
                private_memory: 0,
                max_buffer: 1 << 30,
                max_params: 31,
                missing_op_count: 0,
                missing_ops: std::ptr::null(),
            },
            availability: None,
            compile: Some(compile),
            run: Some(run),
            code_text: None,
            release: Some(release),
            math_ulps: 0,
            op_accuracy_count: 0,
            op_accuracies: std::ptr::null(),
            device: std::ptr::null(),
        }
    }

    fn read_table(table: &PluginTable) -> Result<Checked, String> {
        // SAFETY: the tests' tables are as large as they say, or say something that is refused.
        unsafe { read(table, Path::new("some.so")) }.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_right_is_taken_as_it_is() {
        let checked = read_table(&table()).expect("the table is right");
        assert_eq!(
            (checked.name.as_str(), checked.priority, checked.form),
            ("some", 3, Form::Kernel)
        );
        assert_eq!(checked.target.threads, 2);
        assert_eq!(checked.target.l1_bytes, Target::SCALAR.l1_bytes);
        assert!(checked.thread_safe && !checked.host_threads);
        let can = &checked.capabilities;
        assert_eq!((can.max_buffer, can.max_params), (Some(1 << 30), Some(31)));
        assert_eq!((can.private_memory, can.atomics), (None, true));
        assert!(can.structs && can.math.is_exact());
        let sines = [OpAccuracy {
            op: of("sin"),
            ulps: 9,
        }];
        let mut coarse = table();
        coarse.capabilities.features |= LW_FEATURE_NO_STRUCTS;
        coarse.math_ulps = 3;
        coarse.op_accuracy_count = 1;
        coarse.op_accuracies = sines.as_ptr();
        let can = read_table(&coarse)
            .expect("the table is right")
            .capabilities;
        assert!(!can.structs);
        assert_eq!(can.math, MathAccuracy::within(3).with(Op::Sin, 9));
        // The table of the first header of this version ends before that.
        coarse.struct_size = SMALLEST as u32;
        let can = read_table(&coarse)
            .expect("the table is right")
            .capabilities;
        assert!(can.math.is_exact());
        // What is behind the known end belongs to a later header.
        let long = PluginTable {
            struct_size: size_of::<PluginTable>() as u32 + 8,
            ..table()
        };
        let (long, _behind) = &(long, [0u64; 4]);
        assert!(read_table(long).is_ok());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_file_and_the_reason() {
        let ops = [of("ad")];
        let accuracy = |op: &'static str, ulps: u32| [OpAccuracy { op: of(op), ulps }];
        let (no_op, too_far) = (accuracy("sine", 1), accuracy("sin", MOST_ULPS + 1));
        let not_utf8 = Text {
            start: b"\xc3\x28".as_ptr().cast(),
            length: 2,
        };
        type Lie<'a> = (&'a str, &'a dyn Fn(&mut PluginTable));
        let lies: &[Lie<'_>] = &[
            ("has ABI version 2, and this host has 1", &|t| {
                t.abi_version = 2
            }),
            ("its table has 16 bytes", &|t| t.struct_size = 16),
            ("its table has 4294967295 bytes", &|t| {
                t.struct_size = u32::MAX
            }),
            ("it has no name", &|t| t.name = of("")),
            ("its name is \"Some\"", &|t| t.name = of("Some")),
            ("its name is \"-o\"", &|t| t.name = of("-o")),
            ("its name is \"a\\nb\"", &|t| t.name = of("a\nb")),
            ("its name is `auto`", &|t| t.name = of("auto")),
            ("its name has 33 bytes", &|t| {
                t.name = of("a-name-of-33-letters-is-too-long-")
            }),
            ("its name is not there", &|t| {
                t.name.start = std::ptr::null()
            }),
            ("its name is not UTF-8 from byte 0 on", &|t| {
                t.name = not_utf8
            }),
            ("its description is not UTF-8", &|t| {
                t.description = not_utf8
            }),
            ("its description is not one line", &|t| {
                t.description = of("a\nb")
            }),
            ("in form 77, which is none", &|t| t.form = 77),
            ("hardware 4, which is none", &|t| t.hardware = 4),
            ("scheduler 2, which is none", &|t| t.scheduler = 2),
            ("flags that are none: 0xf0", &|t| t.flags |= 0xf0),
            ("vector registers of 24 bytes", &|t| {
                t.target.vector_bytes = 24
            }),
            ("4294967295 threads", &|t| t.target.threads = u32::MAX),
            ("4000000000 vector registers", &|t| {
                t.target.vector_registers = 4_000_000_000
            }),
            ("dtypes that are none: 0x8000", &|t| {
                t.capabilities.dtypes |= 0x8000
            }),
            ("it does not have i64", &|t| {
                t.capabilities.dtypes &= !(1 << LW_DTYPE_I64)
            }),
            ("it does not have bool", &|t| t.capabilities.dtypes = 0),
            ("features that are none: 0x100", &|t| {
                t.capabilities.features |= 0x100
            }),
            ("its vectors have 0 lanes", &|t| {
                t.capabilities.vector_lanes = 0
            }),
            ("its vectors have 1000000 lanes", &|t| {
                t.capabilities.vector_lanes = 1_000_000
            }),
            ("bytes of local memory", &|t| {
                t.capabilities.local_memory = u64::MAX - 1
            }),
            ("bytes of private memory", &|t| {
                t.capabilities.private_memory = u64::MAX
            }),
            ("bytes of memory in one array", &|t| {
                t.capabilities.max_buffer = u64::MAX
            }),
            ("4294967295 parameters", &|t| {
                t.capabilities.max_params = u32::MAX
            }),
            ("it lacks 5000 ops", &|t| {
                t.capabilities.missing_op_count = 5000
            }),
            ("ops that it lacks is not there", &|t| {
                t.capabilities.missing_op_count = 1
            }),
            ("it lacks the op \"ad\"", &|t| {
                t.capabilities.missing_op_count = 1;
                t.capabilities.missing_ops = ops.as_ptr();
            }),
            ("its math functions may be off by 4294967295 units", &|t| {
                t.math_ulps = u32::MAX
            }),
            ("it states the accuracy of 5000 ops", &|t| {
                t.op_accuracy_count = 5000
            }),
            ("whose accuracy it states is not there", &|t| {
                t.op_accuracy_count = 1
            }),
            ("the accuracy of the op \"sine\"", &|t| {
                t.op_accuracy_count = 1;
                t.op_accuracies = no_op.as_ptr();
            }),
            ("its `sin` may be off by 1048577 units", &|t| {
                t.op_accuracy_count = 1;
                t.op_accuracies = too_far.as_ptr();
            }),
            ("it has no function `compile`", &|t| t.compile = None),
            ("it has no function `run`", &|t| t.run = None),
            ("it has no function `release`", &|t| t.release = None),
        ];
        for (expected, lie) in lies {
            let mut table = table();
            lie(&mut table);
            let error = read_table(&table).expect_err(expected);
            assert!(error.contains(expected), "{expected}: {error}");
            assert!(error.contains("some.so"), "{error}");
        }
    }
}
