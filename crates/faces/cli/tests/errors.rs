//! Every error that a person can make, with the message they get.

mod sandbox;

use loopwright::ops::DType;
use sandbox::Sandbox;

const FREE: &str = "size M\ninput a: f32[i=M, j=M]\noutput b = a * 2.0\n";

/// A sandbox with the program `free.lw`.
fn free() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("free.lw", FREE);
    sandbox
}

/// What `run free.lw` with these further arguments complains about.
fn complaint(sandbox: &Sandbox, code: i32, arguments: &[&str]) -> String {
    let mut all = vec!["run", "free.lw", "--device", "interp"];
    all.extend(arguments);
    sandbox.fail(code, &all)
}

fn parse_error(lines: &str) -> String {
    let sandbox = Sandbox::new();
    sandbox.program("p.lw", lines);
    let told = sandbox.fail(1, &["run", "p.lw"]);
    let dumped = sandbox.fail(1, &["dump", "p.lw", "--stage", "graph"]);
    assert_eq!(told, dumped, "every verb says the same");
    told
}

#[test]
fn unknown_op() {
    assert_eq!(
        parse_error("input a: f32[i=4]\noutput b = sqroot(a)\n"),
        "\
error: unknown op `sqroot`
  --> p.lw:3:12
  |
3 | output b = sqroot(a)
  |            ^^^^^^
  = help: did you mean `sqrt`?
"
    );
}

#[test]
fn wrong_arity() {
    assert_eq!(
        parse_error("input a: f32[i=4]\noutput b = pow(a)\n"),
        "\
error: `pow` takes 2 operands, not 1
  --> p.lw:3:12
  |
3 | output b = pow(a)
  |            ^^^^^^
"
    );
}

#[test]
fn dtype_mismatch() {
    assert_eq!(
        parse_error("input a: f32[i=4]\ninput n: i32[i]\noutput b = a + n\n"),
        "\
error: `add` needs operands of one dtype, not f32 and i32; cast one of them, for example `f32(x)`
  --> p.lw:4:16
  |
4 | output b = a + n
  |                ^ this is i32; `f32(..)` casts it
  --> p.lw:4:12
  |
4 | output b = a + n
  |            ^ this is f32
"
    );
}

#[test]
fn contradicting_sizes() {
    assert_eq!(
        parse_error("input a: f32[i=4, k=3]\ninput b: f32[k=5]\noutput c = sum[k](a * b)\n"),
        "\
error: the size of `k` is contradicted: it is 3, but 5
  --> p.lw:3:14
  |
3 | input b: f32[k=5]
  |              ^^^ 5 here
  --> p.lw:2:19
  |
2 | input a: f32[i=4, k=3]
  |                   ^^^ 3 here
"
    );
}

#[test]
fn unbound_size() {
    assert_eq!(
        complaint(&free(), 1, &[]),
        "error: size `M` has no value; give one with `--set M=128`, or a default in the program: `size M = 128`\n"
    );
}

#[test]
fn unknown_size() {
    assert_eq!(
        complaint(&free(), 1, &["--set", "M=4", "--set", "Q=3"]),
        "error: the program has no size `Q`; its sizes are [M]\n"
    );
    let sandbox = Sandbox::new();
    sandbox.program("free.lw", "input A: f32[i=2]\noutput B = A\n");
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "Q=3"]),
        "error: the program has no size `Q`; it has no sizes\n"
    );
}

#[test]
fn negative_size() {
    assert_eq!(
        complaint(&free(), 1, &["--set", "M=-3"]),
        "\
error: dimension `M` would have the negative size -3
 help: sizes are 0 or more; `--set SIZE=VALUE` changes them
"
    );
}

#[test]
fn overflowing_size() {
    assert_eq!(
        complaint(&free(), 1, &["--set", "M=9000000000000"]),
        "\
error: the size in bytes of input `a` over [i=9000000000000, j=9000000000000] overflows 64 bits
 help: use smaller sizes; `--set SIZE=VALUE` changes them
"
    );
}

