//! Keeps a backend's part of a cache within its limit: what was not used for longest goes.

use crate::cache::META;
use crate::cache::contents::{entry_file, listing};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Bytes that a backend keeps at most: some ten thousand small programs.
pub const LIMIT: u64 = 1 << 30;

/// Insertions of a process between two looks at the whole directory.
const BETWEEN_LOOKS: u64 = 64;

/// An entry counts as used again when it was not for so long; sooner, nothing is written.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Notes that an entry was used: its `.meta` is as new as its last use.
pub(crate) fn touch(meta: &Path) {
    let used = fs::metadata(meta).and_then(|meta| meta.modified());
    let old = used.is_ok_and(|used| used.elapsed().is_ok_and(|since| since > DAY));
    if old && let Ok(file) = File::options().append(true).open(meta) {
        // A cache that cannot be written is still read.
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes entries where there are too many, now and then.
pub(crate) fn after_insertion(directory: &Path) {
    static INSERTIONS: AtomicU64 = AtomicU64::new(0);
    if INSERTIONS
        .fetch_add(1, Ordering::Relaxed)
        .is_multiple_of(BETWEEN_LOOKS)
    {
        trim(directory, LIMIT);
    }
}

/// One entry's files.
struct Found {
    used: SystemTime,
    bytes: u64,
}

/// Removes the entries that were not used for longest, until a backend's directory holds 7/8 of `limit` or less. What cannot be read or
/// removed is left: it is a cache.
pub(crate) fn trim(directory: &Path, limit: u64) {
    let Ok(files) = listing(directory) else {
        return;
    };
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for (name, path) in &files {
        let (Some((key, extension)), Ok(meta)) = (entry_file(name), fs::metadata(path)) else {
            continue;
        };
        let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let entry = found.entry(key.as_str().to_owned()).or_insert(Found {
            used: SystemTime::UNIX_EPOCH,
            bytes: 0,
        });
        entry.bytes += meta.len();
        // An entry that is being written has no `.meta` yet: its files are new.
        if extension == META || entry.used < used {
            entry.used = entry.used.max(used);
        }
    }
    let mut bytes: u64 = found.values().map(|entry| entry.bytes).sum();
    if bytes <= limit {
        return;
    }
    let mut oldest: Vec<(&String, &Found)> = found.iter().collect();
    oldest.sort_by_key(|(_, entry)| entry.used);
    for (key, entry) in oldest {
        if bytes <= limit / 8 * 7 {
            break;
        }
        let mut own: Vec<_> = files
            .iter()
            .filter(|(name, _)| name.starts_with(key.as_str()))
            .collect();
        // The `.meta` first: without it the rest is no entry.
        own.sort_by_key(|(name, _)| !name.ends_with(META));
        for (_, path) in own {
            let _ = fs::remove_file(path);
        }
        bytes -= entry.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Cache, Key};

    #[test]
    fn entries_that_were_not_used_for_longest_go_where_there_are_too_many() {
        let root = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(&root.path().join("cache"), "cc").expect("a cache");
        let key = |at: u64| Key::of([at.to_string()]);
        let old = SystemTime::now() - 10 * DAY;
        for at in 0..20 {
            cache
                .insert(&key(at), &["k"], "", &[("so", &[7; 1000])])
                .expect("it is kept");
            for extension in [META, "so"] {
                let file = File::options()
                    .append(true)
                    .open(cache.path(&key(at), extension));
                let time = old + Duration::from_secs(at);
                file.and_then(|file| file.set_modified(time))
                    .expect("a time");
            }
        }
        // The oldest is used once more.
        assert!(cache.lookup(&key(0)).expect("it is read").is_some());
        let directory = root.path().join("cache/cc");
        trim(&directory, 1 << 20);
        assert!(
            cache.lookup(&key(1)).expect("it is read").is_some(),
            "all fit"
        );
        trim(&directory, 8000);
        let kept: Vec<u64> = (0..20)
            .filter(|at| cache.path(&key(*at), META).exists())
            .collect();
        assert!(kept.contains(&0) && kept.contains(&19), "{kept:?}");
        assert!(!kept.contains(&2) && kept.len() < 8, "{kept:?}");
        for at in 0..20 {
            assert_eq!(
                cache.path(&key(at), "so").exists(),
                kept.contains(&at),
                "{at}"
            );
        }
    }
}
