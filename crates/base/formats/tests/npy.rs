//! Files as numpy 2 writes them, files as we write them, and files that nobody should have written.

use loopwright_formats::npy::{Header, NpyError, write};
use loopwright_ops::DType;

/// A file of version 1 with this header text, padded as numpy pads it.
fn file(header: &str, elements: &[u8]) -> Vec<u8> {
    versioned(1, header, elements)
}

fn versioned(major: u8, header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([major, 0]);
    let before = if major == 1 { 10 } else { 12 };
    let length = (before + header.len() + 1).next_multiple_of(64) - before;
    match major {
        1 => bytes.extend((length as u16).to_le_bytes()),
        _ => bytes.extend((length as u32).to_le_bytes()),
    }
    bytes.extend(header.bytes());
    bytes.resize(before + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(elements);
    bytes
}

fn read(mut bytes: &[u8], dtype: DType) -> Result<(Vec<usize>, Vec<u8>), NpyError> {
    let header = Header::read(&mut bytes)?;
    let elements = header.read_elements(&mut { bytes }, dtype)?;
    let mut placed = vec![0xee; elements.len()];
    header.read_elements_into(&mut bytes, dtype, &mut placed)?;
    assert_eq!(placed, elements, "both ways of reading agree");
    Ok((header.shape, elements))
}

fn message(bytes: &[u8], dtype: DType) -> String {
    match read(bytes, dtype) {
        Ok(found) => panic!("expected an error, read {found:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_dtype_comes_back() {
    for dtype in DType::ALL {
        for shape in [&[][..], &[5], &[2, 3], &[2, 0, 3], &[1; 32]] {
            let count: usize = shape.iter().product::<usize>() * dtype.bytes();
            let bytes: Vec<u8> = match dtype {
                DType::Bool => (0..count).map(|at| (at % 2) as u8).collect(),
                _ => (0..count).map(|at| (at * 37 + 11) as u8).collect(),
            };
            let mut written = Vec::new();
            write(&mut written, dtype, shape, &bytes).expect("bytes fit the shape");
            assert_eq!((written.len() - count) % 64, 0, "elements are aligned");
            let found = read(&written, dtype).expect("we read what we write");
            assert_eq!(found, (shape.to_vec(), bytes), "{dtype} {shape:?}");
        }
    }
}

#[test]
fn what_is_written_is_what_numpy_writes() {
    let mut written = Vec::new();
    write(&mut written, DType::F32, &[], &1.5f32.to_le_bytes()).expect("one element");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }";
    assert_eq!(written, file(header, b"\x00\x00\xc0\x3f"));

    let mut written = Vec::new();
    write(&mut written, DType::Bool, &[1], &[1]).expect("one element");
    let header = "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }";
    assert_eq!(written, file(header, &[1]));

    let mut written = Vec::new();
    write(&mut written, DType::BF16, &[2, 1], &[0, 0, 0x80, 0x3f]).expect("two elements");
    let header = "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 1), }";
    assert_eq!(written, file(header, &[0, 0, 0x80, 0x3f]));
}

#[test]
fn all_versions_are_read() {
    let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }";
    for version in [1, 2, 3] {
        let bytes = versioned(version, header, b"\x00\x00\x00\x3c\x00\x40");
        let (shape, elements) = read(&bytes, DType::F16).expect("a file that numpy wrote");
        assert_eq!(shape, [3]);
        assert_eq!(elements, b"\x00\x00\x00\x3c\x00\x40");
    }
    let unknown = versioned(4, header, &[]);
    assert_eq!(
        message(&unknown, DType::F16),
        "version 4.0 of the .npy format is not known; versions 1.0, 2.0 and 3.0 are"
    );
}

#[test]
fn column_major_and_big_endian_are_put_in_order() {
    let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
    let bytes = file(header, b"\0\0\0\x03\0\x01\0\x04\0\x02\0\x05");
    let (shape, elements) = read(&bytes, DType::I16).expect("a file that numpy wrote");
    assert_eq!(shape, [2, 3]);
    assert_eq!(elements, b"\0\0\x01\0\x02\0\x03\0\x04\0\x05\0");

    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }";
    let columns: Vec<u8> = (0..12)
        .map(|at| at % 2 * 6 + at / 2 % 3 * 2 + at / 6)
        .collect();
    let (_, elements) = read(&file(header, &columns), DType::U8).expect("a file that numpy wrote");
    assert_eq!(elements, (0..12).collect::<Vec<u8>>());

    let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 0, 2), }";
    assert_eq!(
        read(&file(header, &[]), DType::U8).expect("empty"),
        (vec![2, 0, 2], vec![])
    );
}