#[test]
fn malformed_setting() {
    let told = |setting: &str| {
        let text = complaint(&free(), 2, &["--set", setting]);
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        told("M"),
        "error: invalid value 'M' for '--set <SIZE=VALUE>': expected SIZE=VALUE, for example M=128"
    );
    assert_eq!(
        told("M=many"),
        "error: invalid value 'M=many' for '--set <SIZE=VALUE>': `many` is not an integer"
    );
    assert_eq!(
        told("M=99999999999999999999"),
        "error: invalid value 'M=99999999999999999999' for '--set <SIZE=VALUE>': the size 99999999999999999999 does not fit 64 bits"
    );
}

#[test]
fn missing_program() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.fail(1, &["run", "nosuch.lw"]),
        "error: cannot read nosuch.lw: there is no such file or directory\n"
    );
    sandbox.file("latin.lw", "loopwright program 1\n");
    std::fs::write(sandbox.path("latin.lw"), b"caf\xe9").expect("the directory is ours");
    assert_eq!(
        sandbox.fail(1, &["run", "latin.lw"]),
        "error: latin.lw is not a text file: byte 3 is not UTF-8\n"
    );
    assert_eq!(
        sandbox.fail(1, &["run", "."]),
        "error: cannot read .: it is a directory\n"
    );
}

#[test]
fn missing_input_file() {
    assert_eq!(
        complaint(&free(), 1, &["--set", "M=2", "--in", "a=none.npy"]),
        "error: cannot open input `a` from none.npy: there is no such file or directory\n"
    );
}

#[test]
fn unknown_input_or_output() {
    let sandbox = free();
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "M=2", "--in", "z=a.npy"]),
        "error: the program has no input or state `z`\n help: it has a; the option is `--in NAME=FILE`\n"
    );
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "M=2", "--out", "z=z.npy"]),
        "error: the program has no output or updated state `z`\n help: it has b; the option is `--out NAME=FILE`\n"
    );
    assert_eq!(
        complaint(
            &sandbox,
            2,
            &["--set", "M=2", "--out", "b=1.npy", "--out", "b=2.npy"]
        ),
        "error: `--out b=...` is given twice\n"
    );
}

#[test]
fn wrong_shape() {
    let sandbox = free();
    sandbox.array("a.npy", DType::F32, &[3, 3], &[0.0; 9]);
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "M=2", "--in", "a=a.npy"]),
        "\
error: input `a` needs f32[2, 2], and a.npy holds f32[3, 3]
 help: `--set M=3` would make it fit
"
    );
    sandbox.array("flat.npy", DType::F32, &[4], &[0.0; 4]);
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "M=2", "--in", "a=flat.npy"]),
        "error: input `a` needs f32[2, 2], and flat.npy holds f32[4]\n"
    );
}

#[test]
fn wrong_dtype() {
    let sandbox = free();
    sandbox.array("a.npy", DType::F64, &[2, 2], &[0.0; 4]);
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "M=2", "--in", "a=a.npy"]),
        "\
error: input `a` needs f32[2, 2], and a.npy holds f64[2, 2]
 help: convert the file, in numpy with `array.astype('float32')`, or change the program
"
    );
}

#[test]
fn not_an_array_file() {
    assert_eq!(
        complaint(&free(), 1, &["--set", "M=2", "--in", "a=free.lw"]),
        "error: cannot read free.lw for input `a`: this is not an .npy file: it does not start with \\x93NUMPY\n"
    );
}

#[test]
fn nowhere_to_write() {
    assert_eq!(
        complaint(&free(), 1, &["--set", "M=2", "--out", "b=nodir/b.npy"]),
        "error: cannot write nodir/b.npy: there is no directory nodir\n"
    );
}

