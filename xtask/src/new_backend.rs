//! Makes the crate of a new backend: a skeleton that is found, and a conformance suite that fails until it is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::error::Error;
use crate::process;
use crate::test::Notes;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;

/// What [`print_help`](crate) says of this task.
pub(crate) const HELP: &str = "
  cargo xtask new-backend NAME [--level loop|kernel|device] [--plugin] [--into FOLDER]
        Makes the crate crates/back/NAME: a backend that is found and refuses every program, with the conformance suite as its
        tests, to be turned green. With --plugin, the crate makes a shared library that a host loads. With --into, the crate is
        FOLDER/NAME and stands outside of this workspace.
";

const MANIFEST: &str = include_str!("../template/Cargo.toml");
const README: &str = include_str!("../template/README.md");
const TESTS: &str = include_str!("../template/conformance.rs");
const COMMAND_LINE: &str = include_str!("../template/cli.rs");
const PLUGIN_README: &str = include_str!("../template/plugin_README.md");
const PLUGIN_TESTS: &str = include_str!("../template/plugin_conformance.rs");

/// Words that cannot be a backend's name: `auto` is what stands for no name, and the others are in the names of the traits
/// that the crate is about.
const RESERVED: [&str; 4] = ["auto", "loop", "kernel", "device"];

/// The level that the backend is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Loop,
    Kernel,
    Device,
}

impl Level {
    const ALL: [Level; 3] = [Level::Loop, Level::Kernel, Level::Device];

    /// Every level, linked in and as a plug-in.
    fn every_way() -> impl Iterator<Item = (Level, bool)> {
        let plugins = Level::ALL.map(|level| (level, true));
        Level::ALL
            .map(|level| (level, false))
            .into_iter()
            .chain(plugins)
    }

    fn name(self) -> &'static str {
        match self {
            Level::Loop => "loop",
            Level::Kernel => "kernel",
            Level::Device => "device",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Level::Loop => include_str!("../template/loop.rs"),
            Level::Kernel => include_str!("../template/kernel.rs"),
            Level::Device => include_str!("../template/device.rs"),
        }
    }

    /// The crates that the skeleton uses, by their folders.
    fn dependencies(self, plugin: bool) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Level::Loop => &["compile/backend", "base/ops"],
            Level::Kernel | Level::Device => &["compile/backend", "ir/kernel", "base/ops"],
        };
        let border = plugin.then_some("back/plugin");
        own.iter().copied().chain(border).collect()
    }

    /// The lines that make the backend known: to every program that it is linked into, or as a plug-in.
    fn registration(self, plugin: bool) -> String {
        match plugin {
            false => format!(
                "// The available backend with the highest priority is what `auto` takes. The interpreter has 0: below that a\n\
                 // backend is taken by its name only.\n\
                 register_backend!(-50, || Backend::{}_backend(@Type@));",
                self.name()
            ),
            true => {
                let level = match self {
                    Level::Loop => "loop ",
                    Level::Kernel => "",
                    Level::Device => "device ",
                };
                format!(
                    "// The one symbol of the shared library. The available backend with the highest priority is what `auto`\n\
                     // takes. The interpreter has 0: below that a backend is taken by its name only.\n\
                     loopwright_plugin::export_plugin!({level}@Type@, -50);"
                )
            }
        }
    }

    /// The skeleton.
    fn skeleton(self, plugin: bool) -> String {
        let source = self.source();
        let source = source.replace("@registration@", &self.registration(plugin));
        match plugin {
            false => source,
            // Only what is linked in is registered.
            true => without_imports(&source, &["Backend", "register_backend"]),
        }
    }
}

/// A source whose list of imports of the crate for backends lacks these names, wrapped as rustfmt does it.
fn without_imports(source: &str, names: &[&str]) -> String {
    const WIDTH: usize = 100;
    let begin = "use loopwright_backend::{";
    let Some((before, rest)) = source.split_once(begin) else {
        return source.to_owned();
    };
    let Some((list, after)) = rest.split_once("};") else {
        return source.to_owned();
    };
    let imports = list.split(',').map(str::trim);
    let imports = imports.filter(|name| !name.is_empty() && !names.contains(name));
    let imports: Vec<&str> = imports.collect();
    let one_line = format!("{begin}{}}};", imports.join(", "));
    if one_line.len() <= WIDTH {
        return format!("{before}{one_line}{after}");
    }
    let mut lines = String::new();
    let mut line = String::from("   ");
    for name in imports {
        if line.len() + name.len() + 2 > WIDTH {
            lines += &format!("{line}\n");
            line = String::from("   ");
        }
        line += &format!(" {name},");
    }
    format!("{before}{begin}\n{lines}{line}\n}};{after}")
}

