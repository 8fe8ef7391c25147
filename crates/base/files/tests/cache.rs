//! What is kept and what is not: hits, damage, several backends, several writers, what belongs to others.

use loopwright_files::cache::{Cache, CacheError, Key, clear, entries};
use std::fs;
use std::path::{Path, PathBuf};

const LOG: &str = "cc -o x\nwarning: \"\r\"\n";
const IMAGE: &[u8] = &[0, 10, 255, 1];
const FRAMES: &[u8] = b"module.c:1:1:f\t16\tstatic\n";

/// A directory in which a new one is made for the cache.
fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().join("cache");
    (directory, root)
}

fn open(root: &Path, backend: &str) -> Cache {
    Cache::open(root, backend).expect("the directory is ours")
}

fn keep(cache: &Cache, key: &Key) {
    cache
        .insert(key, &["f"], LOG, &[("image", IMAGE), ("frames", FRAMES)])
        .expect("it can be written");
}

fn is_there(cache: &Cache, key: &Key) -> bool {
    cache.lookup(key).expect("it can be read").is_some()
}

/// The names of all files in a backend's directory but the tag, in order.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("the directory is there")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("a name of ours"))
        .filter(|name| name != "CACHEDIR.TAG")
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_kept_is_found() {
    let (_guard, root) = fresh();
    let cache = open(&root, "one");
    let key = Key::of(["a"]);
    assert!(!is_there(&cache, &key));
    keep(&cache, &key);

    // As another process would open it.
    let cache = open(&root, "one");
    let entry = cache.lookup(&key).expect("it can be read");
    let entry = entry.expect("it was kept");
    assert_eq!(entry.bytes("image"), Some(IMAGE));
    assert_eq!(entry.bytes("frames"), Some(FRAMES));
    assert_eq!(entry.bytes("so"), None);
    assert_eq!(entry.log(), LOG);
    let image = fs::read(cache.path(&key, "image")).expect("it lies there");
    assert_eq!(image, IMAGE);
    assert!(!is_there(&cache, &Key::of(["b"])));
    assert!(!is_there(&open(&root, "two"), &key));
}

#[test]
fn a_new_entry_takes_the_place_of_the_old() {
    let (_guard, root) = fresh();
    let cache = open(&root, "one");
    let key = Key::of(["a"]);
    keep(&cache, &key);
    cache
        .insert(&key, &["g"], "", &[("image", b"new")])
        .expect("it can be written");
    let entry = cache.lookup(&key).expect("it can be read");
    let entry = entry.expect("it was kept");
    assert_eq!(entry.bytes("image"), Some(&b"new"[..]));
    assert_eq!(entry.bytes("frames"), None);
    let listed = entries(&root).expect("it can be listed");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].kernels, ["g"]);
}

#[test]
fn every_wrong_byte_makes_an_entry_absent() {
    let (_guard, root) = fresh();
    let cache = open(&root, "one");
    let key = Key::of(["a"]);
    keep(&cache, &key);
    for extension in ["image", "frames", "meta"] {
        let path = cache.path(&key, extension);
        let whole = fs::read(&path).expect("the file");
        let check = |bytes: &[u8], what: &str| {
            fs::write(&path, bytes).expect("the file is ours");
            assert!(!is_there(&cache, &key), "{extension}: {what}");
        };
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            check(&damaged, &format!("byte {at} is wrong"));
            check(&whole[..at], &format!("only {at} bytes"));
        }
        check(&[&whole[..], b"\n"].concat(), "a byte too many");
        fs::remove_file(&path).expect("the file is ours");
        assert!(!is_there(&cache, &key), "{extension}: removed");
        fs::write(&path, &whole).expect("the file is ours");
        assert!(is_there(&cache, &key), "{extension}: whole again");
    }
}

