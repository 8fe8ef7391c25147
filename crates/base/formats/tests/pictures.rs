//! Pictures that are written and read, and files that are none.

use loopwright_array::Array;
use loopwright_formats::image::{ImageError, decode, encode_png, read, write};
use loopwright_ops::DType;

fn picture(dtype: DType, height: usize, width: usize, channels: usize) -> Array {
    let values: Vec<f64> = (0..height * width * channels)
        .map(|at| (at * 7919 % if dtype == DType::U8 { 256 } else { 65536 }) as f64)
        .collect();
    Array::from_f64(dtype, &[height, width, channels], &values).expect("as many values")
}

#[test]
fn pictures_come_back_in_every_form() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for dtype in [DType::U8, DType::U16] {
        for channels in 1..=4 {
            let made = picture(dtype, 5, 3, channels);
            for extension in ["png", "ppm", "pgm", "PNG"] {
                let path = folder.path().join(format!("a.{extension}"));
                match (extension, channels) {
                    ("ppm", 3) | ("pgm", 1) | ("png" | "PNG", _) => {
                        write(&path, &made).expect("it can be written");
                        assert_eq!(read(&path).expect("it is whole"), made, "{extension}");
                    }
                    _ => assert!(matches!(
                        write(&path, &made),
                        Err(ImageError::NoPicture { .. })
                    )),
                }
            }
        }
    }
}

#[test]
fn texts_are_pictures_too() {
    let grey = decode(b"P2 # a comment\n2 2\n15\n0 15\n# another\n5 10", "t").expect("it is whole");
    assert_eq!(grey.shape(), [2, 2, 1]);
    assert_eq!(grey.bytes(), [0, 255, 85, 170]);
    let colour = decode(b"P3 1 1 255 1 2 3", "t").expect("it is whole");
    assert_eq!(
        (colour.shape(), colour.bytes()),
        (&[1, 1, 3][..], &[1, 2, 3][..])
    );
}

#[test]
fn files_that_are_no_pictures_say_what_is_wrong() {
    let png = encode_png(&picture(DType::U8, 4, 4, 3)).expect("it is a picture");
    let mut changed = png.clone();
    changed[45] ^= 1;
    for (bytes, expected) in [
        (
            &b"GIF89a"[..],
            "x is not a picture in a format that is read here; PNG, PPM and PGM are",
        ),
        (&png[..png.len() / 2], "x is not a whole PNG file: "),
        (&changed, "x is not a whole PNG file: "),
        (
            b"P4 1 1 0",
            "x is not a whole PPM file: it is a PBM file, of single bits",
        ),
        (
            b"P6",
            "the width is expected at the end of the file, a number from 1 to 2147483647",
        ),
        (
            b"P6 2\n  zwei",
            "the height is expected at line 2, column 3",
        ),
        (
            b"P6 2 2 70000 ",
            "the largest value is expected at line 1, column 8, a number from 1 to 65535",
        ),
        (
            b"P6 2 2 255\nabc",
            "2 × 2 pixels are announced, and the 4 bytes that follow cannot hold them",
        ),
        (b"P6 2000000000 2000000000 255\nabc", "cannot hold them"),
        (b"P5 1 2 255\na", "it ends after 1 of 2 values"),
        (
            b"P5 2 1 100\nzz",
            "the value at byte 11 is 122, and the largest is said to be 100",
        ),
        (
            b"P2 2 1 7 3  8",
            "a value is expected at line 1, column 13, a number from 0 to 7",
        ),
    ] {
        let error = decode(bytes, "x").expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}\nand not: {expected}");
    }
    for length in 0..png.len() {
        assert!(decode(&png[..length], "x").is_err(), "cut after {length}");
    }
}

#[test]
fn arrays_that_are_no_pictures_say_what_is() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("a.png");
    for (dtype, shape, expected) in [
        (
            DType::F32,
            &[2, 2, 3][..],
            "an array f32[2, 2, 3] is not a picture that can be written: its elements are u8 or u16",
        ),
        (
            DType::U8,
            &[2, 2],
            "it is [height, width, channel] with 1 to 4 channels",
        ),
        (DType::U8, &[2, 2, 5], "with 1 to 4 channels"),
        (DType::U8, &[0, 2, 3], "its sides are from 1 to 2147483647"),
    ] {
        let array = Array::zeros(dtype, shape).expect("little memory");
        let error = write(&path, &array).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = write(&folder.path().join("a.jpg"), &picture(DType::U8, 1, 1, 3));
    let error = error.expect_err("another format").to_string();
    assert!(error.ends_with("end it with .png, .ppm or .pgm"), "{error}");
    assert!(matches!(
        read(&path),
        Err(ImageError::File { action: "read", .. })
    ));
}

/// Whatever is in a file, reading it ends with a picture or an error.
#[test]
fn any_change_is_read_or_refused() {
    let made = picture(DType::U8, 6, 5, 3);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("a.ppm");
    write(&path, &made).expect("it can be written");
    let files = [
        encode_png(&made).expect("it is a picture"),
        std::fs::read(&path).expect("it is there"),
        b"P2 3 2 9\n1 2 3 # comment\n4 5 6\n".to_vec(),
    ];
    // A generator by Marsaglia: any numbers will do.
    let mut state = 0x2545_f491u32;
    let mut random = |end: usize| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as usize % end
    };
    let mut read = 0;
    for file in files {
        for _ in 0..1000 {
            let mut bytes = file.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                bytes[at] = random(256) as u8;
            }
            read += usize::from(decode(&bytes, "x").is_ok());
        }
    }
    assert!(read > 0, "changed pixels are pixels");
}
