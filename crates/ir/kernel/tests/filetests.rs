//! Small kernels with what is expected of them written beside: every `.lwk` file under
//! `tests/filetests`. The first line of a file says what is done with it.
//!
//! - `# test: print`: reading and printing gives the same text, from the header line on.
//! - `# test: validate`: each module (separated by `# ---`) is valid, or has the error that stands
//!   behind the offending line as `# error: part of the message`; parse errors count.
//! - `# test: pass NAME[, NAME]`: after these passes the module reads as what follows `# expected:`.
//! - `# test: run`: each `# run: @kernel(a = f32[1.0, 2.0], n = 2) -> a = f32[2.0, 4.0]` line holds
//!   on the interpreter. `local = 64 bytes` is an argument in local space; `grid(8, 1, 1)` and
//!   `group(4, 1, 1)` may stand before the arrow, and `error: part of the message` after it.
//!
//! `BLESS=1 cargo test -p loopwright-kernel --test filetests` writes what is found into the files.

use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, Program};
use loopwright_kernel::{Access, Function, Module, Param, Space, Type, parse, passes, print};
use loopwright_ops::{DType, Scalar, parse_scalar};
use loopwright_text::Source;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What a file's text should be, or what is wrong with it.
type Outcome = Result<String, String>;

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(
        !files.is_empty(),
        "there are filetests under {}",
        root.display()
    );
    let bless = std::env::var_os("BLESS").is_some();
    let mut failures = String::new();
    for file in &files {
        let name = file
            .strip_prefix(&root)
            .unwrap_or(file)
            .display()
            .to_string();
        let text = std::fs::read_to_string(file).expect("a filetest can be read");
        match run_file(&name, &text) {
            Ok(found) if found == text => {}
            Ok(found) if bless => std::fs::write(file, found).expect("a filetest can be written"),
            Ok(found) => {
                let _ = writeln!(failures, "--- {name}: {}", first_difference(&text, &found));
            }
            Err(message) => {
                let _ = writeln!(failures, "--- {name}: {message}");
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "lwk") {
            files.push(path);
        }
    }
}

fn first_difference(expected: &str, found: &str) -> String {
    let mut line = 0;
    let (mut a, mut b) = (expected.lines(), found.lines());
    loop {
        line += 1;
        match (a.next(), b.next()) {
            (None, None) => return "only line breaks differ".to_owned(),
            (x, y) if x == y => {}
            (x, y) => {
                let show = |side: Option<&str>| side.unwrap_or("(end of file)").to_owned();
                return format!(
                    "line {line} differs\n  expected: {}\n  found:    {}",
                    show(x),
                    show(y)
                );
            }
        }
    }
}

fn run_file(name: &str, text: &str) -> Outcome {
    let first = text.lines().next().unwrap_or_default();
    let command = first
        .strip_prefix("# test: ")
        .ok_or("the first line must be `# test: ...`")?;
    match command.split_once(' ').unwrap_or((command, "")) {
        ("print", "") => test_print(name, text),
        ("validate", "") => Ok(test_validate(name, text)),
        ("pass", passes) => test_pass(name, text, passes),
        ("run", "") => test_run(name, text),
        _ => Err(format!("unknown test `{command}`")),
    }
}

fn read(name: &str, text: &str) -> Result<Module, String> {
    let source = Source::new(name, text);
    parse(&source).map_err(|error| format!("\n{}", error.render(&source)))
}

fn test_print(name: &str, text: &str) -> Outcome {
    let start = text.find("loopwright kernel").ok_or("no header line")?;
    let module = read(name, text)?;
    let printed = print(&module);
    let again = read(name, &printed)?;
    if again != module {
        return Err(format!("printed and read again it differs:\n{printed}"));
    }
    Ok(format!("{}{printed}", &text[..start]))
}

/// Checks each module of the file and gives the text with the errors found beside their lines.
fn test_validate(name: &str, text: &str) -> String {
    const MARK: &str = "# error: ";
    let mut out = String::new();
    let mut from = 0;
    let lines: Vec<&str> = text.lines().collect();
    for part in lines.split(|line| line.starts_with("# ---")) {
        if from > 0 {
            out.push_str(lines[from - 1]);
            out.push('\n');
        }
        // Empty lines in place of what stands before keep the numbers of lines.
        let source = Source::new(name, "\n".repeat(from) + &part.join("\n"));
        let empty = part
            .iter()
            .all(|line| line.is_empty() || line.starts_with('#'));
        let found = parse(&source).err().filter(|_| !empty).map(|error| {
            let (line, _) = source.position(error.labels[0].span.start);
            (line - 1, error.message)
        });
        for (index, line) in part.iter().enumerate() {
            let (code, expected) = match line.split_once(MARK) {
                Some((code, expected)) => (code.trim_end(), Some(expected)),
                None => (*line, None),
            };
            out.push_str(code);
            match &found {
                Some((at, message)) if *at == from + index => {
                    // A part of the message is enough, and stays as it was written.
                    let shown = expected.filter(|part| message.contains(part));
                    let _ = write!(out, "  {MARK}{}", shown.unwrap_or(message));
                }
                _ => {}
            }
            out.push('\n');
        }
        from += part.len() + 1;
    }
    out
}

fn test_pass(name: &str, text: &str, names: &str) -> Outcome {
    const MARK: &str = "# expected:\n";
    let input = text.find(MARK).map_or(text, |at| &text[..at]);
    let mut module = read(name, input)?;
    for pass in names.split(',').map(str::trim) {
        let pass = passes::by_name(pass).ok_or(format!("no pass has the name `{pass}`"))?;
        pass(&mut module);
    }
    let printed = print(&module);
    if read(name, &printed)? != module {
        return Err(format!("printed and read again it differs:\n{printed}"));
    }
    Ok(format!("{input}{MARK}{printed}"))
}

