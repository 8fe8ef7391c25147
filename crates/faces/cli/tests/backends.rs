//! Backends of all kinds from the command line: parts handed to others, plug-ins, one that computes nothing.

mod sandbox;

use sandbox::Sandbox;

const PROGRAM: &str = "size N = 12
input a: f32[i=N, k=N]
input b: f32[k, j=N]
product = sum[k](a * b)
output y = exp(product)
output z = max[i, j](product)
";

fn product() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("product.lw", PROGRAM);
    sandbox
}

/// What a run prints from the first result on.
fn results(text: &str) -> &str {
    let at = text.find("\ny  ");
    &text[at.unwrap_or_else(|| panic!("no results in:\n{text}"))..]
}

#[test]
fn a_part_is_handed_to_another_backend_by_its_schedule() {
    let sandbox = product();
    let whole = ["run", "product.lw", "--device", "interp", "--strict"];
    let alone = sandbox.succeed(&whole);
    let schedule = sandbox.succeed(&[
        "dump",
        "product.lw",
        "--device",
        "interp",
        "--stage",
        "schedule",
    ]);
    for to in ["interp", "manycore"] {
        let delegated = schedule.replace("product: ", &format!("product: delegate={to}, "));
        assert_ne!(delegated, schedule, "the product is a step");
        sandbox.file("parts.sched", &delegated);
        let further = ["--schedule", "parts.sched"];
        let parts = sandbox.succeed(&[&whole[..], &further, &["--verify"]].concat());
        assert_eq!(results(&parts), results(&alone), "on {to}");
        let code = [
            &[
                "dump",
                "product.lw",
                "--device",
                "interp",
                "--stage",
                "code",
            ][..],
            &further,
        ];
        let code = sandbox.succeed(&code.concat());
        assert!(code.contains(&format!("// {to} runs program_0")), "{code}");
        let tree = [
            &[
                "dump",
                "product.lw",
                "--device",
                "interp",
                "--stage",
                "tree",
            ][..],
            &further,
        ];
        let tree = sandbox.succeed(&tree.concat());
        assert!(tree.contains(&format!("delegate={to} {{")), "{tree}");
    }
    sandbox.file(
        "parts.sched",
        &schedule.replace("product: ", "product: delegate=abacus, "),
    );
    let failed = sandbox.fail(1, &[&whole[..], &["--schedule", "parts.sched"]].concat());
    assert!(
        failed.contains("there is no backend `abacus` to hand a part to"),
        "{failed}"
    );
}

#[test]
fn a_plug_in_that_is_none_is_named() {
    let sandbox = product();
    sandbox.file("notes.so", "not a library");
    let failed = sandbox.fail(1, &["devices", "--plugin", "notes.so"]);
    assert!(failed.contains("notes.so"), "{failed}");
    let failed = sandbox.fail(1, &["devices", "--plugin", "nowhere.so"]);
    assert!(failed.contains("nowhere.so"), "{failed}");
    // What lies in a directory and is no plug-in is left out, and said.
    let output = sandbox.command(&["devices", "-o", "plugins=."]).output();
    let output = output.expect("the binary was built");
    let [text, told] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        told.contains("warning") && told.contains("notes.so"),
        "{told}"
    );
    assert!(text.contains("interp"), "{text}");
}

#[test]
fn a_device_that_computes_nothing_says_so() {
    let sandbox = product();
    let text = sandbox.succeed(&["run", "product.lw", "--device", "null"]);
    assert!(text.contains("computes nothing"), "{text}");
    let code = sandbox.succeed(&["dump", "product.lw", "--device", "null", "--stage", "code"]);
    assert!(
        code.contains("// emitter C\n") && code.contains("// emitter C99\n"),
        "{code}"
    );
}
