//! What a loader promises: every example once an epoch, an order that only seed and epoch decide, exact resumption, and that
//! whatever happens on its thread surfaces.

use loopwright_array::Array;
use loopwright_nn::data::{
    ArrayDataset, DataError, Dataset, Loader, LoaderOptions, Position, moons,
};
use loopwright_ops::{DType, Scalar};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn counted(examples: usize) -> ArrayDataset {
    let values: Vec<Scalar> = (0..examples).map(|at| Scalar::i64(at as i64)).collect();
    let array = Array::from_scalars(DType::I64, &[examples], &values).expect("as many values");
    ArrayDataset::new(vec![array]).expect("one array")
}

/// The examples of the batches of some epochs; `None` at the end of each.
fn dealt(loader: &mut Loader, epochs: usize) -> Vec<Option<Vec<i64>>> {
    let mut all = Vec::new();
    for _ in 0..epochs {
        while let Some(batch) = loader.next_batch().expect("nothing fails") {
            let examples = batch[0]
                .iter()
                .map(|value| value.as_i64().expect("an integer"));
            all.push(Some(examples.collect()));
        }
        all.push(None);
    }
    all
}

fn loader(examples: usize, options: LoaderOptions) -> Loader {
    Loader::new(counted(examples), options).expect("there are batches")
}

#[test]
fn an_epoch_deals_out_every_example_once() {
    for (options, sizes) in [
        (LoaderOptions::new(4), &[4, 4, 2][..]),
        (LoaderOptions::new(4).shuffled(1), &[4, 4, 2]),
        (LoaderOptions::new(4).shuffled(1).drop_last(), &[4, 4]),
        (LoaderOptions::new(5).prefetch(3), &[5, 5]),
        (LoaderOptions::new(99), &[10]),
    ] {
        let mut loader = loader(10, options);
        assert_eq!(loader.batches(), sizes.len() as u64);
        for epoch in dealt(&mut loader, 3).split(Option::is_none).take(3) {
            let batches: Vec<&Vec<i64>> = epoch.iter().flatten().collect();
            let got: Vec<usize> = batches.iter().map(|batch| batch.len()).collect();
            assert_eq!(got, sizes, "{options:?}");
            let mut examples: Vec<i64> = batches.into_iter().flatten().copied().collect();
            assert_eq!(examples.len(), loader.examples());
            if options.seed.is_none() {
                assert!(examples.is_sorted());
            }
            examples.sort();
            examples.dedup();
            assert_eq!(examples.len(), loader.examples(), "none comes twice");
        }
    }
}

#[test]
fn seed_and_epoch_decide_the_order() {
    let options = LoaderOptions::new(3).shuffled(7);
    let first = dealt(&mut loader(20, options), 2);
    for ahead in [1, 2, 50] {
        let again = dealt(&mut loader(20, options.prefetch(ahead)), 2);
        assert_eq!(again, first, "made ahead: {ahead}");
    }
    assert_ne!(dealt(&mut loader(20, options.shuffled(8)), 2), first);
    let (epoch_0, epoch_1) = first.split_at(first.len() / 2);
    assert_ne!(epoch_0, epoch_1);
    // Pinned: a checkpoint must resume with the batches of the version that wrote it.
    assert_eq!(epoch_0[0].as_deref(), Some(&PINNED[..]));
}

/// The first batch of three of twenty with seed 7.
const PINNED: [i64; 3] = [14, 19, 5];

#[test]
fn resumed_anywhere_the_rest_is_the_same() {
    for ahead in [0, 2] {
        let options = LoaderOptions::new(3).shuffled(7).prefetch(ahead);
        let mut whole = loader(10, options);
        let mut positions = Vec::new();
        let mut batches = Vec::new();
        for _ in 0..13 {
            positions.push(whole.position());
            batches.push(whole.next_batch().expect("nothing fails"));
        }
        for (at, position) in positions.iter().enumerate() {
            let kept: Position = position.to_string().parse().expect("it was written so");
            let mut resumed = loader(10, options);
            // What was dealt out and made ahead before does not matter.
            for _ in 0..at % 3 {
                resumed.next_batch().expect("nothing fails");
            }
            resumed.resume(kept).expect("the loaders are alike");
            for batch in &batches[at..] {
                assert_eq!(resumed.next_batch().expect("nothing fails"), *batch);
            }
        }
    }
}

