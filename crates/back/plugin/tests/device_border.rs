//! Devices behind the border: what goes wrong there comes back as text, and what cannot be is refused on both sides.

use loopwright_backend::{
    Backend, BackendError, Call, CompileOptions, Describe, DeviceBackend, DeviceCode, DeviceError,
    Executable, Launch, LaunchArgument, Limits, MemoryAccess, PlainDevice, Slab, SlabRange,
};
use loopwright_kernel::{Module, parse};
use loopwright_plugin::abi::{self, LW_ABI_VERSION, LW_FAILED, LW_UNSUPPORTED};
use loopwright_text::Source;
use std::any::Any;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What the device does when it is asked for something.
static MOOD: AtomicU32 = AtomicU32::new(0);
const WELL: u32 = 0;
const LOST: u32 = 1;
const FAILING: u32 = 2;
const PANICKING: u32 = 3;

/// Slabs and launches that are there.
static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Copies on the device's own way.
static COPIES: AtomicU32 = AtomicU32::new(0);

/// The mood is one for all tests of this process.
fn in_mood() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mood() -> Result<(), DeviceError> {
    match MOOD.load(Ordering::Relaxed) {
        LOST => Err(DeviceError::Lost("the cable is out".to_owned())),
        FAILING => Err(DeviceError::Other("it is too hot".to_owned())),
        PANICKING => panic!("the tray is bent"),
        _ => Ok(()),
    }
}

struct Tray;

impl Describe for Tray {
    fn name(&self) -> &str {
        "tray"
    }
}

impl DeviceBackend for Tray {
    fn compile(&self, _: &Module, _: &CompileOptions) -> Result<Arc<dyn DeviceCode>, BackendError> {
        Ok(Arc::new(TrayCode))
    }

    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        vec![Arc::new(TrayDevice)]
    }
}

struct TrayCode;

impl DeviceCode for TrayCode {
    fn code(&self) -> String {
        "put it on the tray".to_owned()
    }
}

struct TrayDevice;

impl PlainDevice for TrayDevice {
    fn limits(&self) -> Limits {
        Limits {
            description: "a tray\nof two lines".to_owned(),
            memory: Some(1 << 20),
            threads: 3,
            streams: 2,
            host_memory: false,
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        mood()?;
        if bytes > 1 << 20 {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(TraySlab(Mutex::new(vec![0; bytes]))))
    }

    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        _: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        mood()?;
        let code = code.device_code().map(|code| &**code as &dyn Any);
        assert!(code.is_some_and(|code| code.is::<TrayCode>()));
        assert!(
            slabs
                .iter()
                .all(|slab| (&**slab as &dyn Any).is::<TraySlab>())
        );
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(TrayLaunch {
            arguments: arguments.to_vec(),
            slabs,
        }))
    }
}

struct TraySlab(Mutex<Vec<u8>>);

impl Slab for TraySlab {
    fn bytes(&self) -> usize {
        self.0.lock().expect("it is not locked").len()
    }

    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        mood()?;
        let mut bytes = self.0.lock().expect("it is not locked");
        bytes[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        mood()?;
        let bytes = self.0.lock().expect("it is not locked");
        to.copy_from_slice(&bytes[offset..offset + to.len()]);
        Ok(())
    }

