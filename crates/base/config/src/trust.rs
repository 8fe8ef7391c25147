//! Whether a project's file may name code, caches and output files.
//!
//! `loopwright.toml` of the working directory belongs to whoever made the directory: a cloned repository, an unpacked
//! archive. Whoever works there has not said that its code may be run. So options that name paths count only once the
//! user has allowed the file (`loopwright allow`), as it is at that moment: the answer is kept under a hash of the file's
//! path and contents, in the user's own configuration directory. A file that somebody else can change, or that stands where
//! anybody can put one, is passed over altogether until then.

use crate::environment::Environment;
use crate::error::ConfigError;
use crate::file::{PROJECT_FILE, Text};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of what is allowed, below the directory for configurations.
const ALLOWED: &str = "loopwright/allowed";

/// How far a file is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// In everything: the user named it, it is the user's own, or it was allowed.
    Full,
    /// In what names no paths.
    Values,
    /// In nothing, for this reason.
    Nothing(String),
}

/// What was allowed or denied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The file that it is about, by its real path.
    pub file: PathBuf,
    /// For what is denied: whether it was allowed before.
    pub changed: bool,
}

/// Allows the `loopwright.toml` of a directory, as it is now, to name code, caches and output files.
///
/// # Errors
/// A file that cannot be read, and a configuration directory that cannot be written.
pub fn allow(directory: &Path) -> Result<Decision, ConfigError> {
    allow_with(directory, &Environment::new(std::env::vars_os()))
}

/// Takes back what was allowed for the `loopwright.toml` of a directory, whatever it held then.
///
/// # Errors
/// As [`allow`].
pub fn deny(directory: &Path) -> Result<Decision, ConfigError> {
    deny_with(directory, &Environment::new(std::env::vars_os()))
}

fn allow_with(directory: &Path, environment: &Environment) -> Result<Decision, ConfigError> {
    let file = directory.join(PROJECT_FILE);
    let text = Text::read(&file)?;
    // What is wrong with it is told now, and not later.
    crate::file::parse(&file, &text)?;
    let file = real_path(&file)?;
    let folder = allowed_folder(environment).ok_or_else(|| no_folder(&file))?;
    let failed = |error: io::Error| ConfigError::Allow {
        path: folder.clone(),
        reason: loopwright_files::reason(&error),
    };
    create_private(&folder).map_err(failed)?;
    check_own(&folder).map_err(failed)?;
    let entry = folder.join(key(&file, &text.text));
    let changed = !entry.is_file();
    let path = file.as_os_str().as_encoded_bytes();
    loopwright_files::write_private(&entry, path).map_err(failed)?;
    Ok(Decision { file, changed })
}

fn deny_with(directory: &Path, environment: &Environment) -> Result<Decision, ConfigError> {
    let file = directory.join(PROJECT_FILE);
    // The file may be gone; its directory has to be there.
    let directory = real_path(directory)?;
    let file = match file.symlink_metadata() {
        Ok(_) => real_path(&file)?,
        Err(_) => directory.join(PROJECT_FILE),
    };
    let folder = allowed_folder(environment).ok_or_else(|| no_folder(&file))?;
    let failed = |error: io::Error| ConfigError::Allow {
        path: folder.clone(),
        reason: loopwright_files::reason(&error),
    };
    let mut changed = false;
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Decision { file, changed });
        }
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?.path();
        let about = std::fs::read(&entry).map_err(failed)?;
        if about == file.as_os_str().as_encoded_bytes() {
            std::fs::remove_file(&entry).map_err(failed)?;
            changed = true;
        }
    }
    Ok(Decision { file, changed })
}

/// How far the file that was found in the working directory is trusted.
pub(crate) fn of_project(path: &Path, text: &Text, environment: &Environment) -> Trust {
    if is_allowed(path, &text.text, environment) {
        return Trust::Full;
    }
    match objection(path, text) {
        Some(reason) => Trust::Nothing(reason),
        None => Trust::Values,
    }
}

fn is_allowed(path: &Path, text: &str, environment: &Environment) -> bool {
    let (Some(folder), Ok(file)) = (allowed_folder(environment), path.canonicalize()) else {
        return false;
    };
    // What others could have put there says nothing about what the user wants.
    check_own(&folder).is_ok() && folder.join(key(&file, text)).is_file()
}

/// Where it is kept what is allowed; `None` where the user has no directory for configurations.
fn allowed_folder(environment: &Environment) -> Option<PathBuf> {
    let shared = environment.shared_directory("XDG_CONFIG_HOME", ".config")?;
    Some(shared.join(ALLOWED))
}

/// The name under which an answer is kept: another path or one other byte is another name.
fn key(file: &Path, text: &str) -> String {
    let path = file.as_os_str().as_encoded_bytes();
    let mut hash = blake3::Hasher::new();
    hash.update(&(path.len() as u64).to_le_bytes());
    hash.update(path);
    hash.update(text.as_bytes());
    hash.finalize().to_hex().to_string()
}

fn real_path(path: &Path) -> Result<PathBuf, ConfigError> {
    path.canonicalize().map_err(|error| ConfigError::Read {
        path: path.to_owned(),
        reason: loopwright_files::reason(&error),
    })
}

fn no_folder(file: &Path) -> ConfigError {
    ConfigError::Allow {
        path: file.to_owned(),
        reason: "there is no place to keep the answer: neither XDG_CONFIG_HOME nor HOME is an \
                 absolute path"
            .to_owned(),
    }
}