#[test]
fn positions_of_other_loaders_are_refused() {
    let options = LoaderOptions::new(3).shuffled(7);
    let position = loader(10, options).position();
    for (mut other, expected) in [
        (
            loader(10, options.shuffled(8)),
            "with the seed 7, and here it is 8",
        ),
        (
            loader(10, LoaderOptions::new(3)),
            "with the seed 7, and here it is none",
        ),
        (
            loader(11, options),
            "with a number of examples of 10, and here it is 11",
        ),
        (
            loader(
                10,
                LoaderOptions {
                    batch: 4,
                    ..options
                },
            ),
            "with batches of 3, and here it is 4",
        ),
    ] {
        let error = other.resume(position).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let beyond = Position {
        batch: 5,
        ..position
    };
    let error = loader(10, options)
        .resume(beyond)
        .expect_err("four batches");
    assert!(matches!(error, DataError::Position { .. }), "{error}");
}

#[test]
fn sets_without_a_batch_are_refused() {
    for (examples, options, expected) in [
        (0, LoaderOptions::new(3), "the set is empty"),
        (5, LoaderOptions::new(0), "a batch has at least one example"),
        (5, LoaderOptions::new(6).drop_last(), "take smaller batches"),
    ] {
        let error = Loader::new(counted(examples), options).expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// A set in which one batch fails for as long as it is told to.
struct Failing {
    inner: ArrayDataset,
    broken: Arc<AtomicBool>,
    panics: bool,
}

impl Dataset for Failing {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        if indices.contains(&4) && self.broken.load(Ordering::SeqCst) {
            assert!(!self.panics, "the fifth example is broken");
            return Err(DataError::Map("the fifth example is broken".into()));
        }
        self.inner.batch(indices)
    }
}

#[test]
fn what_fails_ahead_surfaces_at_its_batch_and_can_be_tried_again() {
    for panics in [false, true] {
        let broken = Arc::new(AtomicBool::new(true));
        let set = Failing {
            inner: counted(8),
            broken: Arc::clone(&broken),
            panics,
        };
        let mut loader = Loader::new(set, LoaderOptions::new(2).prefetch(4)).expect("four batches");
        for _ in 0..2 {
            assert!(loader.next_batch().expect("they are whole").is_some());
        }
        for _ in 0..2 {
            let error = loader.next_batch().expect_err("the third batch is broken");
            assert!(
                error.to_string().contains("the fifth example is broken"),
                "{error}"
            );
            assert_eq!(matches!(error, DataError::Panicked { .. }), panics);
            assert_eq!(loader.position().batch, 2);
        }
        broken.store(false, Ordering::SeqCst);
        let batch = loader
            .next_batch()
            .expect("it is repaired")
            .expect("the third");
        assert_eq!(batch[0].to_f64(), [4.0, 5.0]);
    }
}

/// A set that counts what is asked of it.
struct Counting(ArrayDataset, Arc<AtomicUsize>);

impl Dataset for Counting {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.batch(indices)
    }
}

#[test]
fn a_loader_can_be_dropped_at_any_time_and_makes_no_more_than_asked_for() {
    for taken in 0..5 {
        let asked = Arc::new(AtomicUsize::new(0));
        let set = Counting(counted(100), Arc::clone(&asked));
        let mut loader = Loader::new(set, LoaderOptions::new(1).prefetch(2)).expect("batches");
        for _ in 0..taken {
            loader.next_batch().expect("nothing fails");
        }
        drop(loader);
        let asked_then = asked.load(Ordering::SeqCst);
        // The set went with the loader and its thread.
        assert_eq!(Arc::strong_count(&asked), 1);
        // Those taken, two ahead, and the one that was being made when the last was taken.
        assert!(asked_then <= taken + 3, "{asked_then} for {taken}");
    }
}

#[test]
fn the_rest_of_an_epoch_is_an_iterator() {
    let set = moons(10, 0.0, 0)
        .expect("no noise")
        .dataset()
        .expect("equal sizes");
    let mut loader = Loader::new(set, LoaderOptions::new(4)).expect("three batches");
    loader.next_batch().expect("nothing fails");
    assert_eq!(loader.epoch().count(), 2);
    assert_eq!((loader.position().epoch, loader.position().batch), (1, 0));
    assert_eq!(loader.epoch().count(), 3);
}

#[test]
fn batches_come_apart_by_a_pattern() {
    let set = moons(5, 0.1, 0).and_then(|moons| moons.dataset());
    let mut loader = Loader::new(set.expect("a set"), LoaderOptions::new(2)).expect("batches");
    let whole: Vec<[Array; 2]> = loader.arrays().map(|batch| batch.expect("two")).collect();
    let again: Vec<Vec<Array>> = loader.epoch().map(|batch| batch.expect("two")).collect();
    assert_eq!(whole.len(), 3);
    assert!(whole.iter().zip(&again).all(|(a, b)| a[..] == b[..]));
    let refused = loader
        .arrays::<3>()
        .next()
        .expect("a batch")
        .expect_err("two");
    assert_eq!(
        refused.to_string(),
        "a batch of this set has 2 arrays, and 3 are to be taken from it"
    );
}
