//! The sets that come with the library.

use loopwright_nn::data::{Examples, blobs, digits, linear, moons, spirals, waves};
use loopwright_ops::DType;

fn checksum(examples: &Examples) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(examples.inputs.bytes());
    hasher.update(examples.targets.bytes());
    hasher.finalize().to_hex()[..16].to_owned()
}

fn count(examples: &Examples, class: f64) -> usize {
    let targets = examples.targets.to_f64();
    targets.iter().filter(|target| **target == class).count()
}

#[test]
fn the_digits_are_whole() {
    let digits = digits();
    assert_eq!(
        (digits.inputs.dtype(), digits.inputs.shape()),
        (DType::F32, &[1797, 8, 8][..])
    );
    assert_eq!(
        (digits.targets.dtype(), digits.targets.shape()),
        (DType::I64, &[1797][..])
    );
    let pixels = digits.inputs.to_f64();
    assert!(
        pixels
            .iter()
            .all(|pixel| (0.0..=1.0).contains(pixel) && (pixel * 16.0).fract() == 0.0)
    );
    // The sums that scikit-learn's copy has.
    assert_eq!(pixels.iter().sum::<f64>() * 16.0, 561_718.0);
    let classes: Vec<usize> = (0..10).map(|class| count(&digits, class.into())).collect();
    assert_eq!(classes, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    // The first is a zero, with these pixels in its first row.
    assert_eq!(digits.targets.to_f64()[0], 0.0);
    let row: Vec<f64> = pixels[..8].iter().map(|pixel| pixel * 16.0).collect();
    assert_eq!(row, [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0]);
    assert_eq!(checksum(&digits), "ef1c51eae1ce1e4b");
}

#[test]
fn the_split_keeps_the_shares_and_loses_nothing() {
    let digits = digits();
    let split = digits.split(0.2, 0).expect("a share");
    assert_eq!((split.train.len(), split.test.len()), (1438, 359));
    for class in 0..10 {
        let (train, test) = (
            count(&split.train, class.into()),
            count(&split.test, class.into()),
        );
        assert_eq!(train + test, count(&digits, class.into()));
        assert!((test as f64 - (train + test) as f64 * 0.2).abs() < 1.0);
    }
    let total = |examples: &Examples| examples.inputs.to_f64().iter().sum::<f64>();
    assert_eq!(total(&split.train) + total(&split.test), total(&digits));
    // Pinned: accuracies are of this split.
    assert_eq!(checksum(&split.test), "a6234617ef692b21");
    assert_ne!(digits.split(0.2, 1).expect("a share").test, split.test);
    assert!(digits.split(-0.1, 0).is_err());
}

#[test]
fn made_up_sets_are_the_same_everywhere() {
    let sets = [
        ("moons", moons(50, 0.1, 1)),
        ("blobs", blobs(50, 3, 0.5, 1)),
        ("spirals", spirals(50, 2, 0.01, 1)),
        (
            "linear",
            linear(50, 3, 0.1, 1).map(|linear| linear.examples),
        ),
        ("waves", waves(5, 10, 0.1, 1)),
    ];
    let sums: Vec<String> = sets
        .into_iter()
        .map(|(name, set)| {
            format!(
                "{name} {}",
                checksum(&set.expect("the arguments are in range"))
            )
        })
        .collect();
    assert_eq!(
        sums,
        [
            "moons 537d98f173b63250",
            "blobs 43e67c6a11191fd7",
            "spirals d95dc396b95652ab",
            "linear a75f4c2939c8e5bb",
            "waves a386a96850e29835"
        ]
    );
}

#[test]
fn made_up_sets_are_what_they_are_said_to_be() {
    let moons = moons(101, 0.0, 3).expect("no noise");
    assert_eq!((count(&moons, 0.0), count(&moons, 1.0)), (51, 50));
    let points = moons.inputs.to_f64();
    for (point, moon) in points.chunks_exact(2).zip(moons.targets.to_f64()) {
        let (x, y) = if moon == 0.0 {
            (point[0], point[1])
        } else {
            (1.0 - point[0], 0.5 - point[1])
        };
        assert!((x.hypot(y) - 1.0).abs() < 1e-6 && y > -1e-6, "{point:?}");
    }
    let blobs = blobs(30, 3, 0.0, 3).expect("no noise");
    let points = blobs.inputs.to_f64();
    assert_eq!(
        points[..6],
        points[6..12],
        "without a spread all lie at the centres"
    );
    let spirals = spirals(200, 2, 0.0, 3).expect("no noise");
    assert!(
        spirals
            .inputs
            .to_f64()
            .chunks_exact(2)
            .all(|point| point[0].hypot(point[1]) <= 1.0)
    );
    let linear = linear(20, 4, 0.0, 3).expect("no noise");
    let inputs = linear.examples.inputs.to_f64();
    for (input, target) in inputs.chunks_exact(4).zip(linear.examples.targets.to_f64()) {
        let sum: f64 = input.iter().zip(&linear.weights).map(|(x, w)| x * w).sum();
        assert!((sum + linear.bias - target).abs() < 1e-5);
    }
    let waves = waves(3, 8, 0.0, 3).expect("no noise");
    let (inputs, targets) = (waves.inputs.to_f64(), waves.targets.to_f64());
    for wave in 0..3 {
        assert_eq!(
            inputs[wave * 8 + 1..wave * 8 + 8],
            targets[wave * 8..wave * 8 + 7]
        );
    }
}

#[test]
fn arguments_out_of_range_are_named() {
    for (error, expected) in [
        (
            moons(5, -1.0, 0).err(),
            "the noise is -1, and a number of at least 0 is expected",
        ),
        (waves(5, 3, f64::NAN, 0).err(), "the noise is NaN"),
        (
            blobs(5, 0, 1.0, 0).err(),
            "the number of centres is 0, and at least 1 is expected",
        ),
        (spirals(5, 0, 1.0, 0).err(), "the number of arms is 0"),
        (waves(5, 0, 0.0, 0).err(), "the length of a wave is 0"),
    ] {
        let error = error.expect(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