/// Who else could have written the file or put it there, if anybody could.
#[cfg(unix)]
fn objection(path: &Path, text: &Text) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    const ROOT: u32 = 0;
    let own = rustix::process::geteuid().as_raw();
    let stranger = |owner: u32| owner != own && owner != ROOT;
    if stranger(text.data.uid()) {
        return Some(format!("it belongs to user {}", text.data.uid()));
    }
    // The name's own folder, where a link is put by whoever may write to it, and the one that a link leads to.
    let real = path.canonicalize().ok()?;
    [path, &real].into_iter().find_map(|file| {
        let folder = loopwright_files::directory_of(file).metadata().ok()?;
        if stranger(folder.uid()) {
            return Some(format!("its folder belongs to user {}", folder.uid()));
        }
        let everybody = folder.mode() & 0o002 != 0;
        everybody.then(|| {
            let mode = folder.mode() & 0o7777;
            format!("everybody may write to its folder (mode {mode:o})")
        })
    })
}

/// Other systems have other rules, which nobody has written down here yet.
#[cfg(not(unix))]
fn objection(_: &Path, _: &Text) -> Option<String> {
    None
}

#[cfg(unix)]
fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Refuses a folder that others can put something into.
#[cfg(unix)]
fn check_own(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let data = folder.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if data.uid() == own && data.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "others could write to it (owner {}, mode {:o}); `chmod go-w` it",
            data.uid(),
            data.mode() & 0o777
        ),
    ))
}

#[cfg(not(unix))]
fn check_own(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home {
        folder: tempfile::TempDir,
        environment: Environment,
    }

    impl Home {
        fn new() -> Home {
            let folder = tempfile::tempdir().expect("a temporary directory");
            let home = folder.path().join("home");
            std::fs::create_dir_all(folder.path().join("project")).expect("room");
            let variables = [("HOME".into(), home.into_os_string())];
            Home {
                folder,
                environment: Environment::new(variables),
            }
        }

        fn project(&self) -> PathBuf {
            self.folder.path().join("project")
        }

        fn write(&self, text: &str) {
            std::fs::write(self.project().join(PROJECT_FILE), text).expect("room");
        }

        fn trust(&self) -> Trust {
            let file = self.project().join(PROJECT_FILE);
            let text = Text::read(&file).expect("it is there");
            of_project(&file, &text, &self.environment)
        }
    }

    #[test]
    fn an_answer_is_for_one_path_and_one_content() {
        let home = Home::new();
        home.write("plugin = \"a.so\"\n");
        assert_eq!(home.trust(), Trust::Values);
        let allowed = allow_with(&home.project(), &home.environment).expect("room");
        assert!(allowed.changed);
        assert_eq!(home.trust(), Trust::Full);
        // Another content, then the same again.
        home.write("plugin = \"b.so\"\n");
        assert_eq!(home.trust(), Trust::Values);
        home.write("plugin = \"a.so\"\n");
        assert_eq!(home.trust(), Trust::Full);
        // The same content elsewhere.
        let other = home.folder.path().join("other");
        std::fs::create_dir(&other).expect("room");
        std::fs::rename(home.project().join(PROJECT_FILE), other.join(PROJECT_FILE)).expect("room");
        let file = other.join(PROJECT_FILE);
        let text = Text::read(&file).expect("it is there");
        assert_eq!(of_project(&file, &text, &home.environment), Trust::Values);
        // Denied although the file is gone.
        let denied = deny_with(&home.project(), &home.environment).expect("room");
        assert!(denied.changed);
        home.write("plugin = \"a.so\"\n");
        assert_eq!(home.trust(), Trust::Values);
        let denied = deny_with(&home.project(), &home.environment).expect("room");
        assert!(!denied.changed);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_everybody_may_write_to_is_trusted_in_nothing_until_it_is_allowed() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = Home::new();
        home.write("threads = 2\n");
        assert_eq!(home.trust(), Trust::Values);
        for mode in [0o777, 0o1777, 0o703] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(home.project(), mode).expect("it is ours");
            assert!(matches!(home.trust(), Trust::Nothing(_)));
        }
        allow_with(&home.project(), &home.environment).expect("room");
        assert_eq!(home.trust(), Trust::Full);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_trusted_no_more_than_the_folder_that_it_leads_to() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = Home::new();
        let shared = home.folder.path().join("shared");
        std::fs::create_dir(&shared).expect("room");
        std::fs::write(shared.join("real.toml"), "threads = 2\n").expect("room");
        let link = home.project().join(PROJECT_FILE);
        std::os::unix::fs::symlink(shared.join("real.toml"), link).expect("room");
        assert_eq!(home.trust(), Trust::Values);
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&shared, mode).expect("it is ours");
        assert!(matches!(home.trust(), Trust::Nothing(_)));
    }

    #[cfg(unix)]
    #[test]
    fn answers_that_others_could_have_given_do_not_count() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = Home::new();
        home.write("trace = \"t.json\"\n");
        allow_with(&home.project(), &home.environment).expect("room");
        let folder = allowed_folder(&home.environment).expect("there is a home");
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            assert_eq!(mode(&entry.expect("an entry").path()), 0o600);
        }
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&folder, open).expect("it is ours");
        assert_eq!(home.trust(), Trust::Values);
        assert!(allow_with(&home.project(), &home.environment).is_err());
    }
}
