//! What charts look like. `BLESS=1` writes the expected files anew.

use loopwright_array::Array;
use loopwright_formats::chart::{BoxOptions, Boxed, LineChart, TerminalOptions};
use loopwright_ops::{DType, Scalar};
use std::path::Path;

#[track_caller]
fn check(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, shown).expect("the file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; make it with BLESS=1", path.display()));
    assert!(
        expected == shown,
        "{name} is\n{shown}\nand should be\n{expected}\nBLESS=1 accepts it"
    );
}

fn counted(dtype: DType, shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|at| at as f64).collect();
    Array::from_f64(dtype, shape, &values).expect("as many values as the shape has")
}

/// Boxes below each other, each under what it shows.
struct Gallery(String);

impl Gallery {
    fn add(&mut self, what: &str, shown: impl std::fmt::Display) {
        self.0 += &format!("=== {what}\n{shown}\n\n");
    }
}

#[test]
fn arrays_of_every_rank() {
    let mut gallery = Gallery(String::new());
    gallery.add("a scalar", Boxed::new(&counted(DType::F32, &[])));
    gallery.add(
        "a vector",
        Boxed::new(&counted(DType::I32, &[4])).names(&["feature"]),
    );
    gallery.add("a long vector", Boxed::new(&counted(DType::I32, &[1000])));
    gallery.add(
        "a matrix",
        Boxed::new(&counted(DType::F32, &[3, 4])).names(&["batch", "feature"]),
    );
    gallery.add(
        "a long matrix",
        Boxed::new(&counted(DType::U8, &[100, 2])).names(&["", "feature"]),
    );
    gallery.add(
        "a wide and long matrix",
        Boxed::new(&counted(DType::F32, &[300, 300])),
    );
    gallery.add(
        "three dimensions",
        Boxed::new(&counted(DType::I64, &[3, 2, 3])).names(&["head", "row", "column"]),
    );
    gallery.add(
        "three dimensions without names",
        Boxed::new(&counted(DType::I64, &[2, 2, 2])),
    );
    gallery.add(
        "many boxes",
        Boxed::new(&counted(DType::F16, &[9, 2, 3])).names(&["batch"]),
    );
    gallery.add(
        "four dimensions",
        Boxed::new(&counted(DType::I64, &[2, 2, 2, 2])).names(&["batch", "channel"]),
    );
    gallery.add(
        "many of many",
        Boxed::new(&counted(DType::I64, &[7, 6, 2, 2])).names(&["batch", "channel"]),
    );
    gallery.add("a column", Boxed::new(&counted(DType::I64, &[3, 1])));
    gallery.add(
        "nothing",
        Boxed::new(&counted(DType::F32, &[0, 3])).names(&["batch", "feature"]),
    );
    gallery.add(
        "without a header",
        Boxed::new(&counted(DType::I64, &[2, 2])).without_header(),
    );
    check("ranks.txt", &gallery.0);
}

#[test]
fn values_of_every_dtype() {
    let mut gallery = Gallery(String::new());
    for dtype in DType::ALL {
        let array = Array::from_f64(dtype, &[2, 3], &[0.0, 1.0, 2.5, -0.125, 100.0, 1.0 / 3.0]);
        gallery.add(dtype.name(), Boxed::new(&array.expect("six values")));
    }
    let array =
        |values: &[f64]| Array::from_f64(DType::F64, &[values.len()], values).expect("as many");
    gallery.add(
        "no numbers",
        Boxed::new(&array(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0])),
    );
    gallery.add("large", Boxed::new(&array(&[1e10, 1.0, -2.5])));
    gallery.add("small", Boxed::new(&array(&[1e-10, 0.0, 1.25e-9])));
    let extremes: Vec<Scalar> = vec![Scalar::min_value(DType::I64), Scalar::max_value(DType::I64)];
    let extremes = Array::from_scalars(DType::I64, &[2], &extremes).expect("two values");
    gallery.add("extremes", Boxed::new(&extremes));
    check("dtypes.txt", &gallery.0);
}

