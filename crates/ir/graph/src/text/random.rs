//! Random numbers: `random[i, j](seed)`, `random_bits(seed, counter)`, and `uniform` and `normal` in both
//! ways.

use super::ast::{Call, Options};
use super::call::{arguments, refuse_separators};
use super::lower::{Lowering, Meaning};
use crate::ir::{DimId, NodeId};
use loopwright_ops::DType;
use loopwright_text::{Diagnostic, Span};

/// What is made of the random bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Distribution {
    Bits,
    Uniform,
    Normal,
}

impl Distribution {
    /// The distribution of a function that takes a seed and a counter, without brackets.
    pub(super) fn of_counter(name: &str) -> Option<Distribution> {
        match name {
            "random_bits" => Some(Distribution::Bits),
            "uniform" => Some(Distribution::Uniform),
            "normal" => Some(Distribution::Normal),
            _ => None,
        }
    }

    /// The dtype of the numbers, if `named` is the one that is asked for.
    pub(super) fn dtype(self, named: Option<DType>) -> DType {
        match self {
            Distribution::Bits => DType::U64,
            Distribution::Uniform | Distribution::Normal => named.unwrap_or(DType::F32),
        }
    }
}

impl Lowering {
    /// `uniform[i, j, f64](seed)` counts the elements over dimensions; `uniform[f64](seed, counter)` is
    /// given its counter. The dtype is `f32` where none is named; bits have none.
    pub(super) fn random(
        &mut self,
        distribution: Distribution,
        call: &Call,
        options: Option<&Options>,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let name = &call.function.text;
        let (dims, dtype) = match options {
            Some(options) => self.random_options(distribution, options)?,
            None => (Vec::new(), None),
        };
        let counted = options.is_some() && call.arguments.len() == 1;
        let (seed, counter) =
            if counted {
                let [seed] = arguments(call, span)?;
                let seed = self.value(seed, Some(DType::U64))?.node;
                self.builder.at(span);
                (seed, self.builder.linear_index(&dims))
            } else {
                if !dims.is_empty() {
                    return Err(Diagnostic::new(
                    span,
                    format!("`{name}` over dimensions takes a seed alone, which counts them"),
                )
                .help(format!(
                    "write `{name}[i, j](seed)`, or give it a counter of your own: `{}(seed, i)`",
                    if distribution == Distribution::Bits { "random_bits" } else { name },
                )));
                }
                let [seed, counter] = arguments(call, span).map_err(|error| {
                    if options.is_some() || call.arguments.len() != 1 {
                        return error;
                    }
                    let over = if distribution == Distribution::Bits {
                        "random"
                    } else {
                        name
                    };
                    error.help(format!(
                        "to count the elements over dimensions, name them: `{over}[i, j](seed)`"
                    ))
                })?;
                let seed = self.value(seed, Some(DType::U64))?.node;
                let counter = self.value(counter, Some(DType::U64))?.node;
                self.builder.at(span);
                (seed, Ok(counter))
            };
        let counter = self.at(span, counter)?;
        let dtype = dtype.unwrap_or(DType::F32);
        let node = match distribution {
            Distribution::Bits => self.builder.random_bits(seed, counter),
            Distribution::Uniform => self.builder.uniform(seed, counter, dtype),
            Distribution::Normal => self.builder.normal(seed, counter, dtype),
        };
        self.at(span, node)
    }

    /// Dimensions, which may be new, and a dtype.
    fn random_options(
        &mut self,
        distribution: Distribution,
        options: &Options,
    ) -> Result<(Vec<DimId>, Option<DType>), Diagnostic> {
        refuse_separators(options)?;
        let (mut dims, mut dtype) = (Vec::new(), None);
        for item in &options.items {
            let is_dim =
                item.value.is_some() || matches!(self.lookup(&item.name), Some(Meaning::Dim(_)));
            match item.name.text.parse::<DType>() {
                Ok(named) if !is_dim && !item.name.sigil && distribution != Distribution::Bits => {
                    if dtype.replace(named).is_some() {
                        return Err(Diagnostic::new(item.name.span, "a second dtype")
                            .help("name one, as in `uniform[i, f64](seed)`"));
                    }
                }
                _ => dims.push(self.dim(item, true)?),
            }
        }
        Ok((dims, dtype))
    }
}
