//! A map that keeps what was used last: for caches that must not grow for ever. Compiled programs are looked up in it by
//! `compiler.rs`.

use rustc_hash::FxHashMap;
use std::borrow::Borrow;
use std::hash::Hash;

/// A map of at most so many entries: where there are more, those go that were not used for longest. What others still hold of
/// them stays theirs.
///
/// ```
/// use loopwright_compile::Recent;
///
/// let mut squares = Recent::new(8);
/// for number in 0..100 {
///     squares.insert(number, number * number);
///     assert_eq!(squares.get(&number), Some(&(number * number)));
/// }
/// assert!(squares.len() <= 8 && squares.get(&0).is_none());
/// ```
#[derive(Debug)]
pub struct Recent<K, V> {
    entries: FxHashMap<K, Entry<V>>,
    most: usize,
    /// Counts uses; the entry with the smallest number was not used for longest.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used: u64,
}

/// Programs that a compiler, and values by program that others keep, at most. A program with all its stages takes some 100 KB.
pub const RECENT_PROGRAMS: usize = 1024;

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// An empty map for at most so many entries, and at least one.
    pub fn new(most: usize) -> Recent<K, V> {
        Recent {
            entries: FxHashMap::default(),
            most: most.max(1),
            clock: 0,
        }
    }

    /// The value of a key, which is thereby used.
    pub fn get<Q>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&entry.value)
    }

    /// Puts a value there, in place of one that was, and forgets others where there are too many.
    pub fn insert(&mut self, key: K, value: V) {
        self.clock += 1;
        let used = self.clock;
        self.entries.insert(key, Entry { value, used });
        if self.entries.len() > self.most {
            self.forget();
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets an eighth of all, so that not every insertion looks for the oldest.
    fn forget(&mut self) {
        let keep = self.most - self.most / 8;
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let at = uses.len() - keep;
        let (_, oldest_kept, _) = uses.select_nth_unstable(at);
        let oldest_kept = *oldest_kept;
        self.entries.retain(|_, entry| entry.used >= oldest_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let mut recent = Recent::new(16);
        recent.insert("kept".to_owned(), 0);
        for at in 0..1000 {
            recent.insert(at.to_string(), at);
            assert_eq!(recent.get("kept"), Some(&0), "after {at}");
            assert_eq!(recent.get(at.to_string().as_str()), Some(&at));
            assert!(recent.len() <= 16);
        }
        assert_eq!(recent.get("17"), None);
        assert_eq!(recent.get("999"), Some(&999));
    }

    #[test]
    fn one_entry_is_the_least() {
        let mut recent = Recent::new(0);
        recent.insert(1, 1);
        recent.insert(2, 2);
        assert_eq!(
            (recent.get(&1).copied(), recent.get(&2).copied()),
            (None, Some(2))
        );
        assert!(!recent.is_empty());
    }
}
