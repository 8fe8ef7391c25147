//! `dump --out`: every stage of a program as files.

mod sandbox;

use loopwright::text::Source;
use sandbox::{Sandbox, has_compiler};

const PRODUCT: &str = "\
size M = 2, N = 3
input a: f32[i=M, k=2]
input b: f32[k, j=N]
output c = sum[k](a * b)
";

fn product() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("product.lw", PRODUCT);
    sandbox
}

/// The names in a directory, in order.
fn names(sandbox: &Sandbox, directory: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(sandbox.path(directory))
        .expect("the directory was made")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("our names are text"))
        .collect();
    names.sort();
    names
}

fn text(sandbox: &Sandbox, file: &str) -> String {
    std::fs::read_to_string(sandbox.path(file)).expect("the file was written")
}

const DUMP: [&str; 4] = ["dump", "product.lw", "--device", "interp"];

fn dump(sandbox: &Sandbox, further: &[&str]) -> String {
    sandbox.succeed(&[&DUMP, further].concat())
}

#[test]
fn every_stage_becomes_a_file() {
    let sandbox = product();
    let said = dump(&sandbox, &["--out", "stages/all"]);
    let found = names(&sandbox, "stages/all");
    let (passes, others): (Vec<String>, Vec<String>) = found
        .into_iter()
        .partition(|name| name.starts_with("kernel-") && name != "kernel-unoptimised.txt");
    assert_eq!(
        others,
        [
            "code.txt",
            "compiler.log",
            "graph.lw",
            "kernel-unoptimised.txt",
            "kernel.txt",
            "plan.txt",
            "schedule.sched",
            "tree.txt",
        ]
    );
    let mut wrote: Vec<&str> = said
        .lines()
        .map(|line| line.strip_prefix("wrote stages/all/").expect(line))
        .collect();
    wrote.sort_unstable();
    assert_eq!(
        wrote,
        names(&sandbox, "stages/all"),
        "it lists what it wrote"
    );

    for (file, stage) in [
        ("graph.lw", &["graph"][..]),
        ("schedule.sched", &["schedule"]),
        ("tree.txt", &["tree"]),
        ("kernel-unoptimised.txt", &["kernel", "--unoptimised"]),
        ("kernel.txt", &["kernel"]),
        ("code.txt", &["code"]),
        ("plan.txt", &["plan"]),
    ] {
        let shown = dump(&sandbox, &[&["--stage"], stage].concat());
        assert_eq!(
            text(&sandbox, &format!("stages/all/{file}")),
            shown,
            "{file}"
        );
    }

    // Only passes that change something have a file, and each file is a kernel.
    assert!(!passes.is_empty(), "some pass changes a matrix product");
    let mut before = text(&sandbox, "stages/all/kernel-unoptimised.txt");
    for name in &passes {
        let after = text(&sandbox, &format!("stages/all/{name}"));
        assert_ne!(after, before, "{name} changes nothing");
        let source = Source::new(name.as_str(), after.as_str());
        loopwright::kernel::parse(&source)
            .map_err(|error| error.render(&source))
            .expect(name);
        before = after;
    }
    assert!(text(&sandbox, "stages/all/compiler.log").starts_with("device: interp\n"));
}

#[test]
fn the_files_can_be_used_again() {
    let sandbox = product();
    dump(&sandbox, &["--out", "stages"]);
    let again = sandbox.succeed(&[
        "dump",
        "stages/graph.lw",
        "--device",
        "interp",
        "--schedule",
        "stages/schedule.sched",
        "--stage",
        "kernel",
    ]);
    assert_eq!(again, text(&sandbox, "stages/kernel.txt"));
}