fn test_run(name: &str, text: &str) -> Outcome {
    let module = read(name, text)?;
    let program = Program::new(&module).map_err(|error| error.to_string())?;
    let mut out = String::new();
    for line in text.lines() {
        match line.strip_prefix("# run: ") {
            Some(directive) => {
                let (call, expected) = directive.split_once(" -> ").unwrap_or((directive, ""));
                let found = run_directive(&module, &program, call)
                    .map_err(|message| format!("`{line}`: {message}"))?;
                let keep = match expected.strip_prefix("error: ") {
                    Some(part) => found.starts_with("error: ") && found.contains(part),
                    None => false,
                };
                let shown = if keep { expected } else { &found };
                let _ = writeln!(out, "# run: {call} -> {shown}");
            }
            None => {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    Ok(out)
}

/// An argument that outlives the call.
enum Held {
    Read(Vec<u8>),
    Write(DType, Vec<u8>),
    Scalar(Scalar),
    Local(u64),
}

/// Runs `@kernel(name = value, ...) [grid(x, y, z)] [group(x, y, z)]` and gives what the kernel may
/// have written, or its error.
fn run_directive(module: &Module, program: &Program, call: &str) -> Outcome {
    let (head, rest) = call.split_once('(').ok_or("expected `@kernel(...)`")?;
    let kernel = head.trim().trim_start_matches('@');
    let (arguments, rest) = rest.split_once(')').ok_or("expected `)`")?;
    let mut grid = Grid::default();
    for option in rest
        .split_inclusive(')')
        .map(str::trim)
        .filter(|o| !o.is_empty())
    {
        let sizes = |text: &str| -> Result<[u64; 3], String> {
            let inner = text.trim_start_matches('(').trim_end_matches(')');
            let sizes: Result<Vec<u64>, _> = inner.split(',').map(|s| s.trim().parse()).collect();
            sizes
                .ok()
                .and_then(|s| s.try_into().ok())
                .ok_or(format!("bad sizes `{text}`"))
        };
        if let Some(text) = option.strip_prefix("grid") {
            grid.global = sizes(text)?;
        } else if let Some(text) = option.strip_prefix("group") {
            grid.local = sizes(text)?;
        } else {
            return Err(format!("unknown option `{option}`"));
        }
    }
    let function = module
        .functions
        .iter()
        .find(|function| function.name == kernel)
        .ok_or("no such kernel")?;
    let mut held = Vec::new();
    let mut texts = split_arguments(arguments).into_iter();
    for param in &function.params {
        let name = &function.values[param.value].name;
        let (given, value) = texts
            .next()
            .and_then(|argument| argument.split_once('='))
            .ok_or(format!("no argument for `{name}`"))?;
        if given.trim() != name {
            return Err(format!("expected `{name} = ...`, found `{given}`"));
        }
        held.push(argument(function, param, value.trim())?);
    }
    let mut args: Vec<Argument> = held
        .iter_mut()
        .map(|held| match held {
            Held::Read(bytes) => Argument::Read(bytes),
            Held::Write(_, bytes) => Argument::Write(bytes),
            Held::Scalar(scalar) => Argument::Scalar(*scalar),
            Held::Local(bytes) => Argument::Local(*bytes),
        })
        .collect();
    if let Err(error) = program.run(kernel, &mut args, grid, Some(1_000_000)) {
        return Ok(format!("error: {error}"));
    }
    let mut found = Vec::new();
    for (param, held) in function.params.iter().zip(&held) {
        if let Held::Write(dtype, bytes) = held {
            let name = &function.values[param.value].name;
            found.push(format!(
                "{name} = {dtype}[{}]",
                show_elements(*dtype, bytes)
            ));
        }
    }
    Ok(found.join(", "))
}

/// Splits at commas that stand outside of brackets.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn argument(function: &Function, param: &Param, text: &str) -> Result<Held, String> {
    match function.ty(param.value) {
        Type::Scalar(dtype) => parse_scalar(*dtype, text)
            .map(Held::Scalar)
            .map_err(|error| error.to_string()),
        Type::Pointer(Space::Local, _) => text
            .strip_suffix(" bytes")
            .and_then(|bytes| bytes.parse().ok())
            .map(Held::Local)
            .ok_or(format!("expected `N bytes`, found `{text}`")),
        Type::Pointer(..) => {
            let (dtype, elements) = text
                .strip_suffix(']')
                .and_then(|text| text.split_once('['))
                .ok_or(format!("expected `dtype[...]`, found `{text}`"))?;
            let dtype: DType = dtype.parse().map_err(|error| format!("{error}"))?;
            let mut bytes = Vec::new();
            for element in elements.split(',').map(str::trim).filter(|e| !e.is_empty()) {
                let scalar = parse_scalar(dtype, element).map_err(|error| error.to_string())?;
                bytes.extend_from_slice(&scalar.bits().to_le_bytes()[..dtype.bytes()]);
            }
            Ok(if param.access == Access::Read {
                Held::Read(bytes)
            } else {
                Held::Write(dtype, bytes)
            })
        }
        _ => Err("the parameter is no scalar or pointer".to_owned()),
    }
}

fn show_elements(dtype: DType, bytes: &[u8]) -> String {
    let elements = bytes.chunks(dtype.bytes()).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        Scalar::from_bits(dtype, u64::from_le_bytes(word)).to_string()
    });
    elements.collect::<Vec<_>>().join(", ")
}
