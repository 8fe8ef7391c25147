//! Where a loader stands.

use crate::data::error::DataError;
use std::fmt;
use std::str::FromStr;

/// What a position looks like as a text.
pub(crate) const EXAMPLE: &str = "epoch=3 batch=17 seed=7 examples=1437 size=32";

/// Where a [`Loader`](crate::data::Loader) stands: the batch that comes next, and what decides what is in it.
///
/// As a text it fits into the metadata of a checkpoint.
///
/// ```
/// use loopwright_nn::data::Position;
///
/// let position: Position = "epoch=3 batch=17 seed=7 examples=1437 size=32".parse()?;
/// assert_eq!((position.epoch, position.batch, position.seed), (3, 17, Some(7)));
/// assert_eq!(position.to_string().parse::<Position>()?, position);
/// # Ok::<(), loopwright_nn::data::DataError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The batch of the epoch that comes next, from 0; as many as an epoch has at its end.
    pub batch: u64,
    /// The seed of the order; none if examples come in theirs.
    pub seed: Option<u64>,
    /// How many examples the set has.
    pub examples: u64,
    /// How many a batch has.
    pub size: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch={} batch={} seed=", self.epoch, self.batch)?;
        match self.seed {
            Some(seed) => write!(f, "{seed}")?,
            None => f.write_str("none")?,
        }
        write!(f, " examples={} size={}", self.examples, self.size)
    }
}

impl FromStr for Position {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Position, DataError> {
        let read = || {
            let mut words = text.split(' ');
            let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
            let position = Position {
                epoch: value("epoch")?.parse().ok()?,
                batch: value("batch")?.parse().ok()?,
                seed: match value("seed")? {
                    "none" => None,
                    seed => Some(seed.parse().ok()?),
                },
                examples: value("examples")?.parse().ok()?,
                size: value("size")?.parse().ok()?,
            };
            words.next().is_none().then_some(position)
        };
        read().ok_or_else(|| DataError::PositionText {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_positions_are_refused() {
        let unshuffled = EXAMPLE.replace("seed=7", "seed=none");
        let position: Position = unshuffled.parse().expect("it is one");
        assert_eq!((position.seed, position.to_string()), (None, unshuffled));
        for text in ["", "epoch=3", "epoch=x batch=1 seed=1 examples=1 size=1"] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
        let error = format!("{EXAMPLE} more=1").parse::<Position>();
        let error = error.expect_err("there is more").to_string();
        assert!(error.ends_with(&format!("such as `{EXAMPLE}`")), "{error}");
    }
}