#[test]
fn other_options() {
    let mut gallery = Gallery(String::new());
    let wide = counted(DType::F32, &[4, 40]);
    for width in [20, 40, 80] {
        let options = BoxOptions {
            width,
            ..BoxOptions::default()
        };
        let shown = Boxed::new(&wide).options(options).to_string();
        assert!(
            shown.lines().all(|line| line.chars().count() <= width),
            "{shown}"
        );
        gallery.add(&format!("{width} columns"), shown);
    }
    let all = BoxOptions {
        limit: 40,
        width: 400,
        ..BoxOptions::default()
    };
    gallery.add("all", Boxed::new(&wide).options(all));
    let ascii = BoxOptions {
        ascii: true,
        ..BoxOptions::default()
    };
    let shown = Boxed::new(&counted(DType::F32, &[6, 12, 20]))
        .options(ascii)
        .to_string();
    assert!(shown.is_ascii());
    gallery.add("ASCII", shown);
    let thirds = Array::from_f64(DType::F64, &[2], &[1.0 / 3.0, 2.0]).expect("two values");
    for precision in [0, 2, 12] {
        let options = BoxOptions {
            precision,
            ..BoxOptions::default()
        };
        gallery.add(
            &format!("{precision} decimals"),
            Boxed::new(&thirds).options(options),
        );
    }
    check("options.txt", &gallery.0);
}

/// Training curves: one that falls, and one that falls less and wobbles.
fn curves() -> LineChart {
    let falling = |step: usize| 2.3 * (-(step as f64) / 30.0).exp() + 0.05;
    let train: Vec<f64> = (0..200).map(falling).collect();
    let test: Vec<(f64, f64)> = (0..20)
        .map(|at| {
            (
                at as f64 * 10.0,
                falling(at * 10) + 0.2 + 0.05 * (at % 3) as f64,
            )
        })
        .collect();
    LineChart::new("digits")
        .values("train", &train)
        .points("test", &test)
        .axes("step", "loss")
}

#[test]
fn curves_in_the_terminal() {
    let mut gallery = Gallery(String::new());
    let one = LineChart::new("one curve").values(
        "",
        &(0..50)
            .map(|at| (f64::from(at) / 5.0).sin())
            .collect::<Vec<_>>(),
    );
    let gaps = LineChart::new("gaps").values("x", &[1.0, 2.0, f64::NAN, 4.0, f64::NAN, 2.0, 3.0]);
    let plain = TerminalOptions::default();
    for (what, chart, options) in [
        ("one curve", &one, plain),
        ("two curves", &curves(), plain),
        (
            "two curves, small",
            &curves(),
            TerminalOptions {
                width: 40,
                height: 6,
                ..plain
            },
        ),
        (
            "two curves, tiny",
            &curves(),
            TerminalOptions {
                width: 1,
                height: 1,
                ..plain
            },
        ),
        (
            "two curves in colour",
            &curves(),
            TerminalOptions {
                colour: true,
                ..plain
            },
        ),
        (
            "two curves in ASCII",
            &curves(),
            TerminalOptions {
                ascii: true,
                ..plain
            },
        ),
        ("a logarithmic axis", &curves().logarithmic(), plain),
        ("gaps", &gaps, plain),
        ("nothing", &LineChart::new("nothing"), plain),
        (
            "a single point",
            &LineChart::new("a point").values("x", &[3.0]),
            plain,
        ),
    ] {
        let shown = chart.terminal(&options);
        let shown = shown.replace('\x1b', "␛");
        if options.ascii {
            assert!(shown.is_ascii());
        }
        if !options.colour {
            let width = options.width.max(24);
            assert!(
                shown.lines().all(|line| line.chars().count() <= width),
                "{shown}"
            );
        }
        gallery.add(what, shown);
    }
    check("terminal.txt", &gallery.0);
}

#[test]
fn curves_as_a_picture() {
    check("curves.svg", &curves().svg());
    // As many points as the picture has columns, and no more than some for each.
    let many: Vec<f64> = (0..100_000).map(|at| (at as f64 / 100.0).sin()).collect();
    let svg = LineChart::new("many").values("many", &many).svg();
    assert!(svg.len() < 100_000, "{} bytes", svg.len());
    let names = LineChart::new("a < b")
        .values("\"quoted\" & more", &[1.0])
        .svg();
    assert!(names.contains("a &lt; b") && names.contains("&quot;quoted&quot; &amp; more"));
}
