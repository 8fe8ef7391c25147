//! Names that are valid, unique and, where possible, those the program gave.

use rustc_hash::{FxHashMap, FxHashSet};

/// The names in use in one scope.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: FxHashSet<String>,
    /// The number to try next for a name that was asked for before, which keeps a scope with many
    /// equal names linear.
    next: FxHashMap<String, u32>,
}

impl Names {
    /// A name close to `wanted` that was not given out before and is not reserved.
    pub(crate) fn fresh(&mut self, wanted: &str, reserved: impl Fn(&str) -> bool) -> String {
        let mut stem = identifier(wanted);
        // What is reserved by its beginning stays so whatever number follows.
        if reserved(&format!("{stem}_1")) {
            stem.insert_str(0, "v_");
        }
        if !reserved(&stem) && self.taken.insert(stem.clone()) {
            return stem;
        }
        let number = self.next.entry(stem.clone()).or_insert(1);
        loop {
            let name = format!("{stem}_{number}");
            *number += 1;
            if !reserved(&name) && self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// `wanted` with everything that no identifier may hold replaced.
pub(crate) fn identifier(wanted: &str) -> String {
    let mut name = String::with_capacity(wanted.len() + 1);
    for character in wanted.chars() {
        let fits = character.is_ascii_alphanumeric() || character == '_';
        if name.is_empty() && character.is_ascii_digit() {
            name.push('v');
        }
        name.push(if fits { character } else { '_' });
    }
    if name.is_empty() {
        name.push('v');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_unique_and_not_reserved() {
        let mut names = Names::default();
        let reserved = |word: &str| word == "int" || word.starts_with("lw_");
        let mut fresh = |wanted: &str| names.fresh(wanted, reserved);
        assert_eq!(fresh("x"), "x");
        assert_eq!(fresh("x_1"), "x_1");
        assert_eq!(fresh("x"), "x_2");
        assert_eq!(fresh("int"), "int_1");
        assert_eq!(fresh("lw_runtime"), "v_lw_runtime");
        assert_eq!(fresh("2·k"), "v2_k");
        assert_eq!(fresh(""), "v");
    }
}
