//! Texts as tokens, a character each.

use crate::data::dataset::{Dataset, check_indices};
use crate::data::error::DataError;
use loopwright_array::Array;
use loopwright_ops::{DType, Scalar};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The characters that tokens stand for: token 0 is the first, in the order of their code points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vocabulary {
    characters: Vec<char>,
}

impl Vocabulary {
    /// The characters of a text.
    pub fn of(text: &str) -> Vocabulary {
        let characters: BTreeSet<char> = text.chars().collect();
        Vocabulary {
            characters: characters.into_iter().collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.characters.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.characters.is_empty()
    }

    /// All of them, token 0 first: what a checkpoint keeps, and [`Vocabulary::of`] reads.
    pub fn characters(&self) -> &[char] {
        &self.characters
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// [`DataError::Character`] for one that it does not have.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>, DataError> {
        let token = |(at, character): (usize, char)| match self.characters.binary_search(&character)
        {
            Ok(token) => Ok(token as i64),
            Err(_) => Err(DataError::Character {
                character,
                at,
                size: self.len(),
            }),
        };
        text.chars().enumerate().map(token).collect()
    }

    /// The text of tokens.
    ///
    /// # Errors
    /// [`DataError::Token`] for one that it does not have.
    pub fn decode(&self, tokens: &[i64]) -> Result<String, DataError> {
        let character = |(at, token): (usize, &i64)| {
            let index = usize::try_from(*token).ok();
            let found = index.and_then(|index| self.characters.get(index));
            found.copied().ok_or(DataError::Token {
                token: *token,
                at,
                size: self.len(),
            })
        };
        tokens.iter().enumerate().map(character).collect()
    }
}

/// A text as tokens.
///
/// ```
/// use loopwright_nn::data::{Corpus, Dataset};
///
/// let corpus = Corpus::of("abracadabra");
/// assert_eq!(corpus.vocabulary().characters(), ['a', 'b', 'c', 'd', 'r']);
/// // An example is three characters, and the one that follows each.
/// let windows = corpus.windows(3)?;
/// assert_eq!(windows.len(), 8);
/// let batch = windows.batch(&[4])?;
/// assert_eq!(batch[0].to_f64(), [2.0, 0.0, 3.0]); // cad
/// assert_eq!(batch[1].to_f64(), [0.0, 3.0, 0.0]); // ada
/// # Ok::<(), loopwright_nn::data::DataError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corpus {
    vocabulary: Vocabulary,
    tokens: Arc<[i64]>,
}

impl Corpus {
    /// The tokens of a text, with the vocabulary of its characters.
    pub fn of(text: &str) -> Corpus {
        let vocabulary = Vocabulary::of(text);
        let tokens = vocabulary.encode(text);
        let tokens = tokens
            .expect("the vocabulary has every character of the text")
            .into();
        Corpus { vocabulary, tokens }
    }

    /// The tokens of a text file.
    ///
    /// # Errors
    /// [`DataError::File`], and [`DataError::Broken`] if it is not UTF-8.
    pub fn read(path: &Path) -> Result<Corpus, DataError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| DataError::file("read", &name, error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            DataError::broken(
                &name,
                format!("it is not UTF-8 on line {line}, at byte {valid}"),
            )
        })?;
        Ok(Corpus::of(&text))
    }

    /// The characters that tokens stand for.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The tokens.
    pub fn tokens(&self) -> &[i64] {
        &self.tokens
    }

    /// The first part of the text and the rest, with one vocabulary; `share` is that of the rest.
    ///
    /// # Errors
    /// [`DataError::Argument`] if the share is not from 0 to 1.
    pub fn split(&self, share: f64) -> Result<(Corpus, Corpus), DataError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(DataError::Argument {
                what: "the share of the rest of a text",
                got: share.to_string(),
                range: "a number from 0 to 1",
            });
        }
        let rest = (self.tokens.len() as f64 * share).round() as usize;
        let (first, rest) = self.tokens.split_at(self.tokens.len() - rest);
        let part = |tokens: &[i64]| Corpus {
            vocabulary: self.vocabulary.clone(),
            tokens: tokens.into(),
        };
        Ok((part(first), part(rest)))
    }

    /// The set of all windows of this many tokens, each with those that follow: `i64[window]` both.
    ///
    /// # Errors
    /// [`DataError::Argument`] for windows of nothing.
    pub fn windows(&self, length: usize) -> Result<Windows, DataError> {
        if length == 0 {
            return Err(DataError::Argument {
                what: "the length of a window",
                got: "0".to_owned(),
                range: "at least 1",
            });
        }
        Ok(Windows {
            tokens: Arc::clone(&self.tokens),
            length,
        })
    }
}

/// What [`Corpus::windows`] makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows {
    tokens: Arc<[i64]>,
    length: usize,
}

impl Dataset for Windows {
    fn len(&self) -> usize {
        self.tokens.len().saturating_sub(self.length)
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        check_indices(indices, self.len())?;
        let shifted = |shift: usize| {
            let windows = indices
                .iter()
                .flat_map(|index| &self.tokens[index + shift..index + shift + self.length]);
            let tokens: Vec<Scalar> = windows.map(|token| Scalar::i64(*token)).collect();
            Array::from_scalars(DType::I64, &[indices.len(), self.length], &tokens)
        };
        Ok(vec![shifted(0)?, shifted(1)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let corpus = Corpus::of("Grüße\n");
        let vocabulary = corpus.vocabulary();
        assert_eq!(
            vocabulary.decode(corpus.tokens()).expect("its own"),
            "Grüße\n"
        );
        let text: String = vocabulary.characters().iter().collect();
        assert_eq!(Vocabulary::of(&text), *vocabulary);
        assert_eq!(
            vocabulary.encode("Gras").expect_err("no a").to_string(),
            "the character 'a' (at 2) is not in the vocabulary of 6 characters"
        );
        assert_eq!(
            vocabulary
                .decode(&[0, 6])
                .expect_err("no seventh")
                .to_string(),
            "the token 6 (at 1) is not in the vocabulary: tokens are 0 to 5"
        );
        assert!(vocabulary.decode(&[-1]).is_err());
    }

    #[test]
    fn parts_share_a_vocabulary() {
        let corpus = Corpus::of("aaaabbbbcc");
        let (first, rest) = corpus.split(0.2).expect("a share");
        assert_eq!((first.tokens().len(), rest.tokens()), (8, &[2, 2][..]));
        assert_eq!(first.vocabulary().len(), 3);
        assert!(rest.windows(2).expect("a length").is_empty());
        assert!(corpus.windows(0).is_err() && corpus.split(1.5).is_err());
    }
}
