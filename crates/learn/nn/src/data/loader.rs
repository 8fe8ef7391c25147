//! Batches of a set, epoch by epoch.

use crate::data::dataset::Dataset;
use crate::data::error::DataError;
use crate::data::position::Position;
use crate::data::random::Random;
use loopwright_array::Array;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// How a loader deals out a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoaderOptions {
    /// How many examples a batch has.
    pub batch: usize,
    /// The seed of the order, which is another one every epoch; none leaves the examples in theirs.
    pub seed: Option<u64>,
    /// Whether a last, shorter batch is left out.
    pub drop_last: bool,
    /// How many batches are made ahead, on a thread; 0 makes each when it is asked for, without a thread.
    pub prefetch: usize,
}

impl LoaderOptions {
    /// Batches of this many, in the order of the set, with a shorter one at the end if need be, none made ahead.
    pub fn new(batch: usize) -> LoaderOptions {
        LoaderOptions {
            batch,
            seed: None,
            drop_last: false,
            prefetch: 0,
        }
    }

    /// In an order that only the seed and the epoch decide.
    pub fn shuffled(self, seed: u64) -> LoaderOptions {
        let seed = Some(seed);
        LoaderOptions { seed, ..self }
    }

    /// Without a last, shorter batch.
    pub fn drop_last(self) -> LoaderOptions {
        LoaderOptions {
            drop_last: true,
            ..self
        }
    }

    /// With so many batches made ahead.
    pub fn prefetch(self, prefetch: usize) -> LoaderOptions {
        LoaderOptions { prefetch, ..self }
    }
}

/// Deals out a set in batches, one epoch after the other, without an end.
///
/// What batch comes when is decided by the set, the options and the position alone: not by how many are made ahead, and not
/// by where the loader started.
pub struct Loader {
    plan: Plan,
    position: Position,
    /// The order of an epoch, where batches are made without a thread.
    order: Option<(u64, Vec<usize>)>,
    worker: Option<Worker>,
}

/// What batches there are.
#[derive(Clone)]
struct Plan {
    dataset: Arc<dyn Dataset>,
    options: LoaderOptions,
    examples: usize,
    /// Batches in an epoch.
    batches: u64,
}

impl Plan {
    fn order(&self, epoch: u64) -> Vec<usize> {
        match self.options.seed {
            Some(seed) => Random::stream(seed, epoch).permutation(self.examples),
            None => (0..self.examples).collect(),
        }
    }

    /// Makes a batch of an epoch with this order.
    fn batch(&self, order: &[usize], batch: u64) -> Result<Vec<Array>, DataError> {
        // No overflow: the batch is one of the epoch.
        let start = batch as usize * self.options.batch;
        let end = (start + self.options.batch).min(order.len());
        self.dataset.batch(&order[start..end])
    }
}

impl Loader {
    /// A loader that stands at the start of epoch 0.
    ///
    /// # Errors
    /// [`DataError::NoBatch`] where an epoch would have no batch.
    pub fn new(
        dataset: impl Dataset + 'static,
        options: LoaderOptions,
    ) -> Result<Loader, DataError> {
        let examples = dataset.len();
        let batches = match (options.batch, options.drop_last) {
            (0, _) => 0,
            (batch, true) => examples / batch,
            (batch, false) => examples.div_ceil(batch),
        };
        if batches == 0 {
            let advice = match (examples, options.batch) {
                (0, _) => "the set is empty",
                (_, 0) => "a batch has at least one example",
                _ => "take smaller batches, or keep the last, shorter one",
            };
            return Err(DataError::NoBatch {
                examples,
                batch: options.batch,
                advice,
            });
        }
        let plan = Plan {
            dataset: Arc::new(dataset),
            options,
            examples,
            batches: batches as u64,
        };
        let position = Position {
            epoch: 0,
            batch: 0,
            seed: options.seed,
            examples: examples as u64,
            size: options.batch as u64,
        };
        Ok(Loader {
            plan,
            position,
            order: None,
            worker: None,
        })
    }

    /// How many batches an epoch has.
    pub fn batches(&self) -> u64 {
        self.plan.batches
    }

    /// How many examples an epoch deals out: all of them, but for those of a batch that is left out.
    pub fn examples(&self) -> usize {
        match self.plan.options.drop_last {
            true => self.plan.batches as usize * self.plan.options.batch,
            false => self.plan.examples,
        }
    }

    /// Where the loader stands: what a checkpoint keeps.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Goes to a position: the batches that follow are exactly those that would have followed there.
    ///
    /// # Errors
    /// [`DataError::Position`] if it is that of a loader with another seed, another number of examples or another size of
    /// batches, or lies behind the end of an epoch.
    pub fn resume(&mut self, position: Position) -> Result<(), DataError> {
        let differ = |what, saved: &dyn ToString, here: &dyn ToString| DataError::Position {
            what,
            saved: saved.to_string(),
            here: here.to_string(),
        };
        let named = |seed: Option<u64>| seed.map_or("none".to_owned(), |seed| seed.to_string());
        if position.seed != self.position.seed {
            let (saved, here) = (named(position.seed), named(self.position.seed));
            return Err(differ("the seed", &saved, &here));
        }
        if position.examples != self.position.examples {
            let here = self.position.examples;
            return Err(differ("a number of examples of", &position.examples, &here));
        }
        if position.size != self.position.size {
            let here = self.position.size;
            return Err(differ("batches of", &position.size, &here));
        }
        if position.batch > self.plan.batches {
            let saved = format!("at least {}", position.batch);
            return Err(differ("a number of batches of", &saved, &self.plan.batches));
        }
        self.worker = None;
        self.position = position;
        Ok(())
    }

