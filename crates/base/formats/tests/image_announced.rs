//! What a header announces is not believed.

use loopwright_formats::image::decode;

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut checked = kind.to_vec();
    checked.extend(data);
    let mut bytes = (data.len() as u32).to_be_bytes().to_vec();
    bytes.extend(&checked);
    bytes.extend(checksum(&checked).to_be_bytes());
    bytes
}

/// A file of a few bytes whose header says that it is a picture of this size.
fn announcing(width: u32, height: u32, depth: u8, colour: u8, interlaced: u8) -> Vec<u8> {
    let mut header = width.to_be_bytes().to_vec();
    header.extend(height.to_be_bytes());
    header.extend([depth, colour, 0, 0, interlaced]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(chunk(b"IHDR", &header));
    // An empty stream of deflate.
    file.extend(chunk(b"IDAT", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]));
    file.extend(chunk(b"IEND", &[]));
    file
}

#[test]
fn a_png_of_a_few_bytes_takes_no_memory_for_what_it_announces() {
    for (width, height) in [
        (16_384, 16_384),
        (1, 800_000_000),
        (800_000_000, 1),
        (70_000, 500),
    ] {
        for (depth, colour) in [(8, 2), (16, 6), (1, 0), (8, 0), (4, 0)] {
            for interlaced in [0, 1] {
                let file = announcing(width, height, depth, colour, interlaced);
                assert!(file.len() < 80, "{}", file.len());
                let error = decode(&file, "small.png")
                    .expect_err("it holds nothing")
                    .to_string();
                let refused = ["cannot hold them", "larger than", "limit", "too large"];
                assert!(
                    refused
                        .iter()
                        .any(|reason| error.to_lowercase().contains(reason)),
                    "{width} × {height}, {depth} bits, colour {colour}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_picture_of_one_colour_is_read_although_it_is_compressed_well() {
    use loopwright_array::Array;
    use loopwright_ops::DType;
    let picture = Array::zeros(DType::U8, &[1200, 900, 3]).expect("room");
    let file = loopwright_formats::image::encode_png(&picture).expect("it is a picture");
    assert!(file.len() < 50_000, "{} bytes", file.len());
    assert_eq!(
        decode(&file, "black.png").expect("it is whole").bytes(),
        picture.bytes()
    );
}