#[test]
fn entries_of_all_backends_are_listed_and_cleared() {
    let (_guard, root) = fresh();
    assert!(entries(&root).expect("none").is_empty());
    assert_eq!(clear(&root).expect("none").count, 0);

    let (one, two) = (open(&root, "one"), open(&root, "two"));
    let (a, b) = (Key::of(["a"]), Key::of(["b"]));
    keep(&one, &a);
    keep(&one, &b);
    keep(&two, &a);
    let listed = entries(&root).expect("it can be listed");
    let mut found: Vec<_> = listed
        .iter()
        .map(|entry| (entry.backend.as_str(), &entry.key))
        .collect();
    found.sort();
    let mut expected = [("one", &a), ("one", &b), ("two", &a)];
    expected.sort();
    assert_eq!(found, expected);
    assert!(listed.is_sorted_by_key(|entry| entry.created));
    for entry in &listed {
        assert_eq!(entry.kernels, ["f"]);
        assert!(entry.bytes > (IMAGE.len() + FRAMES.len() + LOG.len()) as u64);
    }

    let cleared = clear(&root).expect("it can be cleared");
    assert_eq!(cleared.count, 3);
    let bytes: u64 = listed.iter().map(|entry| entry.bytes).sum();
    assert_eq!(cleared.bytes, bytes);
    assert!(entries(&root).expect("it can be listed").is_empty());
    assert!(!is_there(&one, &a));
    assert!(names(&root.join("one")).is_empty());
    keep(&one, &a);
    assert!(is_there(&one, &a), "it is a cache as before");
}

#[test]
fn clearing_takes_what_is_damaged_and_leaves_what_is_not_ours() {
    let (_guard, root) = fresh();
    let key = Key::of(["a"]);
    let cache = open(&root, "one");
    keep(&cache, &key);
    let write = |path: &Path| fs::write(path, "x").expect("the directory is ours");
    // Left behind by processes that ended too early, or by another version.
    write(&cache.path(&key, "meta"));
    write(&cache.path(&Key::of(["b"]), "so"));
    write(&root.join("one/.new-x1y2z3"));
    // Somebody else's.
    write(&root.join("one/notes.c"));
    let elsewhere = root.join("elsewhere");
    fs::create_dir(&elsewhere).expect("the directory is ours");
    write(&elsewhere.join(format!("{key}.so")));
    write(&root.join("a-file"));

    assert!(entries(&root).expect("it can be listed").is_empty());
    let cleared = clear(&root).expect("it can be cleared");
    assert_eq!(cleared.count, 1);
    assert_eq!(names(&root.join("one")), ["notes.c"]);
    assert_eq!(names(&elsewhere), [format!("{key}.so")]);
    assert_eq!(names(&root), ["a-file", "elsewhere", "one"]);
}

#[test]
fn several_writers_agree() {
    let (_guard, root) = fresh();
    let keys: Vec<Key> = (0..3u8).map(|part| Key::of([[part]])).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let cache = open(&root, "one");
                    for key in &keys {
                        keep(&cache, key);
                        assert!(is_there(&cache, key), "what was written twice is the same");
                    }
                }
            });
        }
    });
    assert_eq!(entries(&root).expect("it can be listed").len(), 3);
    let names = names(&root.join("one"));
    assert_eq!(names.len(), 9, "nothing half-written is left: {names:?}");
}

#[test]
fn names_cannot_lead_elsewhere() {
    let (_guard, root) = fresh();
    for name in ["", ".", "..", "a/b", "../one", "a.b", "ä"] {
        let error = Cache::open(&root, name).expect_err("it is not a name");
        assert!(matches!(error, CacheError::Name { .. }), "{error}");
    }
    assert!(!root.exists(), "nothing was made");
    let cache = open(&root, "one");
    for extension in ["", "meta", "a/b", "a.b"] {
        let error = cache
            .insert(&Key::of(["a"]), &[], "", &[(extension, b"x")])
            .expect_err("it is not a name");
        assert!(matches!(error, CacheError::Name { .. }), "{error}");
    }
    assert!(names(&root.join("one")).is_empty(), "nothing was written");
}

#[test]
fn errors_say_what_cannot_be_done() {
    let (_guard, root) = fresh();
    fs::write(&root, "a file").expect("the directory is ours");
    for backend in ["one", "no name"] {
        let error = Cache::open(&root, backend).expect_err("there is a file in its place");
        let said = error.to_string();
        assert!(said.starts_with("cannot "), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn directories_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_guard, root) = fresh();
    open(&root, "one");
    let directory = root.join("one");
    let change = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    for path in [&root, &directory] {
        let mode = fs::metadata(path)
            .expect("it was made")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }
    for (path, mode) in [(&root, 0o775), (&directory, 0o777), (&directory, 0o702)] {
        change(path, mode);
        let error = Cache::open(&root, "one").expect_err("anybody could put code there");
        assert!(matches!(error, CacheError::NotPrivate { .. }), "{error}");
        let expected = format!(
            "cannot use the cache directory {}: others may write to it (mode {mode:o}), \
             and code from it would be run; chmod go-w it",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        change(path, 0o700);
    }
    change(&root, 0o755);
    open(&root, "one");
}