#[test]
fn an_earlier_dump_is_replaced_and_other_files_stay() {
    let sandbox = product();
    std::fs::create_dir(sandbox.path("stages")).expect("the directory is ours");
    // Nothing is unrolled in the kernel of a product, which lowering has done.
    for name in ["kernel-01-unroll.txt", "code.c", "plan.txt", "notes.txt"] {
        sandbox.file(&format!("stages/{name}"), "old\n");
    }
    dump(&sandbox, &["--out", "stages"]);
    let first = names(&sandbox, "stages");
    for stale in ["kernel-01-unroll.txt", "code.c"] {
        assert!(
            !first.iter().any(|name| name == stale),
            "{stale} is left: {first:?}"
        );
    }
    assert_eq!(text(&sandbox, "stages/notes.txt"), "old\n");
    assert_ne!(text(&sandbox, "stages/plan.txt"), "old\n");
    assert!(!first.iter().any(|name| name.starts_with('.')), "{first:?}");
    dump(&sandbox, &["--out", "stages"]);
    assert_eq!(names(&sandbox, "stages"), first);
}

#[test]
fn one_stage_becomes_one_file() {
    let sandbox = product();
    let said = dump(&sandbox, &["--stage", "tree", "--out", "stages"]);
    assert_eq!(said, "wrote stages/tree.txt\n");
    assert_eq!(names(&sandbox, "stages"), ["tree.txt"]);
    dump(
        &sandbox,
        &["--stage", "kernel", "--unoptimised", "--out", "stages"],
    );
    assert_eq!(
        names(&sandbox, "stages"),
        ["kernel-unoptimised.txt", "tree.txt"]
    );
}

#[test]
fn without_sizes_there_is_no_plan() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "product.lw",
        "size M\ninput a: f32[i=M]\noutput b = a * 2.0\n",
    );
    let said = dump(&sandbox, &["--out", "stages"]);
    assert!(
        said.lines().any(|line| line.starts_with("no plan.txt: ")),
        "{said}"
    );
    assert!(!names(&sandbox, "stages").contains(&"plan.txt".to_owned()));
    dump(&sandbox, &["--out", "stages", "--set", "M=4"]);
    assert!(names(&sandbox, "stages").contains(&"plan.txt".to_owned()));
}

#[test]
fn a_stage_or_a_directory_is_needed() {
    let told = product().fail(2, &DUMP);
    assert!(told.contains("--stage <STAGE>"), "{told}");
    assert_eq!(
        product().fail(2, &[&DUMP[..], &["--out", "d", "--unoptimised"]].concat()),
        "error: `--unoptimised` is about the kernel; use it with `--stage kernel`\n"
    );
}

#[test]
fn a_file_is_no_directory() {
    let sandbox = product();
    assert_eq!(
        sandbox.fail(1, &[&DUMP[..], &["--out", "product.lw"]].concat()),
        "error: product.lw is not a directory\n"
    );
}

#[test]
fn the_program_is_not_written_over() {
    let sandbox = Sandbox::new();
    sandbox.program("graph.lw", PRODUCT);
    let before = text(&sandbox, "graph.lw");
    assert_eq!(
        sandbox.fail(1, &["dump", "graph.lw", "--device", "interp", "--out", "."]),
        "\
error: cannot write ./graph.lw: it is what the program is read from
 help: choose another directory
"
    );
    assert_eq!(text(&sandbox, "graph.lw"), before);
}

#[test]
fn a_compiler_that_fails_leaves_its_log() {
    if !has_compiler() {
        return;
    }
    let sandbox = product().with_variable("LOOPWRIGHT_CFLAGS", "-std=nonsense");
    let arguments = ["dump", "product.lw", "--device", "cc", "--out", "stages"];
    let output = sandbox.command(&arguments).output();
    let output = output.expect("the binary was built");
    assert_eq!(output.status.code(), Some(1));
    let log = text(&sandbox, "stages/compiler.log");
    assert!(log.starts_with("device: cc\ncompiler: "), "{log}");
    assert!(log.contains("nonsense"), "{log}");
    let found = names(&sandbox, "stages");
    for name in ["graph.lw", "schedule.sched", "kernel.txt"] {
        assert!(found.contains(&name.to_owned()), "no {name} in {found:?}");
    }
}

#[test]
fn code_has_the_name_of_its_language() {
    if !has_compiler() {
        return;
    }
    let sandbox = product();
    sandbox.succeed(&["dump", "product.lw", "--device", "cc", "--out", "stages"]);
    assert!(text(&sandbox, "stages/code.c").contains("program"));
    let log = text(&sandbox, "stages/compiler.log");
    assert!(log.starts_with("device: cc\ncompiler: "), "{log}");
}
