//! Files of every kind, whole and broken.

use flate2::Compression;
use flate2::write::GzEncoder;
use loopwright_array::Array;
use loopwright_nn::data::{
    Column, ColumnType, Corpus, DataError, Dataset, ImageFolder, Random, Table, TableOptions,
    read_idx, read_images, read_npy, read_npy_as, write_npy,
};
use loopwright_ops::DType;
use std::io::Write;
use std::path::PathBuf;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A file with these bytes.
fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("it can be written");
    path
}

/// A message, without the folder that it names.
fn message(folder: &TempDir, error: &DataError) -> String {
    error
        .to_string()
        .replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn npy_files() {
    let folder = folder();
    let path = folder.path().join("a.npy");
    for dtype in DType::ALL {
        let array = Array::from_f64(dtype, &[2, 2], &[0.0, 1.0, 1.0, 0.0]).expect("four values");
        write_npy(&path, &array).expect("it can be written");
        assert_eq!(read_npy_as(&path, dtype).expect("it is whole"), array);
        match dtype {
            DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
                let error = read_npy(&path).expect_err("it names no dtype");
                assert!(
                    message(&folder, &error).starts_with("a.npy cannot be read: elements of type")
                );
            }
            _ => assert_eq!(read_npy(&path).expect("it is whole"), array),
        }
    }
    let path = file(&folder, "b.npy", b"something else");
    let error = message(&folder, &read_npy(&path).expect_err("it is not one"));
    assert!(
        error.starts_with("b.npy cannot be read: this is not an .npy file"),
        "{error}"
    );
    let error = read_npy(&folder.path().join("c.npy")).expect_err("it is not there");
    assert!(
        matches!(error, DataError::File { action: "open", .. }),
        "{error}"
    );
}

fn idx(stored: u8, sizes: &[u32], elements: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, stored, sizes.len() as u8];
    sizes
        .iter()
        .for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend_from_slice(elements);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

#[test]
fn idx_files() {
    let folder = folder();
    let half = 0.5f64.to_be_bytes();
    for (stored, dtype, elements, value) in [
        (0x08, DType::U8, &[200][..], 200.0),
        (0x09, DType::I8, &[0xff], -1.0),
        (0x0b, DType::I16, &[1, 2], 258.0),
        (0x0c, DType::I32, &[0xff, 0xff, 0xff, 0xfe], -2.0),
        (0x0d, DType::F32, &[0x3f, 0x80, 0, 0], 1.0),
        (0x0e, DType::F64, &half, 0.5),
    ] {
        let plain = idx(stored, &[1, 1], elements);
        for bytes in [plain.clone(), gzip(&plain)] {
            let array = read_idx(&file(&folder, "a.idx", &bytes)).expect("it is whole");
            assert_eq!((array.dtype(), array.shape()), (dtype, &[1, 1][..]));
            assert_eq!(array.to_f64(), [value]);
        }
    }
    let mut packed = gzip(&idx(8, &[2], &[1, 2]));
    let last = packed.len() - 5;
    packed[last] ^= 1;
    for (bytes, expected) in [
        (
            b"".to_vec(),
            "a.idx cannot be read: it ends too early: the start of an IDX file takes 4 bytes, and 0 are there",
        ),
        (
            b"text".to_vec(),
            "it is not an IDX file, which starts with two zeros",
        ),
        (
            idx(7, &[1], &[1]),
            "elements of type 0x07 are not known; 0x08 (u8)",
        ),
        (
            idx(8, &[1], &[1])[..6].to_vec(),
            "the shape takes 4 bytes, and 2 are there",
        ),
        (
            idx(8, &[2, 2], &[1, 2, 3]),
            "an array u8[2, 2] takes 4 bytes, and 3 are there",
        ),
        (idx(8, &[u32::MAX; 3], &[1]), "does not fit into memory"),
        (
            idx(8, &[u32::MAX], &[1]),
            "takes 4294967295 bytes, and the file holds 9 at most",
        ),
        (
            idx(8, &[2], &[1, 2, 3]),
            "more follows after the array u8[2]",
        ),
        (packed, "it cannot be unpacked: "),
    ] {
        let error = read_idx(&file(&folder, "a.idx", &bytes)).expect_err(expected);
        let error = message(&folder, &error);
        assert!(error.contains(expected), "{error}\nand not: {expected}");
    }
}