    /// The next batch; nothing, once, at the end of an epoch, after which the next one begins.
    ///
    /// # Errors
    /// What the set says, or [`DataError::Panicked`]. The loader stands where it stood: the next call tries the batch again.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Array>>, DataError> {
        if self.position.batch >= self.plan.batches {
            self.position.batch = 0;
            self.position.epoch += 1;
            return Ok(None);
        }
        let made = match self.plan.options.prefetch {
            0 => self.make(),
            ahead => self.receive(ahead),
        };
        let batch = made?;
        self.position.batch += 1;
        Ok(Some(batch))
    }

    /// The rest of the epoch.
    ///
    /// ```
    /// use loopwright_nn::data::{Loader, LoaderOptions, moons};
    ///
    /// let mut loader = Loader::new(moons(10, 0.1, 0)?.dataset()?, LoaderOptions::new(4))?;
    /// let mut sizes = Vec::new();
    /// for batch in loader.epoch() {
    ///     sizes.push(batch?[0].shape()[0]);
    /// }
    /// assert_eq!(sizes, [4, 4, 2]);
    /// assert_eq!(loader.position().epoch, 1);
    /// # Ok::<(), loopwright_nn::data::DataError>(())
    /// ```
    pub fn epoch(&mut self) -> Epoch<'_> {
        Epoch {
            loader: self,
            over: false,
        }
    }

    /// The rest of the epoch, where every batch has as many arrays as the pattern that takes it.
    ///
    /// ```
    /// use loopwright_nn::data::{Loader, LoaderOptions, moons};
    ///
    /// let mut loader = Loader::new(moons(10, 0.1, 0)?.dataset()?, LoaderOptions::new(4))?;
    /// for batch in loader.arrays() {
    ///     let [points, classes] = batch?;
    ///     assert_eq!(points.shape()[0], classes.shape()[0]);
    /// }
    /// # Ok::<(), loopwright_nn::data::DataError>(())
    /// ```
    ///
    /// A set whose batches have more arrays or fewer gives [`DataError::Arrays`] for each of them.
    pub fn arrays<const N: usize>(
        &mut self,
    ) -> impl Iterator<Item = Result<[Array; N], DataError>> + '_ {
        self.epoch().map(|batch| {
            batch?
                .try_into()
                .map_err(|arrays: Vec<Array>| DataError::Arrays {
                    wanted: N,
                    found: arrays.len(),
                })
        })
    }

    fn make(&mut self) -> Result<Vec<Array>, DataError> {
        let epoch = self.position.epoch;
        let order = match self.order.take() {
            Some((of, order)) if of == epoch => order,
            _ => self.plan.order(epoch),
        };
        let (_, order) = self.order.insert((epoch, order));
        self.plan.batch(order, self.position.batch)
    }

    fn receive(&mut self, ahead: usize) -> Result<Vec<Array>, DataError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(self.plan.clone(), self.position, ahead)?,
        };
        match worker.batches.as_ref().map(Receiver::recv) {
            Some(Ok(Ok(batch))) => {
                self.worker = Some(worker);
                Ok(batch)
            }
            // The worker has ended, and the next call starts another one at this batch.
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) | None => Err(DataError::Panicked {
                message: "its thread ended without a word".to_owned(),
            }),
        }
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader")
            .field("options", &self.plan.options)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// The batches from a position on, made on a thread.
struct Worker {
    /// There until the worker is dropped.
    batches: Option<Receiver<Result<Vec<Array>, DataError>>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(plan: Plan, from: Position, ahead: usize) -> Result<Worker, DataError> {
        // The thread holds one more, which it made and has no room for.
        let (sender, batches) = sync_channel(ahead - 1);
        let thread = std::thread::Builder::new()
            .name("loopwright-loader".to_owned())
            .spawn(move || produce(&plan, from, &sender))
            .map_err(DataError::Thread)?;
        Ok(Worker {
            batches: Some(batches),
            thread: Some(thread),
        })
    }
}

impl Drop for Worker {
    /// Waits for a batch that is being made, so that nothing asks the set once the loader is gone.
    fn drop(&mut self) {
        // A thread that waits for room is woken by this.
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            // It catches what panics in a set; what else it could say does not matter any more.
            let _ = thread.join();
        }
    }
}

/// Makes batches until nobody wants them, or one fails.
fn produce(plan: &Plan, from: Position, sender: &SyncSender<Result<Vec<Array>, DataError>>) {
    let mut first = from.batch;
    for epoch in from.epoch.. {
        let order = plan.order(epoch);
        for batch in first..plan.batches {
            let made = catch_unwind(AssertUnwindSafe(|| plan.batch(&order, batch)));
            let made = made.unwrap_or_else(|panic| {
                let message = panic
                    .downcast_ref::<&str>()
                    .map(|message| (*message).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "without a message".to_owned());
                Err(DataError::Panicked { message })
            });
            let failed = made.is_err();
            if sender.send(made).is_err() || failed {
                return;
            }
        }
        first = 0;
    }
}

/// The batches of an epoch that are left. See [`Loader::epoch`].
#[derive(Debug)]
pub struct Epoch<'a> {
    loader: &'a mut Loader,
    over: bool,
}

impl Iterator for Epoch<'_> {
    type Item = Result<Vec<Array>, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.loader.next_batch().transpose();
        self.over = next.is_none();
        next
    }
}
