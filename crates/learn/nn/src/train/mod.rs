//! Training runs: what they keep, how they are stopped and taken up again, and one that is complete, the
//! handwritten digits.
//!
//! Everything that decides how a run goes on is a variable or a position: parameters, moments of the
//! optimiser, counters of random numbers, and where the loader stands. [`save`] keeps all of it in one
//! file, as a whole or not at all, and [`load`] puts it back: a run that was stopped ends at the same
//! weights, bit for bit, as one that was not.
//!
//! [`load_as`] reads what other programs saved, under their names and in their layouts: a model of PyTorch,
//! or one of Hugging Face's.

mod digits;
mod error;
mod saved;
mod stored;

pub use digits::{Digits, Event, Options, Report, digits};
pub use error::TrainError;
pub use saved::{load, load_as, load_part, save};
pub use stored::Stored;