/// The crates that the skeleton's tests and its command line use; a plug-in has no command line of its own.
fn dev_dependencies(plugin: bool) -> Vec<&'static str> {
    match plugin {
        false => vec!["faces/cli", "tools/conformance"],
        true => vec!["tools/conformance"],
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    name: String,
    level: Level,
    /// Whether it is a shared library that is loaded, and not a crate that is linked in.
    plugin: bool,
    into: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, Error> {
        let (mut name, mut level, mut plugin, mut into) = (None, Level::Kernel, false, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let missing =
                    || Error::Usage(format!("`{argument}` of `new-backend` needs a value"));
                arguments.next().ok_or_else(missing)
            };
            match argument.as_str() {
                "--level" => {
                    let asked = value()?;
                    let found = Level::ALL.into_iter().find(|level| level.name() == asked);
                    level = found.ok_or_else(|| {
                        Error::Usage(format!(
                            "there is no level `{asked}`; a backend is of the level loop, kernel or device"
                        ))
                    })?;
                }
                "--plugin" => plugin = true,
                "--into" => into = Some(PathBuf::from(value()?)),
                flag if flag.starts_with('-') => {
                    return Err(Error::Usage(format!(
                        "`new-backend` takes `--level`, `--plugin` and `--into`, not `{flag}`"
                    )));
                }
                _ if name.is_none() => name = Some(argument.clone()),
                _ => {
                    return Err(Error::Usage(format!(
                        "`new-backend` takes one name, and `{argument}` is another"
                    )));
                }
            }
        }
        let name = name.ok_or_else(|| Error::Usage("`new-backend` needs a name".to_owned()))?;
        check_name(&name)?;
        Ok(Options {
            name,
            level,
            plugin,
            into,
        })
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(letters) {
        return Err(Error::Usage(format!(
            "`{name}` cannot be the name of a crate and of a device: a small letter comes first, then small letters, \
             digits and `_`"
        )));
    }
    if RESERVED.contains(&name) {
        return Err(Error::Usage(format!(
            "`{name}` has a meaning already, so no backend can be called that"
        )));
    }
    Ok(())
}

/// Makes the crate and says what to do next.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode, Error> {
    if let Some(folder) = &options.into {
        check_outside(workspace, folder)?;
    }
    let made = make(workspace, options)?;
    print!("{}", made.next_steps(workspace, options));
    Ok(ExitCode::SUCCESS)
}

/// Cargo takes a crate below a workspace for a part of it, and refuses one that is not listed there.
fn check_outside(workspace: &Workspace, folder: &Path) -> Result<(), Error> {
    let whole = std::path::absolute(folder).map_err(file_error(folder))?;
    if whole.starts_with(&workspace.root) {
        return Err(Error::Usage(format!(
            "`--into {}` is inside of this workspace; without `--into` the crate becomes a part of it",
            folder.display()
        )));
    }
    Ok(())
}

/// A crate that was made.
struct Made {
    folder: PathBuf,
    names: Names,
}

/// What the crate and what is in it are called.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    package: String,
    library: String,
    backend: String,
}

impl Names {
    fn of(name: &str) -> Names {
        let mut backend = String::new();
        for word in name.split('_') {
            let mut letters = word.chars();
            backend.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            backend.extend(letters);
        }
        Names {
            package: format!("loopwright-{}", name.replace('_', "-")),
            library: format!("loopwright_{name}"),
            backend: backend + "Backend",
        }
    }

    /// The shared library's file.
    fn file(&self) -> String {
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        format!("{prefix}{}{suffix}", self.library)
    }
}