#[test]
fn unusual_headers_are_read() {
    for header in [
        "{\"shape\":(2L,),\"descr\":\"|i1\",\"fortran_order\":False}",
        "{ 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '=i1' }",
    ] {
        let (shape, elements) = read(&file(header, &[1, 2]), DType::I8).expect("odd, but fine");
        assert_eq!((shape, elements), (vec![2], vec![1, 2]), "{header}");
    }
    let header = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }";
    let (_, elements) = read(&file(header, &[0, 2, 255]), DType::Bool).expect("bytes");
    assert_eq!(elements, [0, 1, 1], "a bool is 0 or 1");
}

#[test]
fn floats_without_a_name_are_raw_elements() {
    let header = |descr: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}");
        Header::read(&mut file(&text, &[]).as_slice()).expect("a whole header")
    };
    for descr in ["<V2", "|V2", "<u2", ">u2"] {
        assert!(header(descr).holds(DType::BF16), "{descr}");
        assert!(!header(descr).holds(DType::F16), "{descr}");
    }
    for descr in ["<V1", "|V1", "|u1", "<f1"] {
        assert!(header(descr).holds(DType::F8E4M3), "{descr}");
        assert!(header(descr).holds(DType::F8E5M2), "{descr}");
    }
    assert!(!header("<i2").holds(DType::BF16));
    assert_eq!(header("<V2").dtype(), None);
    assert_eq!(header(">f8").dtype(), Some(DType::F64));
    assert_eq!(
        message(
            &file(
                "{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }",
                &[0, 0]
            ),
            DType::BF16
        ),
        "the file holds elements of type <i2, not bf16"
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    let with = |descr: &str, shape: &str| {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        message(&file(&header, &[0; 8]), DType::F32)
    };
    assert_eq!(
        message(b"PK\x03\x04 an .npz archive", DType::F32),
        "this is not an .npy file: it does not start with \\x93NUMPY"
    );
    assert_eq!(message(b"", DType::F32), message(b"\x93NUM", DType::F32));
    assert_eq!(
        with("'<c8'", "(1,)"),
        "elements of type `<c8` are not supported; bool, integers up to 64 bits and floats of 16, 32 or 64 bits are"
    );
    assert!(with("[('x', '<f4')]", "(1,)").contains("structured"));
    assert_eq!(
        with("'<f4'", "(3,)"),
        "the file ends too early: the header announces 12 bytes, and 8 are there"
    );
    assert_eq!(
        with("'<f4'", "(18446744073709551615, 2)"),
        "an array of shape [18446744073709551615, 2] does not fit into memory"
    );
    // Announced is far more than there is; nothing of that size is allocated.
    assert_eq!(
        with("'<f4'", "(2000000000000000000,)"),
        "the file ends too early: the header announces 8000000000000000000 bytes, and 8 are there"
    );
    assert_eq!(
        with("'<f4'", "(99999999999999999999999,)"),
        "the header is malformed: the size 99999999999999999999999 is too large"
    );
    assert_eq!(
        with("'<f4'", "(-1,)"),
        "the header is malformed: expected a size, found `-1,), }`"
    );
    assert_eq!(
        message(&file("{'descr': '<f4', 'shape': (1,), }", &[]), DType::F32),
        "the header is malformed: the entry `fortran_order` is missing"
    );
    assert_eq!(
        message(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", DType::F32),
        "the header is malformed: it is 4294967295 bytes long"
    );
    assert_eq!(
        message(b"\x93NUMPY\x01\x00\xff\xff{", DType::F32),
        "the header is malformed: the file ends inside it"
    );
}

#[test]
fn bytes_must_fit_what_is_written() {
    let error = write(&mut Vec::new(), DType::F32, &[2], &[0; 7]).expect_err("a byte is missing");
    assert_eq!(
        error.to_string(),
        "an array f32[2] has 8 bytes, and 7 are given"
    );
}

#[test]
fn mutated_files_never_panic() {
    let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
    let whole = file(header, &[0x40; 24]);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    let mut read_anyway = 0;
    for _ in 0..200_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 4 {
            let at = next() % 80;
            match next() % 4 {
                0 => bytes[at] = next() as u8,
                1 => bytes[at] = b"{}[](),'\":L0123456789<>|=-VfiubTrueFalse \n"[next() % 40],
                2 => bytes.truncate(80 + next() % 80),
                _ => bytes[at] ^= 1 << (next() % 8),
            }
        }
        read_anyway += usize::from(read(&bytes, DType::F32).is_ok());
    }
    assert!(read_anyway > 0, "some mutations are harmless");
}
