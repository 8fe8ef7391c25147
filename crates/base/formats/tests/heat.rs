//! Pictures of arrays.

use loopwright_array::Array;
use loopwright_formats::chart::{HeatMap, Palette, TerminalOptions};
use loopwright_ops::DType;

fn map(shape: &[usize], values: &[f64]) -> Array {
    Array::from_f64(DType::F32, shape, values).expect("as many values as the shape has")
}

fn pixel(picture: &Array, row: usize, column: usize) -> [u8; 3] {
    let at = (row * picture.shape()[1] + column) * 3;
    picture.bytes()[at..at + 3]
        .try_into()
        .expect("three channels")
}

#[test]
fn values_have_their_colours() {
    let values = map(&[2, 2], &[0.0, 1.0, 0.5, f64::NAN]);
    let picture = HeatMap::new(&values)
        .palette(Palette::Grey)
        .picture()
        .expect("a map");
    // Row 0 is the lowest.
    assert_eq!(
        (pixel(&picture, 1, 0), pixel(&picture, 1, 1)),
        ([0; 3], [255; 3])
    );
    assert_eq!(
        (pixel(&picture, 0, 0), pixel(&picture, 0, 1)),
        ([128; 3], [128; 3])
    );
    let flipped = HeatMap::new(&values)
        .palette(Palette::Grey)
        .flipped()
        .picture()
        .expect("a map");
    assert_eq!(pixel(&flipped, 0, 1), [255; 3]);
    let ranged = HeatMap::new(&values)
        .palette(Palette::BlueRed)
        .range(-1.0, 1.0);
    assert_eq!(
        pixel(&ranged.picture().expect("a map"), 1, 0),
        [247; 3],
        "0 is the middle"
    );
    let same = map(&[1, 1], &[7.0]);
    assert_eq!(
        pixel(&HeatMap::new(&same).picture().expect("a map"), 0, 0),
        [33, 145, 140]
    );
}

#[test]
fn points_lie_where_they_are() {
    let values = map(&[50, 100], &[0.0; 5000]);
    let points = map(&[3, 2], &[1.0, 0.0, -1.0, 1.0, 5.0, 5.0]);
    let classes = Array::from_f64(DType::I64, &[3], &[1.0, 0.0, 0.0]).expect("three classes");
    let picture = HeatMap::new(&values)
        .scale(4)
        .points(&points, &classes, (-2.0, 2.0), (-2.0, 2.0))
        .picture()
        .expect("a map with points");
    assert_eq!(picture.shape(), [200, 400, 3]);
    assert_eq!(pixel(&picture, 100, 300), [213, 94, 0], "class 1 at (1, 0)");
    assert_eq!(
        pixel(&picture, 50, 100),
        [9, 105, 218],
        "class 0 at (-1, 1)"
    );
    assert_eq!(pixel(&picture, 47, 100), [255; 3], "and a rim around it");
    assert_eq!(
        pixel(&picture, 150, 200),
        pixel(&picture, 0, 0),
        "nothing elsewhere"
    );
}

#[test]
fn what_is_no_map_is_refused() {
    for shape in [&[3][..], &[0, 3], &[1, 2, 3]] {
        let values = Array::zeros(DType::F32, shape).expect("little memory");
        let error = HeatMap::new(&values)
            .picture()
            .expect_err("no map")
            .to_string();
        assert!(error.contains(&format!("f32{shape:?}")), "{error}");
    }
    let values = map(&[1, 1], &[0.0]);
    let (points, classes) = (map(&[2, 2], &[0.0; 4]), map(&[3], &[0.0; 3]));
    let error = HeatMap::new(&values)
        .points(&points, &classes, (0.0, 1.0), (0.0, 1.0))
        .picture();
    assert_eq!(
        error.expect_err("two and three").to_string(),
        "points are [count, 2] with as many classes [count]; these are [2, 2] and [3]"
    );
}

#[test]
fn maps_are_written() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("map.png");
    let values = map(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let map = HeatMap::new(&values).scale(3);
    map.write(&path).expect("it can be written");
    let back = loopwright_formats::image::read(&path).expect("it is whole");
    assert_eq!(back, map.picture().expect("a map"));
}

#[test]
fn a_terminal_shows_shades_and_marks() {
    // Means of two by two, row 0 the lowest.
    let values = map(
        &[4, 4],
        &[
            0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0,
        ],
    );
    let small = TerminalOptions::default().width(2).height(2);
    let text = HeatMap::new(&values).terminal(&small).expect("a map");
    assert_eq!(text, "▒\n █");
    let ascii = TerminalOptions {
        ascii: true,
        ..small
    };
    let (points, classes) = (map(&[2, 2], &[0.1, 0.1, 0.9, 0.9]), map(&[2], &[0.0, 1.0]));
    let marked = HeatMap::new(&values).points(&points, &classes, (0.0, 1.0), (0.0, 1.0));
    assert_eq!(marked.terminal(&ascii).expect("a map"), "=x\n*@");
    assert_eq!(
        marked.flipped().terminal(&ascii).expect("a map"),
        "*@\n=x",
        "points turn with the values"
    );
}

#[test]
fn a_terminal_in_colour_shows_two_values_in_a_cell() {
    let values = map(&[3, 1], &[0.0, 1.0, f64::NAN]);
    let options = TerminalOptions {
        colour: true,
        ..TerminalOptions::default()
    };
    let text = HeatMap::new(&values)
        .palette(Palette::Grey)
        .flipped()
        .terminal(&options)
        .expect("a map");
    assert_eq!(
        text,
        "\x1b[38;2;0;0;0m\x1b[48;2;255;255;255m▀\x1b[0m\n\x1b[38;2;128;128;128m▀\x1b[0m"
    );
    let empty = map(&[0, 2], &[]);
    assert!(HeatMap::new(&empty).terminal(&options).is_err());
}