#[test]
fn tables() {
    let text =
        "\u{feff}name, size ,count,new\n\"a, \"\"b\"\"\", 1.5,3,true\n\"two\nlines\",,-4,False\n";
    let table =
        Table::parse(text.as_bytes(), "t.csv", &TableOptions::default()).expect("it is whole");
    assert_eq!(
        (table.rows(), table.names()),
        (2, vec!["name", "size", "count", "new"])
    );
    let Column::Text(names) = table.column("name").expect("it is there") else {
        panic!("names are texts")
    };
    assert_eq!(names, &["a, \"b\"", "two\nlines"]);
    assert_eq!(
        table.column("count").expect("it is there"),
        &Column::Int(vec![3, -4])
    );
    assert_eq!(
        table.column("new").expect("it is there"),
        &Column::Bool(vec![true, false])
    );
    let matrix = table
        .matrix(&["count", "size", "new"], DType::F32)
        .expect("numbers");
    assert_eq!(matrix.shape(), [2, 3]);
    let values = matrix.to_f64();
    assert_eq!(values[..3], [3.0, 1.5, 1.0]);
    assert!(values[3] == -4.0 && values[4].is_nan() && values[5] == 0.0);
    let counts = table.array("count", DType::I8).expect("small integers");
    assert_eq!(counts.to_f64(), [3.0, -4.0]);
    let (labels, categories) = table.categories("count").expect("it is there");
    assert_eq!(
        (labels.to_f64(), categories),
        (vec![1.0, 0.0], vec!["-4".to_owned(), "3".to_owned()])
    );
}

#[test]
fn tables_without_a_header_and_with_types() {
    let options = TableOptions {
        header: false,
        delimiter: b';',
        types: Vec::new(),
    };
    let options = options
        .column("1", ColumnType::Float)
        .column("0", ColumnType::Text);
    let table = Table::parse(b"1;2\n3;4\n", "t.csv", &options).expect("it is whole");
    assert_eq!(
        table.column("0").expect("text"),
        &Column::Text(vec!["1".to_owned(), "3".to_owned()])
    );
    assert_eq!(
        table.column("1").expect("floats"),
        &Column::Float(vec![2.0, 4.0])
    );
}

