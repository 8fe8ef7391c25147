//! Files that are written, read, exchanged with Python, and broken in every way.

use loopwright_array::Array;
use loopwright_formats::checkpoint::{CheckpointError, Fault, Reader, read, write};
use loopwright_ops::{DType, Scalar};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

/// What `reference/generate.py` has Python's package write.
const REFERENCE: &[u8] = include_bytes!("reference/arrays.safetensors");

fn python_name(dtype: DType) -> String {
    match dtype {
        DType::Bool => "bool".to_owned(),
        DType::F8E4M3 => "float8_e4m3fn".to_owned(),
        DType::F8E5M2 => "float8_e5m2".to_owned(),
        DType::BF16 => "bfloat16".to_owned(),
        dtype => {
            let name = dtype.name();
            let (kind, bits) = name.split_at(1);
            let kind = match kind {
                "i" => "int",
                "u" => "uint",
                _ => "float",
            };
            format!("{kind}{bits}")
        }
    }
}

/// The arrays that the script makes.
fn reference_arrays() -> BTreeMap<String, Array> {
    let counted: Vec<f64> = (0..6).map(f64::from).collect();
    let mut arrays: BTreeMap<String, Array> = DType::ALL
        .into_iter()
        .map(|dtype| {
            let array = Array::from_f64(dtype, &[2, 3], &counted).expect("six values");
            (format!("counted.{}", python_name(dtype)), array)
        })
        .collect();
    let mut more = |name: &str, dtype, shape: &[usize], values: &[f64]| {
        let array = Array::from_f64(dtype, shape, values).expect("as many as the shape has");
        arrays.insert(name.to_owned(), array);
    };
    more("scalar", DType::F64, &[], &[-0.5]);
    more("empty", DType::F32, &[3, 0], &[]);
    more("quotes \" and é\n", DType::U8, &[1], &[7.0]);
    arrays
}

fn reference_metadata() -> BTreeMap<String, String> {
    BTreeMap::from([("step".to_owned(), "three \"hundred\"".to_owned())])
}

#[test]
fn what_python_writes_is_read() {
    let reader = Reader::new(Cursor::new(REFERENCE), "arrays.safetensors").expect("it is whole");
    let checkpoint = reader.read_all().expect("it is whole");
    assert_eq!(checkpoint.arrays, reference_arrays());
    assert_eq!(checkpoint.metadata, reference_metadata());
}

#[test]
fn what_is_written_is_what_python_writes() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("arrays.safetensors");
    write(&path, &reference_arrays(), &reference_metadata()).expect("it can be written");
    assert_eq!(std::fs::read(&path).expect("it is there"), REFERENCE);
}

#[test]
fn arrays_come_one_at_a_time_and_in_any_order() {
    let mut reader =
        Reader::new(Cursor::new(REFERENCE), "arrays.safetensors").expect("it is whole");
    let arrays = reference_arrays();
    for name in [
        "scalar",
        "counted.bool",
        "empty",
        "counted.uint64",
        "counted.bool",
    ] {
        assert_eq!(
            reader.array(name).expect("it is there"),
            arrays[name],
            "{name}"
        );
    }
    let error = reader.array("counted.uint63").expect_err("it is not there");
    assert_eq!(
        error.to_string(),
        "arrays.safetensors has no array `counted.uint63`; did you mean `counted.uint64`?"
    );
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("model.safetensors");
    let array = Array::zeros(DType::F32, &[3]).expect("little memory");
    write(&path, [("x", &array)], &BTreeMap::new()).expect("it can be written");
    let before = std::fs::read(&path).expect("it is there");

    let twice = write(&path, [("x", &array), ("x", &array)], &BTreeMap::new());
    let message = twice.expect_err("one name, two arrays").to_string();
    assert!(message.ends_with("two arrays are named `x`"), "{message}");
    let kept = write(&path, [("__metadata__", &array)], &BTreeMap::new());
    let message = kept.expect_err("the name is taken").to_string();
    assert!(message.contains("`__metadata__`"), "{message}");
    assert_eq!(std::fs::read(&path).expect("it is there"), before);

    let nowhere = folder.path().join("missing").join("model.safetensors");
    let error = write(&nowhere, [("x", &array)], &BTreeMap::new()).expect_err("no directory");
    assert!(
        matches!(
            error,
            CheckpointError::File {
                action: "write",
                ..
            }
        ),
        "{error}"
    );
    let error = read(&nowhere).expect_err("no file");
    assert!(
        matches!(error, CheckpointError::File { action: "open", .. }),
        "{error}"
    );
}

/// A file of this header and as many zeros behind it.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(std::iter::repeat_n(0, data));
    bytes
}

fn refused(bytes: Vec<u8>) -> (Fault, String) {
    let error = match Reader::new(Cursor::new(bytes), "m.safetensors").and_then(Reader::read_all) {
        Ok(read) => panic!("accepted: {read:?}"),
        Err(error) => error,
    };
    let message = error.to_string();
    match error {
        CheckpointError::Broken { fault, .. } => (fault, message),
        error => panic!("another kind of error: {error}"),
    }
}

