//! Every way to write a file against everything that can be at a path.
//!
//! A short seeded run is a test. A long one: `LOOPWRIGHT_CASES=200000 LOOPWRIGHT_SEED=7 cargo test -p loopwright-files
//! --test kinds any_kind -- --nocapture`.
#![cfg(unix)]

use loopwright_files::NewFile;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

const NEW: &[u8] = b"the new contents";
const OLD: &[u8] = b"what was there before, and is longer than what comes";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn make_fifo(path: &Path) {
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    );
    made.expect("a FIFO");
}

/// What a FIFO is given while `write` runs.
fn read_beside(path: &Path, write: impl FnOnce()) -> Vec<u8> {
    // Open for both, so that neither side waits for the other to open it.
    let mut end = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("a FIFO");
    write();
    let mut bytes = vec![0; NEW.len()];
    end.read_exact(&mut bytes).expect("what was written");
    bytes
}

#[test]
fn a_file_keeps_its_mode_when_it_is_replaced() {
    let folder = folder();
    let path = folder.path().join("secret");
    for (before, after) in [
        (0o600, 0o600),
        (0o640, 0o640),
        (0o666, 0o666),
        (0o755, 0o755),
        // What lends the owner's rights is not lent to other contents.
        (0o4755, 0o755),
    ] {
        fs::write(&path, OLD).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(before)).expect("it is ours");
        loopwright_files::write(&path, NEW).expect("it may be written");
        assert_eq!(fs::read(&path).expect("a file"), NEW);
        assert_eq!(mode(&path), after, "after {before:o}");
    }
}

#[test]
fn a_symbolic_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = folder();
    let (real, first, second) = (
        folder.path().join("real"),
        folder.path().join("first"),
        folder.path().join("second"),
    );
    fs::write(&real, OLD).expect("a file");
    fs::set_permissions(&real, Permissions::from_mode(0o604)).expect("it is ours");
    symlink("real", &first).expect("a link");
    symlink(&first, &second).expect("a link");
    loopwright_files::write(&second, NEW).expect("it may be written");
    assert_eq!(fs::read(&real).expect("a file"), NEW);
    assert_eq!(mode(&real), 0o604);
    assert_eq!(
        fs::read_link(&first).expect("still a link"),
        Path::new("real")
    );
    assert_eq!(fs::read_link(&second).expect("still a link"), first);
    assert_eq!(names(folder.path()), ["first", "real", "second"]);
}

#[test]
fn a_link_that_leads_nowhere_makes_its_target() {
    let folder = folder();
    let link = folder.path().join("link");
    symlink("target", &link).expect("a link");
    loopwright_files::write(&link, NEW).expect("the folder is ours");
    assert_eq!(fs::read(folder.path().join("target")).expect("made"), NEW);
    assert!(
        fs::symlink_metadata(&link)
            .expect("it is there")
            .is_symlink()
    );

    symlink("missing/target", folder.path().join("lost")).expect("a link");
    let error = loopwright_files::write(&folder.path().join("lost"), NEW);
    let error = error.expect_err("there is no such folder").to_string();
    assert!(error.contains("missing"), "{error}");
}

#[test]
fn a_circle_of_links_is_refused_and_stays() {
    let folder = folder();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    symlink(&two, &one).expect("a link");
    symlink(&one, &two).expect("a link");
    let error = loopwright_files::write(&one, NEW).expect_err("it has no end");
    assert!(error.to_string().contains("circle"), "{error}");
    assert_eq!(fs::read_link(&one).expect("still a link"), two);
}

#[test]
fn a_device_is_written_to_and_never_replaced() {
    let folder = folder();
    // Through a link: a test that fails must not replace the machine's own device.
    let link = folder.path().join("null");
    symlink("/dev/null", &link).expect("a link");
    loopwright_files::write(&link, NEW).expect("it takes everything");
    let kind = fs::metadata(&link).expect("it is there").file_type();
    assert!(kind.is_char_device());
    let error = loopwright_files::write(Path::new("/dev/full"), NEW);
    if Path::new("/dev/full").exists() {
        assert_eq!(
            error.expect_err("it is full").kind(),
            io::ErrorKind::StorageFull
        );
    }
}