#[test]
fn faults_of_tables_have_a_place() {
    let folder = folder();
    let plain = TableOptions::default();
    let typed = plain.clone().column("b", ColumnType::Int);
    for (text, options, expected) in [
        (
            &b"a,b\n1,2\n\"x\ny\",z\n"[..],
            &typed,
            "t.csv, line 3, column 2 (`b`): `z` is not an integer of 64 bits",
        ),
        (
            b"a,b\n1,\n",
            &typed,
            "t.csv, line 2, column 2 (`b`): an empty field is not an integer of 64 bits",
        ),
        (
            b"a,b\n1,2\n1,2,3\n",
            &plain,
            "t.csv, line 3: it has 3 fields, and the rows before have 2",
        ),
        (
            b"a,b\n1,\xff\n",
            &plain,
            "t.csv, line 2: field 2 is not UTF-8",
        ),
        (
            b"a,a\n1,2\n",
            &plain,
            "t.csv cannot be read: two columns are named `a`",
        ),
        (b"", &plain, "t.csv cannot be read: it is empty"),
        (
            b"a,c\n1,2\n",
            &typed,
            "t.csv has no column `b`; it has `a`, `c`",
        ),
    ] {
        let path = file(&folder, "t.csv", text);
        let error = Table::read(&path, options).expect_err(expected);
        assert_eq!(message(&folder, &error), expected);
    }
    let table = Table::parse(b"a,b,c\n1,x,300\n2.5,y,-1\n", "t.csv", &plain).expect("it is whole");
    for (name, dtype, expected) in [
        (
            "d",
            DType::F32,
            "t.csv has no column `d`; it has `a`, `b`, `c`",
        ),
        (
            "a",
            DType::I32,
            "t.csv: column `a` holds float values, which are not made i32",
        ),
        (
            "b",
            DType::F32,
            "t.csv: column `b` holds text values, which are not made f32",
        ),
        (
            "c",
            DType::U8,
            "t.csv, line 2, column 3 (`c`): 300 is not a value of u8",
        ),
        (
            "c",
            DType::U64,
            "t.csv, line 3, column 3 (`c`): -1 is not a value of u64",
        ),
    ] {
        let error = table.array(name, dtype).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn pictures() {
    let folder = folder();
    let picture = |value: u8, width: usize| {
        let bytes = vec![value; width * 3];
        Array::from_bytes(DType::U8, &[1, width, 3], &bytes).expect("as many bytes")
    };
    for (class, name, value) in [
        ("cat", "b.png", 1),
        ("cat", "a.ppm", 2),
        ("dog", "c.png", 3),
    ] {
        std::fs::create_dir_all(folder.path().join(class)).expect("a folder can be made");
        let path = folder.path().join(class).join(name);
        loopwright_formats::image::write(&path, &picture(value, 2)).expect("it can be written");
    }
    file(&folder, "cat/notes.txt", b"no picture");
    let set = ImageFolder::open(folder.path()).expect("two classes");
    assert_eq!(
        (set.len(), set.classes()),
        (3, &["cat".to_owned(), "dog".to_owned()][..])
    );
    let batch = set.batch(&[2, 0]).expect("they are there");
    assert_eq!(batch[0].shape(), [2, 1, 2, 3]);
    assert_eq!(batch[0].bytes(), [[3; 6], [2; 6]].concat());
    assert_eq!(batch[1].to_f64(), [1.0, 0.0]);
    let wide = folder.path().join("wide.png");
    loopwright_formats::image::write(&wide, &picture(0, 5)).expect("it can be written");
    let error = read_images(&[&set.files()[0].0, &wide]).expect_err("another width");
    assert_eq!(
        message(&folder, &error),
        "wide.png is u8[1, 5, 3], and those before it are u8[1, 2, 3]; arrays of one batch are alike"
    );
    let error = ImageFolder::open(&folder.path().join("cat")).expect_err("no classes");
    assert!(message(&folder, &error).ends_with("it has no folders inside, one for each class"));
}

#[test]
fn texts() {
    let folder = folder();
    let corpus = Corpus::read(&file(&folder, "t.txt", "añb".as_bytes())).expect("it is UTF-8");
    assert_eq!(corpus.tokens(), [0, 2, 1]);
    let error = Corpus::read(&file(&folder, "t.txt", b"a\nb\xff")).expect_err("it is not");
    assert_eq!(
        message(&folder, &error),
        "t.txt cannot be read: it is not UTF-8 on line 2, at byte 3"
    );
}

/// Whatever is in a file, reading it ends with values or an error.
#[test]
fn any_change_is_read_or_refused() {
    let folder = folder();
    let plain = idx(8, &[2, 3], &[1, 2, 3, 4, 5, 6]);
    let table = b"a,b\n1,\"x, y\"\n2.5,\"z\"\"\"\n".to_vec();
    let mut random = Random::new(5);
    let mut changed = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.bits() as u8;
        }
        bytes
    };
    let mut read = 0;
    for _ in 0..300 {
        for bytes in [changed(&plain), changed(&gzip(&plain))] {
            read += usize::from(read_idx(&file(&folder, "a.idx", &bytes)).is_ok());
        }
        let parsed = Table::parse(&changed(&table), "t.csv", &TableOptions::default());
        if let Ok(table) = parsed {
            read += 1;
            for name in table.names() {
                let _ = table.array(name, DType::U8);
                table.categories(name).expect("every column has categories");
            }
        }
    }
    assert!(read > 0, "changed elements are elements");
}