    unsafe fn copy_from(
        &self,
        offset: usize,
        from: &Arc<dyn Slab>,
        from_offset: usize,
        bytes: usize,
    ) -> Option<Result<(), DeviceError>> {
        let from = (&**from as &dyn Any).downcast_ref::<TraySlab>()?;
        // Its way is a narrow one.
        (bytes <= 16).then(|| {
            mood()?;
            let source = from.0.lock().expect("it is not locked").clone();
            let mut target = self.0.lock().expect("it is not locked");
            target[offset..offset + bytes].copy_from_slice(&source[from_offset..][..bytes]);
            COPIES.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }

    fn address(&self) -> Option<*mut u8> {
        None
    }
}

impl Drop for TraySlab {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Writes the sum of its integers and of the first byte of its merge buffer to its memory.
struct TrayLaunch {
    arguments: Vec<LaunchArgument<SlabRange>>,
    slabs: Vec<Arc<dyn Slab>>,
}

impl Launch for TrayLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        mood()?;
        let mut sum = 0;
        for argument in &self.arguments {
            sum += match *argument {
                LaunchArgument::Memory(_) => 0,
                LaunchArgument::Integer(value) => value,
                LaunchArgument::Static(at) => call.statics[at],
                LaunchArgument::Merge { .. } => {
                    let (slab, offset) = call.merge.expect("the border sees to it");
                    let mut byte = [0];
                    // SAFETY: the border has checked the range.
                    unsafe { slab.read(offset, &mut byte) }?;
                    byte[0].into()
                }
            };
        }
        let first = self.arguments.first();
        let Some(LaunchArgument::Memory(range)) = first else {
            return Err(DeviceError::Other("it has no memory".to_owned()));
        };
        // SAFETY: as above.
        unsafe { self.slabs[range.slab].write(range.offset, &sum.to_le_bytes()) }
    }
}

impl Drop for TrayLaunch {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

loopwright_plugin::export_plugin!(device Tray, 4);

fn backend() -> &'static Backend {
    static BACKEND: OnceLock<Backend> = OnceLock::new();
    BACKEND.get_or_init(|| {
        // SAFETY: the entry point is the one made above.
        let plugin =
            unsafe { loopwright_plugin::from_entry(loopwright_plugin, Path::new("tray.so")) };
        plugin
            .unwrap_or_else(|error| panic!("{error}"))
            .backend()
            .clone()
    })
}

fn device() -> Arc<dyn PlainDevice> {
    let devices = backend().devices().expect("it brings devices");
    Arc::clone(&devices[0])
}

const KERNEL: &str = "loopwright kernel 1\n\n\
    kernel @add(%out: write ptr<global, i64>, %m: read ptr<global, u8>, %a: i64, %b: i64) {\n}\n";

fn code() -> Arc<dyn Executable> {
    let module = parse(&Source::new("add.lwk", KERNEL)).expect("the kernel is right");
    let compiled = backend().compile_module(&module, &CompileOptions::default());
    let compiled = compiled.expect("it takes kernels");
    compiled.unwrap_or_else(|error| panic!("{error}"))
}

fn range(slab: usize, offset: usize, bytes: usize) -> LaunchArgument<SlabRange> {
    LaunchArgument::Memory(SlabRange {
        slab,
        offset,
        bytes,
        access: MemoryAccess::Write,
    })
}

const REST: [LaunchArgument<SlabRange>; 3] = [
    LaunchArgument::Merge { bytes: 4 },
    LaunchArgument::Integer(30),
    LaunchArgument::Static(1),
];

fn arguments(first: LaunchArgument<SlabRange>) -> Vec<LaunchArgument<SlabRange>> {
    [first].into_iter().chain(REST).collect()
}

#[test]
fn memory_transfers_and_launches_cross_the_border() {
    let _turn = in_mood();
    let before = ALIVE.load(Ordering::Relaxed);
    let device = device();
    let limits = device.limits();
    assert_eq!(limits.description, "a tray");
    assert_eq!((limits.threads, limits.streams), (3, 2));
    assert_eq!((limits.memory, limits.host_memory), (Some(1 << 20), false));

    let code = code();
    assert_eq!(code.code(), "put it on the tray");
    let slab = device.allocate(64).expect("there is memory");
    let merge = device.allocate(8).expect("there is memory");
    assert_eq!(device.allocate(0).expect("nothing is enough").bytes(), 0);
    let launch = device.prepare(
        &code,
        "add",
        vec![Arc::clone(&slab)],
        &arguments(range(0, 16, 8)),
    );
    let launch = launch.unwrap_or_else(|error| panic!("{error}"));
    let mut sum = [0; 8];
    // SAFETY: nobody else has the slabs, and everything lies within them.
    unsafe {
        merge.write(2, &[5]).expect("it can be written");
        let call = Call {
            statics: &[7, 700],
            merge: Some((&merge, 2)),
        };
        launch.run(&call).unwrap_or_else(|error| panic!("{error}"));
        slab.read(16, &mut sum).expect("it can be read");
    }
    assert_eq!(i64::from_le_bytes(sum), 735);

    // A call that lacks something.
    // SAFETY: it is refused.
    let few = unsafe {
        launch.run(&Call {
            statics: &[7],
            merge: Some((&merge, 0)),
        })
    };
    let few = few.expect_err("a static is missing").to_string();
    assert!(few.contains("it takes 2 statics, not 1"), "{few}");
    for (merge, expected) in [
        (None, "the memory for argument 1 is not this device's"),
        (Some((&merge, 5)), "4 bytes from 5 on do not lie within"),
    ] {
        let call = Call {
            statics: &[7, 8],
            merge,
        };
        // SAFETY: it is refused.
        let error = unsafe { launch.run(&call) }
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    drop((launch, slab, merge));
    assert_eq!(ALIVE.load(Ordering::Relaxed), before, "all is given back");
}

#[test]
fn copies_go_the_device_s_own_way_where_there_is_one() {
    let _turn = in_mood();
    let device = device();
    let [from, to] = [64, 32].map(|bytes| device.allocate(bytes).expect("there is memory"));
    let copies = COPIES.load(Ordering::Relaxed);
    let mut bytes = [0; 4];
    // SAFETY: nobody else has the slabs, and what does not lie within them is refused.
    unsafe {
        from.write(8, b"abcd").expect("it can be written");
        let copied = to.copy_from(3, &from, 8, 4);
        copied.expect("there is a way").expect("it works");
        to.read(3, &mut bytes).expect("it can be read");
        // There is none for that many: the host copies through its own memory.
        assert!(to.copy_from(0, &from, 0, 17).is_none());
        let error = to.copy_from(30, &from, 0, 4).expect("it is refused");
        let error = error.expect_err("it is too long").to_string();
        assert!(
            error.contains("4 bytes from 30 on do not lie within the 32 bytes"),
            "{error}"
        );
        let error = to.copy_from(0, &from, 61, 4).expect("it is refused");
        assert!(error.is_err());
    }
    assert_eq!(&bytes, b"abcd");
    assert_eq!(COPIES.load(Ordering::Relaxed), copies + 1);
}

#[test]
fn what_goes_wrong_comes_back_as_text() {
    let _turn = in_mood();
    let (device, code) = (device(), code());
    let error = device.allocate(2 << 20).err().expect("it is too much");
    assert!(
        matches!(error, DeviceError::OutOfMemory { bytes } if bytes == 2 << 20),
        "{error}"
    );

    let slab = device.allocate(64).expect("there is memory");
    let merge = device.allocate(8).expect("there is memory");
    let slabs = || vec![Arc::clone(&slab)];
    let launch = device.prepare(&code, "add", slabs(), &arguments(range(0, 0, 8)));
    let launch = launch.unwrap_or_else(|error| panic!("{error}"));
    let who = "plug-in `tray` (tray.so): ";
    for (mood, said) in [
        (LOST, "the cable is out"),
        (FAILING, "it is too hot"),
        (PANICKING, "it panicked: the tray is bent"),
    ] {
        MOOD.store(mood, Ordering::Relaxed);
        let call = Call {
            statics: &[0, 0],
            merge: Some((&merge, 0)),
        };
        // SAFETY: nobody else has the slab, and everything lies within it.
        let errors = unsafe {
            [
                device.allocate(1).err(),
                slab.write(0, &[1]).err(),
                slab.read(0, &mut [1]).err(),
                slab.copy_from(0, &merge, 0, 1).and_then(Result::err),
                device
                    .prepare(&code, "add", slabs(), &arguments(range(0, 0, 8)))
                    .err(),
                launch.run(&call).err(),
            ]
        };
        MOOD.store(WELL, Ordering::Relaxed);
        for (at, error) in errors.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("function {at} fails"));
            let text = error.to_string();
            assert!(text.contains(said) && text.contains(who), "{at}: {text}");
            assert_eq!(
                matches!(error, DeviceError::Lost(_)),
                mood == LOST,
                "{at}: {text}"
            );
            if at == 5 && mood != LOST {
                assert!(text.starts_with("kernel `add` failed: "), "{text}");
            }
        }
    }
    // And goes on.
    assert!(device.allocate(1).is_ok());
}