#[test]
fn a_fifo_is_written_to_and_never_replaced() {
    let folder = folder();
    let path = folder.path().join("pipe");
    make_fifo(&path);
    let got = read_beside(&path, || {
        loopwright_files::write(&path, NEW).expect("somebody reads");
    });
    assert_eq!(got, NEW);
    assert!(
        fs::metadata(&path)
            .expect("it is there")
            .file_type()
            .is_fifo()
    );
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[test]
fn a_socket_is_written_to_and_never_replaced() {
    let folder = folder();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    loopwright_files::write(&path, NEW).expect("somebody listens");
    let mut got = Vec::new();
    let (mut stream, _) = listener.accept().expect("a caller");
    stream.read_to_end(&mut got).expect("what was written");
    assert_eq!(got, NEW);
    drop(listener);
    assert!(
        loopwright_files::write(&path, NEW).is_err(),
        "nobody listens"
    );
    assert!(
        fs::metadata(&path)
            .expect("it is there")
            .file_type()
            .is_socket()
    );
}

#[test]
fn a_folder_is_refused_before_anything_is_written() {
    let folder = folder();
    let error = NewFile::at(folder.path()).expect_err("it is a directory");
    assert_eq!(error.to_string(), "it is a directory");
    let error = NewFile::at(&folder.path().join("new/")).expect_err("it names a folder");
    assert!(error.to_string().contains("folder"), "{error}");
    let error = NewFile::at(&folder.path().join("missing/file")).expect_err("no folder");
    assert!(error.to_string().contains("missing"), "{error}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_in_a_folder_that_takes_no_new_files_is_overwritten() {
    let folder = folder();
    let path = folder.path().join("file");
    fs::write(&path, OLD).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o620)).expect("it is ours");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).expect("it is ours");
    let unfinished = NewFile::at(&path).and_then(|mut file| file.write_all(NEW));
    unfinished.expect("the file itself may be written");
    assert_eq!(fs::read(&path).expect("a file"), OLD, "not placed yet");
    loopwright_files::write(&path, NEW).expect("the file itself may be written");
    assert_eq!(fs::read(&path).expect("a file"), NEW);
    assert_eq!(mode(&path), 0o620);
    let other = loopwright_files::write(&folder.path().join("other"), NEW);
    // For root there are no such folders.
    if !rustix::process::geteuid().is_root() {
        let error = other.expect_err("the folder is closed");
        assert!(
            error.to_string().contains("may not be written to"),
            "{error}"
        );
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).expect("it is ours");
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("kept");
    fs::write(&path, OLD).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("it is ours");
    let written = loopwright_files::write(&path, NEW);
    match rustix::process::geteuid().is_root() {
        // Root may write everything.
        true => written.expect("root may"),
        false => {
            let error = written.expect_err("nobody may write to it");
            assert!(error.to_string().contains("mode 444"), "{error}");
            assert_eq!(fs::read(&path).expect("a file"), OLD);
        }
    }
    assert_eq!(mode(&path), 0o444);
}

#[test]
fn a_second_name_of_a_file_keeps_the_old_contents() {
    let folder = folder();
    let (path, other) = (folder.path().join("path"), folder.path().join("other"));
    fs::write(&path, OLD).expect("a file");
    fs::hard_link(&path, &other).expect("a second name");
    loopwright_files::write(&path, NEW).expect("it may be written");
    assert_eq!(fs::read(&path).expect("a file"), NEW);
    assert_eq!(fs::read(&other).expect("a file"), OLD);
}

#[test]
fn nobody_else_can_read_a_private_file_while_it_is_replaced() {
    let folder = folder();
    let path = folder.path().join("secret");
    fs::write(&path, OLD).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
    let mut file = NewFile::at(&path).expect("it may be written");
    file.write_all(NEW)
        .and_then(|()| file.flush())
        .expect("room");
    for name in names(folder.path()) {
        assert_eq!(mode(&folder.path().join(&name)), 0o600, "{name}");
    }
    file.place().expect("it may be written");
    assert_eq!(mode(&path), 0o600);
}

/// Numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit as u64) as usize
    }
}

/// What is at the end of a chain of links.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Nothing,
    NoFolder,
    Regular(u32),
    Fifo,
    Null,
    Directory,
    Circle,
}

const KINDS: [Kind; 10] = [
    Kind::Nothing,
    Kind::NoFolder,
    Kind::Regular(0o600),
    Kind::Regular(0o644),
    Kind::Regular(0o660),
    Kind::Regular(0o755),
    Kind::Fifo,
    Kind::Null,
    Kind::Directory,
    Kind::Circle,
];

