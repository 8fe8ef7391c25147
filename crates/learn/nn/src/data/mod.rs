//! Data to learn from: files as arrays, sets of examples, and loaders that deal them out in shuffled batches.
//!
//! ```
//! use loopwright_nn::data::{Loader, LoaderOptions, digits};
//!
//! let digits = digits().split(0.2, 0)?;
//! let options = LoaderOptions::new(32).shuffled(7).prefetch(2);
//! let mut loader = Loader::new(digits.train.dataset()?, options)?;
//! for _epoch in 0..2 {
//!     while let Some(batch) = loader.next_batch()? {
//!         let [images, labels] = batch.as_slice() else { unreachable!("a digit is an image and a label") };
//!         assert_eq!(images.shape()[1..], [8, 8]);
//!         assert_eq!(images.shape()[0], labels.shape()[0]);
//!     }
//! }
//! # Ok::<(), loopwright_nn::data::DataError>(())
//! ```
//!
//! **Files.** [`read_npy`] and [`read_idx`] (plain or compressed) give arrays, [`Table`] reads CSV into typed columns, [`read_images`]
//! stacks pictures. Errors say the file, and where there are lines, line and column.
//!
//! **Sets.** A [`Dataset`] has a number of examples and gives any of them as a batch of arrays: [`ArrayDataset`] from
//! memory, [`ImageFolder`] from files as they are asked for, [`Windows`] from a text. [`Dataset::map`] changes batches on their
//! way, [`Dataset::select`] takes some of the examples.
//!
//! **Loaders.** A [`Loader`] deals out a set in batches, epoch by epoch, in an order that only depends on the seed and the
//! epoch, made ahead of time on a thread of its own where asked for. Its [`Position`] can be kept in a checkpoint: what
//! resumes there gives exactly the batches that were to come.
//!
//! **Made-up sets.** [`moons`], [`blobs`], [`spirals`], [`linear`] and [`waves`], and the handwritten [`digits`], which are part of the
//! library. All random numbers are those of [`loopwright_ops::threefry`], and functions those of one library, so that a seed gives the
//! same numbers everywhere.

mod corpus;
mod dataset;
mod digits;
mod error;
mod examples;
mod loader;
mod position;
mod random;
mod read;
mod synthetic;

pub use corpus::{Corpus, Vocabulary, Windows};
pub use dataset::{ArrayDataset, Dataset, Map, Select};
pub use digits::digits;
pub use error::DataError;
pub use examples::{Examples, Split, stratified};
pub use loader::{Epoch, Loader, LoaderOptions};
pub use position::Position;
pub use random::Random;
pub use read::{
    Column, ColumnType, ImageFolder, Table, TableOptions, read_idx, read_images, read_npy,
    read_npy_as, write_npy,
};
pub use synthetic::{Linear, blobs, linear, moons, spirals, waves};
