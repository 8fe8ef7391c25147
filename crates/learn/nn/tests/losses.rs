//! Losses refuse scores and targets that would be broadcast against each other.

use loopwright_nn::{
    binary_cross_entropy, cosine_distance, cross_entropy, cross_entropy_smoothed, hinge, huber,
    kl_divergence, mean_absolute_error, mean_squared_error, nll,
};
use loopwright_tensor::{DType, Tensor};
use loopwright_x86 as _;

type Loss = fn(&Tensor, &Tensor) -> Tensor;

/// Losses of scores and targets of one shape.
const ALIKE: [(&str, Loss); 7] = [
    ("mean_squared_error", mean_squared_error),
    ("mean_absolute_error", mean_absolute_error),
    ("huber", |x, target| huber(x, target, 1.0)),
    ("binary_cross_entropy", binary_cross_entropy),
    ("kl_divergence", kl_divergence),
    ("hinge", hinge),
    ("cosine_distance", cosine_distance),
];

/// Losses of scores and labels, which have no axis of classes.
const LABELLED: [(&str, Loss); 3] = [
    ("nll", nll),
    ("cross_entropy", cross_entropy),
    ("cross_entropy_smoothed", |x, labels| {
        cross_entropy_smoothed(x, labels, 0.1)
    }),
];

fn of(shape: &[usize], dtype: DType) -> Tensor {
    Tensor::zeros(shape.to_vec(), dtype)
}

/// All shapes of up to three axes with sizes of 1 to 3.
fn shapes() -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    let mut from = 0;
    for _ in 0..3 {
        let to = all.len();
        for at in from..to {
            for size in 1..=3 {
                let longer: Vec<usize> = all[at].iter().copied().chain([size]).collect();
                all.push(longer);
            }
        }
        from = to;
    }
    all
}

#[test]
fn a_column_is_not_broadcast_against_a_row() {
    let scores = Tensor::from([[0.0f32], [1.0]]);
    let target = Tensor::from([0.0f32, 1.0]);
    for (name, loss) in ALIKE {
        let error = loss(&scores, &target).check().unwrap_err().to_string();
        assert!(
            error.contains("[2, 1]") && error.contains("[2]"),
            "{name}: {error}"
        );
    }
}

#[test]
fn losses_take_one_shape_and_refuse_all_others_naming_both() {
    for (name, loss) in ALIKE {
        for a in shapes() {
            for b in shapes() {
                let (x, target) = (of(&a, DType::F32), of(&b, DType::F32));
                let made = loss(&x, &target).check();
                // Distributions and angles lie along the last axis, and a number has none.
                if a == b && !a.is_empty() {
                    assert!(made.is_ok(), "{name} of {a:?}: {made:?}");
                } else if a != b {
                    let error = made.unwrap_err().to_string();
                    let both = [x.shape().to_string(), target.shape().to_string()];
                    assert!(
                        both.iter().all(|one| error.contains(one)),
                        "{name} of {a:?}, {b:?}: {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn labels_have_the_shape_of_scores_without_their_classes() {
    for (name, loss) in LABELLED {
        for a in shapes().into_iter().filter(|shape| !shape.is_empty()) {
            for b in shapes() {
                let (x, labels) = (of(&a, DType::F32), of(&b, DType::I64));
                let made = loss(&x, &labels).check();
                let fits = a[..a.len() - 1] == b[..];
                assert_eq!(made.is_ok(), fits, "{name} of {a:?} and {b:?}: {made:?}");
                if let Err(error) = made {
                    let error = error.to_string();
                    assert!(error.contains(&labels.shape().to_string()), "{error}");
                }
            }
        }
    }
}

#[test]
fn axes_with_names_meet_by_name() {
    let x = Tensor::zeros([2, 3], DType::F32)
        .rename(0, "row")
        .rename(1, "column");
    let turned = x.transpose(0, 1);
    assert!(mean_squared_error(&x, &turned).check().is_ok());
    let other = Tensor::zeros([2, 3], DType::F32)
        .rename(0, "row")
        .rename(1, "channel");
    assert!(mean_squared_error(&x, &other).check().is_err());
}

#[test]
fn the_cosine_distance_does_not_depend_on_the_lengths_of_vectors() {
    for dtype in [DType::F32, DType::F64] {
        for exponent in [-35, -20, -8, -3, 0, 3, 8, 20, 35] {
            let length = 10f64.powi(exponent);
            let a = Tensor::from([[3.0f64 * length, 4.0 * length], [length, 0.0]]).cast(dtype);
            let b = Tensor::from([[4.0f64 * length, 3.0 * length], [0.0, -length]]).cast(dtype);
            let distance = cosine_distance(&a, &b).to_f64().unwrap()[0];
            assert!(
                (distance - 0.52).abs() < 1e-6,
                "{dtype} 1e{exponent}: {distance}"
            );
        }
    }
}

#[test]
fn the_cosine_distance_of_a_zero_vector_is_1_with_a_finite_gradient() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let zero = Tensor::zeros([1, 2], dtype);
        let other = Tensor::from([[1.0f32, 2.0]]).cast(dtype);
        let distance = cosine_distance(&zero, &other);
        assert_eq!(distance.to_f64().unwrap(), [1.0], "{dtype}");
        let gradients = distance.gradients([&zero, &other]);
        for value in gradients.iter().flat_map(|g| g.to_f64().unwrap()) {
            assert!(value.is_finite(), "{dtype}: {value}");
        }
    }
}

#[test]
fn bounds_and_smoothings_outside_of_their_range_are_refused() {
    let (x, labels) = (of(&[2, 3], DType::F32), of(&[2], DType::I64));
    for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = huber(&x, &x, bound).check().unwrap_err().to_string();
        assert!(error.contains("the bound is"), "{error}");
    }
    for smoothing in [-0.1, 1.1, f64::NAN] {
        let loss = cross_entropy_smoothed(&x, &labels, smoothing);
        let error = loss.check().unwrap_err().to_string();
        assert!(error.contains("the smoothing is"), "{error}");
    }
    for smoothing in [0.0, 1.0] {
        let loss = cross_entropy_smoothed(&x, &labels, smoothing);
        assert!(loss.check().is_ok());
    }
}