#[test]
fn every_fault_is_named_with_its_file_and_array() {
    let entry = |name: &str, dtype: &str, shape: &str, begin: u64, end: u64| {
        format!(
            "\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[{begin},{end}]}}"
        )
    };
    let one = |dtype: &str, shape: &str, begin, end| {
        format!("{{{}}}", entry("w", dtype, shape, begin, end))
    };
    let two = |a: String, b: String| format!("{{{a},{b}}}");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            vec![1, 2, 3],
            "it has 3 bytes, and the length of its header alone takes 8",
        ),
        (
            file("{}", 0)[..9].to_vec(),
            "its header is said to be 2 bytes long, and 1 follow",
        ),
        (
            b"GIF89a, or any other text".to_vec(),
            "and the format allows 100000000",
        ),
        (file("{", 0), "its header cannot be read: EOF while parsing"),
        (
            file("[]", 0),
            "its header cannot be read: invalid type: sequence, expected a map",
        ),
        (file("{} x", 0), "trailing characters"),
        (
            file(r#"{"__metadata__":{"a":1}}"#, 0),
            "`__metadata__`: `a`: invalid type: integer",
        ),
        (
            file(r#"{"__metadata__":[]}"#, 0),
            "`__metadata__`: invalid type: sequence",
        ),
        (
            file(r#"{"w":{"dtype":"F32","shape":[1]}}"#, 4),
            "the entry of `w` in its header cannot be read: missing field `data_offsets`",
        ),
        (
            file(
                r#"{"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#,
                4,
            ),
            "the entry of `w`",
        ),
        (
            file(
                &two(
                    entry("w", "F32", "[1]", 0, 4),
                    entry("w", "F32", "[1]", 4, 8),
                ),
                8,
            ),
            "its header has two entries `w`",
        ),
        (
            file(r#"{"__metadata__":{},"__metadata__":{}}"#, 0),
            "its header has two entries `__metadata__`",
        ),
        (
            file(&one("C64", "[1]", 0, 8), 8),
            "`w` has elements of type `C64`, which is not known here",
        ),
        (
            file(&one("F32", "[9007199254740993,1099511627776]", 0, 8), 8),
            "does not fit into memory",
        ),
        (
            file(&one("F32", "[0,9007199254740993,1099511627776]", 0, 0), 0),
            "does not fit into memory",
        ),
        (
            file(&one("F32", "[1]", 8, 4), 8),
            "the bytes of `w` end at 4, before they begin at 8",
        ),
        (
            file(&one("F32", "[2]", 0, 4), 4),
            "`w` is f32[2], which takes 8 bytes, and 4 are set aside for it",
        ),
        (
            file(&one("F32", "[2]", 0, 8), 7),
            "the bytes of `w` end at 8 of 7: the file was cut off",
        ),
        (
            file(
                &two(
                    entry("v", "F32", "[2]", 0, 8),
                    entry("w", "F32", "[2]", 4, 12),
                ),
                12,
            ),
            "the bytes of `v` and `w` overlap at 4",
        ),
        (
            file(
                &two(
                    entry("v", "F32", "[1]", 0, 4),
                    entry("w", "F32", "[1]", 8, 12),
                ),
                12,
            ),
            "the 4 bytes from 4 on belong to no array",
        ),
        (
            file(&one("F32", "[1]", 0, 4), 6),
            "the 2 bytes from 4 on belong to no array",
        ),
        (file("{}", 1), "the 1 bytes from 0 on belong to no array"),
    ];
    for (bytes, expected) in cases {
        let (_, message) = refused(bytes);
        assert!(
            message.starts_with("m.safetensors is not a whole safetensors file: "),
            "{message}"
        );
        assert!(message.contains(expected), "{message}\nand not: {expected}");
    }
    let mut truth = file(&one("BOOL", "[2]", 0, 2), 2);
    *truth.last_mut().expect("it has bytes") = 7;
    let (_, message) = refused(truth);
    assert!(
        message.contains("element 1 of `w` is the bool 7, and only 0 and 1 are"),
        "{message}"
    );
    let mut latin = file(&one("BOOL", "[2]", 0, 2), 2);
    latin[10] = 0xff;
    assert!(refused(latin).1.contains("byte 2 is not UTF-8"));
}

/// Cut anywhere, a file is refused, and never read as one with less in it.
#[test]
fn every_cut_is_noticed() {
    for length in 0..REFERENCE.len() {
        refused(REFERENCE[..length].to_vec());
    }
}

fn seeded() -> ProptestConfig {
    ProptestConfig {
        cases: 64,
        rng_seed: RngSeed::Fixed(0x5afe_7e45),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(seeded())]

    /// Whatever is in a file, reading it ends with arrays or an error.
    #[test]
    fn any_change_is_read_or_refused(changes in proptest::collection::vec((0..REFERENCE.len(), any::<u8>()), 1..6)) {
        let mut bytes = REFERENCE.to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let _ = Reader::new(Cursor::new(bytes), "changed").and_then(Reader::read_all);
    }

    #[test]
    fn arrays_come_back_bit_for_bit(
        arrays in proptest::collection::btree_map(
            ".{0,12}",
            (0..DType::ALL.len(), proptest::collection::vec(0usize..4, 0..4), any::<u64>()),
            0..6,
        ),
        metadata in proptest::collection::btree_map(".{0,8}", ".{0,8}", 0..4),
    ) {
        let arrays: BTreeMap<String, Array> = arrays
            .into_iter()
            .filter(|(name, _)| name != "__metadata__")
            .map(|(name, (dtype, shape, bits))| {
                let dtype = DType::ALL[dtype];
                let mut array = Array::zeros(dtype, &shape).expect("little memory");
                for at in 0..array.len() {
                    let bits = bits.wrapping_mul(2 * at as u64 + 1);
                    let value = match dtype {
                        DType::Bool => Scalar::bool(bits % 2 == 1),
                        dtype => Scalar::from_bits(dtype, bits),
                    };
                    array.set_flat(at, value);
                }
                (name, array)
            })
            .collect();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path: &Path = &folder.path().join("a.safetensors");
        write(path, &arrays, &metadata).expect("it can be written");
        let back = read(path).expect("it is whole");
        prop_assert_eq!(back.arrays, arrays);
        prop_assert_eq!(back.metadata, metadata);
    }
}
