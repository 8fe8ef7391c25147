//! What entries are found by.

use std::fmt;

/// How many hexadecimal digits a key has: 128 bits are plenty, and the names of files stay readable.
const DIGITS: usize = 32;

/// What an entry is found by: a hash of everything the code depends on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(String);

impl Key {
    /// The key of code that depends on these parts: the source, the compiler, its flags, the calling convention.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Key {
        let mut hash = blake3::Hasher::new();
        for part in parts {
            let part = part.as_ref();
            // The length, so that nothing can move from one part to the next.
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().to_hex()[..DIGITS].to_owned())
    }

    /// The key that begins a file's name, and what is behind it.
    pub(crate) fn split(name: &str) -> Option<(Key, &str)> {
        let (digits, rest) = name.split_at_checked(DIGITS)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_key = digits.bytes().all(is_digit);
        is_key.then(|| (Key(digits.to_owned()), rest))
    }

    /// Its hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(Key::of(["ab", "c"]), Key::of(["a", "bc"]));
        assert_ne!(Key::of(["a"]), Key::of(["a", ""]));
        assert_eq!(Key::of(["a", "b"]), Key::of([b"a", b"b"]));
    }

    #[test]
    fn a_key_is_known_by_its_digits() {
        let key = Key::of(["a"]);
        assert_eq!(Key::split(&format!("{key}.so")), Some((key.clone(), ".so")));
        for other in [
            "",
            "short.so",
            &key.as_str().replace(|_| true, "G"),
            &"é".repeat(40),
        ] {
            assert_eq!(Key::split(other), None, "{other}");
        }
    }
}