#[test]
fn no_compiler() {
    let sandbox = free().with_variable("LOOPWRIGHT_CC", "/nonexistent");
    assert_eq!(
        sandbox.fail(1, &["run", "free.lw", "--set", "M=2", "--device", "cc"]),
        "\
error: device `cc` is not available: the C compiler `/nonexistent` was not found
 help: set LOOPWRIGHT_CC to a compiler that exists, or unset it and CC; `--device auto` takes what there is
"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn out_of_memory() {
    let told = complaint(&free(), 1, &["--set", "M=100000000"]);
    let (message, help) = told.split_once('\n').expect("two lines");
    let (asked, available) = message.rsplit_once(", and ").expect("two parts");
    assert_eq!(
        asked,
        "error: out of memory: the program needs 71.1 PiB (80000000000000000 bytes), 35.5 PiB of it for output `b`"
    );
    assert!(available.ends_with(" are available"), "{available}");
    assert_eq!(
        help,
        " help: use smaller sizes with `--set`; `loopwright dump PROGRAM --stage plan` shows what needs how much\n"
    );
}

#[test]
fn unknown_device() {
    let sandbox = free();
    let expected = "error: there is no device `gpu`\n help: the devices are x86, cc, gccjit, interp, manycore, null and auto\n";
    let run = ["run", "free.lw", "--set", "M=2", "--device", "gpu"];
    assert_eq!(sandbox.fail(2, &run), expected);
    assert_eq!(sandbox.fail(2, &["check", "--device", "gpu"]), expected);
}

#[test]
fn schedule_that_is_none() {
    let sandbox = free();
    let with = |text: &str| {
        sandbox.file("s.lws", &format!("loopwright schedule 1\n{text}\n"));
        complaint(&sandbox, 1, &["--set", "M=2", "--schedule", "s.lws"])
    };
    // For lines that do not fit the program, see the tests of replaying.
    assert_eq!(
        with("b: i,, j"),
        "\
error: expected a dimension's name, found `,`
  --> s.lws:2:6
  |
2 | b: i,, j
  |      ^
"
    );
    assert_eq!(
        complaint(&sandbox, 1, &["--set", "M=2", "--schedule", "none.lws"]),
        "error: cannot read none.lws: there is no such file or directory\n"
    );
}

#[test]
fn option_without_effect() {
    let arguments = ["dump", "free.lw", "--stage", "tree", "--unoptimised"];
    assert_eq!(
        free().fail(2, &arguments),
        "error: `--unoptimised` is about the kernel; use it with `--stage kernel`\n"
    );
}

#[test]
fn no_verb() {
    let told = Sandbox::new().fail(2, &[]);
    assert!(
        told.contains("Usage: loopwright [OPTIONS] <COMMAND>"),
        "{told}"
    );
}

#[cfg(unix)]
#[test]
fn cache_that_others_may_write_to() {
    use std::os::unix::fs::PermissionsExt;
    if !sandbox::has_compiler() {
        return;
    }
    let sandbox = free();
    let cache = sandbox.path("cache");
    std::fs::create_dir(&cache).expect("the directory is ours");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&cache, open).expect("the directory is ours");
    // It costs a warning, and nothing is read from it or written to it.
    let output = sandbox.run(&["dump", "free.lw", "--device", "cc", "--stage", "code"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let expected = format!(
        "warning: compiled code is not kept: cannot use the cache directory {}: others may write to it (mode 777), and code from it would be run; chmod go-w it; LOOPWRIGHT_CACHE_DIR names another directory\n",
        cache.display()
    );
    assert_eq!(told, expected);
    for folder in std::fs::read_dir(&cache).expect("it is there") {
        let folder = folder.expect("an entry").path();
        let kept = std::fs::read_dir(&folder).expect("a folder").count();
        assert_eq!(kept, 0, "{}", folder.display());
    }
}

#[test]
fn a_stride_whose_products_leave_64_bits_is_refused_with_its_name_and_value() {
    let sandbox = Sandbox::new();
    let program = "size N = 4\nsize STRIDE = 2\ninput x: f32[i=N]\ndim j = 4\noutput y = x[j*STRIDE] else 0\n";
    sandbox.program("stride.lw", program);
    for device in ["interp", "x86"] {
        let set = "STRIDE=9223372032559808512";
        let told = sandbox.fail(1, &["run", "stride.lw", "--device", device, "--set", set]);
        for part in [
            "`y`",
            "STRIDE*j",
            "STRIDE = 9223372032559808512",
            "--set SIZE=VALUE",
        ] {
            assert!(told.contains(part), "{device}: {part} is missing: {told}");
        }
    }
}

#[test]
fn devices_are_listed_where_no_tool_is_found_on_the_path() {
    let sandbox = Sandbox::new();
    let listed = sandbox
        .command(&["devices"])
        .env("PATH", sandbox.path("empty"))
        .output()
        .expect("the binary was built");
    let text = String::from_utf8_lossy(&listed.stdout);
    assert_eq!(listed.status.code(), Some(0), "{text}");
    for name in ["x86", "interp", "gccjit", "cc"] {
        assert!(text.contains(name), "{name} is missing: {text}");
    }
}