/// A slab of somebody else's.
struct Stranger;

impl Slab for Stranger {
    fn bytes(&self) -> usize {
        64
    }

    unsafe fn write(&self, _: usize, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn read(&self, _: usize, _: &mut [u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn address(&self) -> Option<*mut u8> {
        None
    }
}

/// Code of somebody else's.
struct Strange;

impl Executable for Strange {
    unsafe fn run(
        &self,
        _: &str,
        _: &mut [loopwright_backend::Argument<'_>],
    ) -> Result<(), BackendError> {
        Ok(())
    }

    fn code(&self) -> String {
        String::new()
    }
}

#[test]
fn what_does_not_fit_is_refused_before_the_plug_in_sees_it() {
    let _turn = in_mood();
    let (device, code) = (device(), code());
    let slab = device.allocate(64).expect("there is memory");
    let stranger: Arc<dyn Slab> = Arc::new(Stranger);
    let strange: Arc<dyn Executable> = Arc::new(Strange);
    let own = || vec![Arc::clone(&slab)];
    let scalar = LaunchArgument::Integer(1);
    type Refused<'a> = (
        &'a str,
        &'a Arc<dyn Executable>,
        &'a str,
        Vec<Arc<dyn Slab>>,
        Vec<LaunchArgument<SlabRange>>,
    );
    let cases: Vec<Refused<'_>> = vec![
        (
            "not compiled for `tray`",
            &strange,
            "add",
            own(),
            arguments(range(0, 0, 8)),
        ),
        (
            "no kernel of that name",
            &code,
            "sub",
            own(),
            arguments(range(0, 0, 8)),
        ),
        (
            "it takes 4 arguments, not 1",
            &code,
            "add",
            own(),
            vec![range(0, 0, 8)],
        ),
        (
            "`out` is a buffer, not a scalar",
            &code,
            "add",
            own(),
            arguments(scalar),
        ),
        (
            "must be aligned to 8 bytes",
            &code,
            "add",
            own(),
            arguments(range(0, 3, 8)),
        ),
        (
            "64 bytes from 8 on do not lie within",
            &code,
            "add",
            own(),
            arguments(range(0, 8, 64)),
        ),
        (
            "8 bytes from",
            &code,
            "add",
            own(),
            arguments(range(0, usize::MAX - 7, 8)),
        ),
        (
            "argument 0 is not this device's",
            &code,
            "add",
            vec![stranger],
            arguments(range(0, 0, 8)),
        ),
        (
            "argument 0 is not this device's",
            &code,
            "add",
            own(),
            arguments(range(1, 0, 8)),
        ),
    ];
    for (expected, code, kernel, slabs, arguments) in cases {
        let error = device.prepare(code, kernel, slabs, &arguments).err();
        let error = error.unwrap_or_else(|| panic!("{expected}")).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // SAFETY: what does not lie within the slab is refused.
    unsafe {
        for error in [slab.write(63, b"ab"), slab.read(usize::MAX, &mut [0])] {
            let error = error.expect_err("it does not lie within").to_string();
            assert!(
                error.contains("do not lie within the 64 bytes of a slab"),
                "{error}"
            );
        }
    }
}

unsafe extern "C" fn hear(context: *mut c_void, text: *const c_char, length: usize) {
    // SAFETY: the context is the test's string, and so many bytes are there.
    let (said, text) = unsafe {
        (
            &mut *context.cast::<String>(),
            std::slice::from_raw_parts(text.cast::<u8>(), length),
        )
    };
    said.push_str(std::str::from_utf8(text).expect("it is text"));
}

/// A host that breaks its word is told so: null pointers and sizes that cannot be are errors of the call.
#[test]
fn the_author_s_side_believes_nothing_either() {
    let _turn = in_mood();
    // The table is made once, for whoever loads first.
    let _ = backend();
    // SAFETY: the entry point is the one made above.
    let table = unsafe { loopwright_plugin(LW_ABI_VERSION, std::ptr::null()).as_ref() };
    let table = table.expect("it has a table");
    // SAFETY: as above.
    let device = unsafe { table.device.as_ref() }.expect("it has devices");
    assert!(table.run.is_some(), "it says why it does not run");
    let mut words = String::new();
    let said: *mut String = &mut words;
    let told = |status: u32, said: &mut String, expected: &str| {
        assert_eq!(status, LW_FAILED, "{expected}");
        assert!(said.contains(expected), "{expected}: {said}");
        said.clear();
    };
    let writer = abi::Writer {
        write: Some(hear),
        context: said.cast(),
    };
    let empty = abi::Text {
        start: std::ptr::null(),
        length: 0,
    };
    // SAFETY: the table's functions take null; the writer is there, and writes to a string that nobody else touches meanwhile.
    unsafe {
        let mut handle: *mut abi::Device = null_mut();
        let mut memory: *mut abi::DeviceMemory = null_mut();
        let mut launch: *mut abi::Launch = null_mut();
        let open = device.open.expect("it is there");
        told(
            open(0, null_mut(), &writer),
            &mut *said,
            "no place for the device",
        );
        told(
            open(9, &mut handle, &writer),
            &mut *said,
            "there is no device 9",
        );
        assert_eq!(open(0, &mut handle, &writer), abi::LW_OK);
        let allocate = device.allocate.expect("it is there");
        told(
            allocate(null_mut(), 1, &mut memory, &writer),
            &mut *said,
            "no device",
        );
        told(
            allocate(handle, 1, null_mut(), &writer),
            &mut *said,
            "no place for the memory",
        );
        assert_eq!(allocate(handle, 8, &mut memory, &writer), abi::LW_OK);
        let write = device.write.expect("it is there");
        let bytes = [0u8; 16];
        let from = bytes.as_ptr().cast();
        told(
            write(null_mut(), 0, from, 1, &writer),
            &mut *said,
            "no memory",
        );
        told(
            write(memory, 0, std::ptr::null(), 1, &writer),
            &mut *said,
            "no bytes to write",
        );
        told(
            write(memory, 1, from, 8, &writer),
            &mut *said,
            "do not lie within memory of 8 bytes",
        );
        told(
            write(memory, u64::MAX, from, 8, &writer),
            &mut *said,
            "do not lie within",
        );
        assert_eq!(write(memory, 8, std::ptr::null(), 0, &writer), abi::LW_OK);
        let read = device.read.expect("it is there");
        told(
            read(memory, 0, null_mut(), 1, &writer),
            &mut *said,
            "no place for what is read",
        );
        told(
            read(null_mut(), 0, null_mut(), 1, &writer),
            &mut *said,
            "no memory",
        );
        let copy = device.copy.expect("it is there");
        told(
            copy(memory, 0, null_mut(), 0, 1, &writer),
            &mut *said,
            "no memory",
        );
        told(
            copy(memory, 0, memory, 4, 5, &writer),
            &mut *said,
            "do not lie within",
        );
        let mut large: *mut abi::DeviceMemory = null_mut();
        assert_eq!(allocate(handle, 64, &mut large, &writer), abi::LW_OK);
        assert_eq!(copy(large, 0, large, 32, 17, &writer), LW_UNSUPPORTED);
        (*said).clear();
        let prepare = device.prepare.expect("it is there");
        let none = std::ptr::null();
        told(
            prepare(null_mut(), null_mut(), empty, none, 0, &mut launch, &writer),
            &mut *said,
            "no device",
        );
        told(
            prepare(handle, null_mut(), empty, none, 0, &mut launch, &writer),
            &mut *said,
            "no code",
        );
        let run = device.launch.expect("it is there");
        told(
            run(null_mut(), std::ptr::null(), &writer),
            &mut *said,
            "no launch",
        );
        device.limits.expect("it is there")(handle, null_mut(), &writer);
        device.limits.expect("it is there")(null_mut(), null_mut(), &writer);
        device.free.expect("it is there")(large);
        device.free.expect("it is there")(memory);
        device.free.expect("it is there")(null_mut());
        device.release_launch.expect("it is there")(null_mut());
        device.close.expect("it is there")(handle);
        device.close.expect("it is there")(null_mut());
    }
}
