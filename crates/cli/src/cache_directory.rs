//! Where compiled code is kept between runs.

use std::ffi::OsString;
use std::path::PathBuf;

/// `$LOOPWRIGHT_CACHE_DIR`, else `$XDG_CACHE_HOME/loopwright`, else `~/.cache/loopwright`; `None`
/// where none of these is set. The backend that uses it makes it, readable by its owner alone.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    choose(|name| std::env::var_os(name))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    if let Some(own) = path("LOOPWRIGHT_CACHE_DIR") {
        return Some(own);
    }
    // The XDG specification asks to pass over relative paths.
    let shared = path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let shared = shared.or_else(|| Some(path("HOME")?.join(".cache")))?;
    Some(shared.join("loopwright"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        choose(|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        })
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let home = ("HOME", "/home/me");
        let shared = ("XDG_CACHE_HOME", "/caches");
        let own = ("LOOPWRIGHT_CACHE_DIR", "here");
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[home]), Some("/home/me/.cache/loopwright".into()));
        assert_eq!(with(&[home, shared]), Some("/caches/loopwright".into()));
        assert_eq!(with(&[home, shared, own]), Some("here".into()));
        let relative = ("XDG_CACHE_HOME", "caches");
        assert_eq!(
            with(&[home, relative]),
            Some("/home/me/.cache/loopwright".into())
        );
    }
}