/// Makes a place of that kind behind some links; gives the path to write to and the place.
fn make(kind: Kind, folder: &Path, random: &mut Random) -> (PathBuf, PathBuf, Vec<PathBuf>) {
    fs::create_dir(folder.join("inner")).expect("a folder");
    let end = match kind {
        Kind::NoFolder => folder.join("inner/missing/end"),
        _ => folder.join("inner/end"),
    };
    match kind {
        Kind::Nothing | Kind::NoFolder => {}
        Kind::Regular(mode) => {
            fs::write(&end, OLD).expect("a file");
            fs::set_permissions(&end, Permissions::from_mode(mode)).expect("it is ours");
        }
        Kind::Fifo => make_fifo(&end),
        Kind::Null => symlink("/dev/null", &end).expect("a link"),
        Kind::Directory => fs::create_dir(&end).expect("a folder"),
        Kind::Circle => symlink(&end, &end).expect("a link"),
    }
    let mut links = Vec::new();
    let mut path = end.clone();
    for at in 0..random.below(4) {
        let link = folder.join(format!("link{at}"));
        let target = match random.below(3) {
            0 => path.clone(),
            1 => path.strip_prefix(folder).expect("it is inside").to_owned(),
            _ => Path::new("./inner/..").join(path.strip_prefix(folder).expect("inside")),
        };
        symlink(target, &link).expect("a link");
        links.push(link.clone());
        path = link;
    }
    (path, end, links)
}

/// Writes in one of the ways there are.
fn write_somehow(path: &Path, way: usize) -> io::Result<()> {
    let whole = |durably: bool, pieces: usize| {
        let mut file = NewFile::at(path)?;
        for piece in NEW.chunks(pieces) {
            file.write_all(piece)?;
        }
        match durably {
            true => file.place_durably(),
            false => file.place(),
        }
    };
    match way {
        0 => loopwright_files::write(path, NEW),
        1 => loopwright_files::write_argument(path, NEW),
        2 => whole(false, 3),
        3 => whole(true, 5),
        _ => NewFile::at(path).and_then(|mut file| file.write_all(NEW)),
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn any_kind_of_place_is_written_in_any_way_as_its_kind_asks() {
    let cases = number("LOOPWRIGHT_CASES", 100);
    let seed = number("LOOPWRIGHT_SEED", 1);
    for case in 0..cases {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let folder = folder();
        let kind = KINDS[random.below(KINDS.len())];
        let (path, end, links) = make(kind, folder.path(), &mut random);
        let way = random.below(5);
        let told = format!(
            "seed {seed}, case {case}: {kind:?}, {} links, way {way}",
            links.len()
        );
        // Not placed: to a FIFO or device it is written all the same.
        let placed = way < 4;
        let result = match kind {
            Kind::Fifo => {
                let mut result = Ok(());
                let got = read_beside(&end, || result = write_somehow(&path, way));
                assert_eq!(got, NEW, "{told}");
                result
            }
            _ => write_somehow(&path, way),
        };
        let refused = matches!(kind, Kind::NoFolder | Kind::Directory | Kind::Circle);
        assert_eq!(result.is_err(), refused, "{told}: {result:?}");
        for link in &links {
            assert!(
                link.symlink_metadata().expect("it is there").is_symlink(),
                "{told}"
            );
        }
        match kind {
            Kind::Nothing if placed => assert_eq!(fs::read(&end).expect("made"), NEW, "{told}"),
            Kind::Nothing => assert!(!end.exists(), "{told}"),
            Kind::NoFolder => assert!(!end.exists(), "{told}"),
            Kind::Regular(before) => {
                let wanted = if placed { NEW } else { OLD };
                assert_eq!(fs::read(&end).expect("a file"), wanted, "{told}");
                assert_eq!(mode(&end), before, "{told}");
            }
            Kind::Fifo => assert!(
                end.metadata().expect("there").file_type().is_fifo(),
                "{told}"
            ),
            Kind::Null => {
                let data = end.metadata().expect("it is there");
                assert!(data.file_type().is_char_device(), "{told}");
                assert!(
                    end.symlink_metadata().expect("there").is_symlink(),
                    "{told}"
                );
            }
            Kind::Directory => assert!(end.is_dir(), "{told}"),
            Kind::Circle => assert_eq!(fs::read_link(&end).expect("a link"), end, "{told}"),
        }
        let left: Vec<String> = names(folder.path())
            .into_iter()
            .chain(names(&folder.path().join("inner")))
            .filter(|name| name.starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{told}: {left:?}");
    }
}