fn make(workspace: &Workspace, options: &Options) -> Result<Made, Error> {
    let Options {
        name,
        level,
        plugin,
        into,
    } = options;
    let names = Names::of(name);
    let inside = workspace.root.join("crates").join("back");
    let parent = match into {
        // Relative to where the person is. The manifest names other crates by their whole paths.
        Some(folder) => std::path::absolute(folder).map_err(file_error(folder))?,
        None => inside,
    };
    let folder = parent.join(name);
    let mut there = workspace.crates()?;
    there.retain(|known| known.ends_with(name));
    for taken in there.iter().chain([&folder]) {
        if taken.symlink_metadata().is_ok() {
            return Err(Error::Check(format!(
                "{} is there already, and nothing is overwritten; choose another name",
                workspace.shown(taken)
            )));
        }
    }
    let fill = |text: &str| {
        text.replace("@name@", name)
            .replace("@level@", level.name())
            .replace("@package@", &names.package)
            .replace("@crate@", &names.library)
            .replace("@Type@", &names.backend)
            .replace("@file@", &names.file())
    };
    let root = into.as_ref().map(|_| workspace.root.as_path());
    let (readme, tests) = match plugin {
        false => (README, TESTS),
        true => (PLUGIN_README, PLUGIN_TESTS),
    };
    let mut files = vec![
        ("Cargo.toml", fill(&manifest(MANIFEST, options, root))),
        ("README.md", fill(readme)),
        ("src/lib.rs", fill(&level.skeleton(*plugin))),
        ("tests/conformance.rs", fill(tests)),
    ];
    if !plugin {
        files.push(("examples/cli.rs", fill(COMMAND_LINE)));
    }
    for (file, text) in files {
        let path = folder.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(file_error(parent))?;
        }
        // Somebody may have made one since; theirs stays.
        let written = fs::File::create_new(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        written.map_err(file_error(&path))?;
    }
    Ok(Made { folder, names })
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

/// The manifest: of a member of this workspace, or of a crate elsewhere that knows where this workspace is.
fn manifest(template: &str, options: &Options, root: Option<&Path>) -> String {
    let Options { level, plugin, .. } = options;
    let dependencies = |folders: &[&str], of_tests: bool| {
        let lines = folders.iter().map(|folder| {
            let name = folder.rsplit('/').next().unwrap_or(folder);
            match root {
                // Without a version, so that it is left out where the crate is published.
                None if of_tests => format!("loopwright-{name} = {{ path = \"../../{folder}\" }}"),
                None => format!("loopwright-{name}.workspace = true"),
                // A string in single quotes takes a path as it is.
                Some(root) => {
                    let path = root.join("crates").join(folder);
                    format!("loopwright-{name} = {{ path = '{}' }}", path.display())
                }
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let about = match root {
        None => {
            "version.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
             license.workspace = true"
        }
        Some(_) => "version = \"0.1.0\"\nedition = \"2024\"\npublish = false",
    };
    let library = match plugin {
        false => "",
        // Tests are linked with the `rlib`.
        true => "\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n",
    };
    let mut text = template
        .replace("@about@", about)
        .replace("@library@", library)
        .replace(
            "@dependencies@",
            &dependencies(&level.dependencies(*plugin), false),
        )
        .replace(
            "@dev_dependencies@",
            &dependencies(&dev_dependencies(*plugin), true),
        );
    if root.is_none() {
        text += "\n[lints]\nworkspace = true\n";
    }
    text
}

impl Made {
    fn next_steps(&self, workspace: &Workspace, options: &Options) -> String {
        let Names {
            package, library, ..
        } = &self.names;
        let Options {
            name,
            level,
            plugin,
            into,
        } = options;
        let folder = workspace.shown(&self.folder);
        let (place, of) = match into {
            Some(_) => (format!("In {folder}:\n\n"), String::new()),
            None => (String::new(), format!(" -p {package}")),
        };
        if *plugin {
            let file = self.names.file();
            return format!(
                "Made {folder}, a {level} backend in a shared library that refuses every program.\n\n\
                 {place}\
                 1. cargo test{of}\n   \
                    shows what is missing; start in {folder}/src/lib.rs.\n\
                 2. cargo build --release{of}\n   \
                    makes target/release/{file}.\n\
                 3. loopwright --plugin target/release/{file} devices\n   \
                    lists `{name}`; `check --device {name}` runs the whole suite and prints its tables.\n\n\
                 The chapters \"Add a backend\" and \"Plug-ins\" are docs/backends.md and docs/plugins.md.\n",
                level = level.name(),
            );
        }
        let mut text = format!(
            "Made {folder}, a {level} backend that refuses every program.\n\n\
             {place}\
             1. cargo test{of}\n   \
                shows what is missing; start in {folder}/src/lib.rs.\n\
             2. cargo run{of} --example cli -- devices\n   \
                lists `{name}`; `check --device {name}` runs the whole suite and prints its tables.\n",
            level = level.name(),
        );
        if into.is_none() {
            text += &format!(
                "3. To have it in every build, add a line to each of\n   \
                    Cargo.toml, [workspace.dependencies]:        {package} = {{ path = \"crates/back/{name}\", version = \"0.1.0\" }}\n   \
                    crates/faces/loopwright/Cargo.toml, [dependencies]: {package}.workspace = true\n   \
                    crates/faces/loopwright/src/lib.rs:                 pub use {library} as {name};\n\
                 4. Say what it is in the manifest's `description`; `BLESS=1 cargo test -p xtask` puts it into the tables of\n   \
                    crates, and names what else the documents lack.\n\
                 5. ln -s ../../../LICENSE-APACHE ../../../LICENSE-MIT crates/back/{name}\n"
            );
        }
        text + "\nThe chapter \"Add a backend\" is docs/backends.md.\n"
    }
}

/// A suite that refuses everything takes seconds, and so does what is left to build; one that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// What every skeleton's compile says.
const REFUSAL: &str = "not written yet: start in src/lib.rs";

/// Makes a crate of every level, outside of this workspace, and sees that each is found and fails its conformance suite
/// with the message that says where to start.
pub(crate) fn check(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    let folder = workspace.target.join("xtask").join("template");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(file_error(&folder))?;
    }
    fs::create_dir_all(&folder).map_err(file_error(&folder))?;
    let mut made = Vec::new();
    for (level, plugin) in Level::every_way() {
        let way = if plugin { "_plugin" } else { "" };
        let options = Options {
            name: format!("template_{}{way}", level.name()),
            level,
            plugin,
            into: Some(folder.clone()),
        };
        let names = make(workspace, &options)?.names;
        made.push((options.name.clone(), plugin, names));
    }
    // One workspace for all of them, with this one's profile and versions, so that what is built is built once and nothing
    // has to be fetched.
    let root = workspace.root.join("Cargo.toml");
    let root = fs::read_to_string(&root).map_err(file_error(&root))?;
    let profiles = root.find("[profile.").map_or("", |at| &root[at..]);
    let text = format!("[workspace]\nresolver = \"3\"\nmembers = [\"template_*\"]\n\n{profiles}");
    let manifest = folder.join("Cargo.toml");
    fs::write(&manifest, text).map_err(file_error(&manifest))?;
    let lock = workspace.root.join("Cargo.lock");
    fs::copy(&lock, folder.join("Cargo.lock")).map_err(file_error(&lock))?;

    let cargo = |arguments: &[&str]| {
        let mut command = workspace.cargo(arguments);
        command.current_dir(&folder);
        command
    };
    if let Err(Missing(why)) = tools::toolchain_component(workspace, "fmt", "rustfmt") {
        notes.skip("formatting of new backends", why);
    } else {
        process::run(&mut cargo(&["fmt", "--check"]))?;
    }
    process::run(&mut cargo(&["test", "--no-run", "--offline", "--quiet"]))?;
    let private = std::env::temp_dir().join(format!("xtask-template-{}", std::process::id()));
    for (name, plugin, names) in made {
        let printed = |task: &str, arguments: &[&str]| {
            let log = folder.join(format!("{name}.{task}.log"));
            let mut command = cargo(arguments);
            let result = process::run_logged(&mut command, &log, LIMIT);
            let text = fs::read_to_string(&log).map_err(file_error(&log))?;
            match result {
                Ok(()) => Ok((true, text)),
                Err(Error::Exit { .. }) => Ok((false, text)),
                Err(error) => Err(error),
            }
        };
        let package = names.package.as_str();
        let (passed, text) = printed(
            "tests",
            &["test", "--offline", "-p", package, "--test", "conformance"],
        )?;
        judge(&name, passed, &text)?;
        let result = text.lines().rfind(|line| line.starts_with("test result"));
        let counts = result.and_then(|line| line.split_once(". ").map(|(_, counts)| counts));
        notes.line(format!(
            "{name}: not written yet, and its suite says so: {}",
            counts.unwrap_or("no result")
        ));
        // A command line that has it linked in, or one that loads it.
        let (package, loads) = match plugin {
            false => (package, Vec::new()),
            true => {
                let library = copied_to(&private, &workspace.target, &names)?;
                (
                    "loopwright-template-kernel",
                    vec!["--plugin".to_owned(), library],
                )
            }
        };
        let run = ["run", "--offline", "--quiet", "-p", package];
        let loads = loads.iter().map(String::as_str);
        let arguments: Vec<&str> = run
            .into_iter()
            .chain(["--example", "cli", "--"])
            .chain(loads)
            .chain(["devices"])
            .collect();
        let (_, text) = printed("devices", &arguments)?;
        if !text.lines().any(|line| line.starts_with(&name)) {
            return Err(Error::Check(format!(
                "`devices` does not list the new backend `{name}`:\n{text}"
            )));
        }
    }
    if private.exists() {
        fs::remove_dir_all(&private).map_err(file_error(&private))?;
    }
    Ok(())
}

/// The shared library of a plug-in, where nobody else can write to it: others are not loaded, and folders of builds are
/// often open to a group.
fn copied_to(private: &Path, target: &Path, names: &Names) -> Result<String, Error> {
    let file = names.file();
    // Cargo puts what it builds for tests alone a folder deeper.
    let debug = target.join("debug");
    let mut places = [debug.join(&file), debug.join("deps").join(&file)].into_iter();
    let built = places.find(|built| built.is_file()).ok_or_else(|| {
        Error::Check(format!(
            "building `{}` does not make {file} in {} or below",
            names.package,
            debug.display()
        ))
    })?;
    fs::create_dir_all(private).map_err(file_error(private))?;
    let copy = private.join(&file);
    fs::copy(&built, &copy).map_err(file_error(&copy))?;
    #[cfg(unix)]
    for (path, mode) in [(private, 0o700), (&*copy, 0o755)] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(file_error(path))?;
    }
    Ok(copy.display().to_string())
}

/// Whether a skeleton's tests have failed as they should: with what to do next, and only with that.
fn judge(name: &str, passed: bool, output: &str) -> Result<(), Error> {
    let wrong = |what: &str| Err(Error::Check(format!("`{name}`: {what}:\n{output}")));
    if passed {
        return wrong("its conformance suite passes, and it has no code");
    }
    if !output.contains(REFUSAL) {
        return wrong("its conformance suite does not say where to start");
    }
    let row = |line: &str| line.starts_with("    tables::ops_of_two_operands");
    if !output.lines().any(row) {
        return wrong("its ops do not fail by name");
    }
    if !output.contains("    nothing_is_blocked") {
        return wrong("the test of everything passes, and it has no code");
    }
    if output.contains("    it_is_found") {
        return wrong("it is not found");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, Error> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        Options::parse(&arguments)
    }

    fn message(arguments: &[&str]) -> String {
        let error = parse(arguments).expect_err("these arguments make no sense");
        error.to_string()
    }

    /// A workspace of nothing in a folder of its own.
    fn empty(of: &str) -> Workspace {
        let id = std::process::id();
        let root = std::env::temp_dir().join(format!("xtask-new-backend-{of}-{id}"));
        fs::create_dir_all(root.join("crates")).expect("there is room for a folder");
        Workspace {
            target: root.join("target"),
            root,
            ci: false,
        }
    }

    #[test]
    fn kernel_is_the_level_unless_another_is_asked_for() {
        let options = parse(&["my_npu"]).expect("a name is enough");
        assert_eq!(options.level, Level::Kernel);
        let options = parse(&["--level", "device", "my_npu"]).expect("the level exists");
        assert_eq!(options.level, Level::Device);
        assert!(!options.plugin);
        let options = parse(&["my_npu", "--plugin", "--level", "loop"]).expect("it can be one");
        assert!(options.plugin && options.level == Level::Loop);
    }

    #[test]
    fn imports_are_left_out_and_wrapped() {
        let source = "use loopwright_backend::{\n    A, Backend, C, register_backend,\n};\nrest\n";
        assert_eq!(
            without_imports(source, &["Backend", "register_backend"]),
            "use loopwright_backend::{A, C};\nrest\n"
        );
        let long = ["Abcdefghijklmnopqrstuvwxyz"; 5].join(", ");
        let wrapped = without_imports(&format!("use loopwright_backend::{{{long}}};"), &[]);
        assert!(wrapped.lines().all(|line| line.len() <= 100), "{wrapped}");
        assert_eq!(wrapped.lines().count(), 4, "{wrapped}");
    }

    #[test]
    fn names_that_make_no_crate_or_device_are_refused() {
        for name in ["", "Npu", "3d", "_x", "my-npu", "npu!", "../npu", "é"] {
            let message = message(&[name]);
            assert!(message.contains("a small letter comes first"), "{message}");
        }
        for name in RESERVED {
            assert!(message(&[name]).contains("has a meaning already"), "{name}");
        }
    }

    #[test]
    fn a_command_line_that_makes_no_sense_says_why() {
        assert!(message(&[]).contains("needs a name"));
        assert!(message(&["a", "b"]).contains("`b` is another"));
        assert!(message(&["a", "--level", "gpu"]).contains("loop, kernel or device"));
        assert!(message(&["a", "--level"]).contains("`--level` of `new-backend` needs a value"));
        assert!(message(&["a", "--force"]).contains("not `--force`"));
    }

    #[test]
    fn a_name_makes_the_names_of_the_crate_and_the_type() {
        let names = Names::of("my_npu2");
        assert_eq!(names.package, "loopwright-my-npu2");
        assert_eq!(names.library, "loopwright_my_npu2");
        assert_eq!(names.backend, "MyNpu2Backend");
    }

    #[test]
    fn every_placeholder_is_filled_in() {
        let workspace = empty("filled");
        for (level, plugin) in Level::every_way() {
            for into in [None, Some(workspace.root.join("elsewhere"))] {
                let options = Options {
                    name: format!("a_{}", level.name()),
                    level,
                    plugin,
                    into,
                };
                let made = make(&workspace, &options).expect("the folder is empty");
                for file in [
                    "Cargo.toml",
                    "README.md",
                    "src/lib.rs",
                    "tests/conformance.rs",
                ] {
                    let text = fs::read_to_string(made.folder.join(file)).expect("it was made");
                    assert!(!text.contains('@'), "{file} of {level:?}:\n{text}");
                }
                let source = fs::read_to_string(made.folder.join("src/lib.rs"));
                assert!(source.expect("it was made").contains(REFUSAL));
                let next = made.next_steps(&workspace, &options);
                let inside = options.into.is_none() && !plugin;
                assert_eq!(
                    next.contains("crates/faces/loopwright/src/lib.rs"),
                    inside,
                    "{next}"
                );
                fs::remove_dir_all(&made.folder).expect("it was made");
            }
        }
        fs::remove_dir_all(&workspace.root).expect("it was made");
    }

    #[test]
    fn a_crate_of_its_own_is_outside() {
        let workspace = empty("outside");
        let inside = workspace.root.join("somewhere");
        let error = check_outside(&workspace, &inside).expect_err("it is inside");
        assert!(
            error.to_string().contains("inside of this workspace"),
            "{error}"
        );
        assert!(check_outside(&workspace, &workspace.root.with_extension("beside")).is_ok());
        fs::remove_dir_all(&workspace.root).expect("it was made");
    }

    #[test]
    fn nothing_is_overwritten() {
        let workspace = empty("twice");
        let options = parse(&["npu"]).expect("a name is enough");
        let made = make(&workspace, &options).expect("the folder is empty");
        let file = made.folder.join("src/lib.rs");
        fs::write(&file, "mine").expect("it was made");
        let error = make(&workspace, &options).err().expect("it is there");
        let message = error.to_string();
        assert!(
            message.starts_with("crates/back/npu is there already"),
            "{message}"
        );
        assert_eq!(fs::read_to_string(&file).expect("it was made"), "mine");
        // A name of this workspace is taken everywhere: devices are chosen by it.
        let options = Options {
            into: Some(workspace.root.join("elsewhere")),
            ..options
        };
        assert!(make(&workspace, &options).is_err());
        fs::remove_dir_all(&workspace.root).expect("it was made");
    }

    #[test]
    fn a_suite_that_fails_otherwise_is_not_what_is_wanted() {
        let fails = format!(
            "x: {REFUSAL}\nfailures:\n    nothing_is_blocked\n    tables::ops_of_two_operands\n"
        );
        assert!(judge("x", false, &fails).is_ok());
        assert!(judge("x", true, &fails).is_err());
        assert!(judge("x", false, "error: could not compile").is_err());
        let lost = format!("{fails}    it_is_found\n");
        assert!(judge("x", false, &lost).is_err());
    }
}
