//! Index arithmetic: symbolic expressions as kernel values.

use crate::error::LowerError;
use crate::program::Lowering;
use loopwright_graph::SymbolInfo;
use loopwright_kernel::Value;
use loopwright_ops::{DType, Op};
use loopwright_symbolic::{Cmp, Expr, ExprKind, Symbol};

/// An index: a value plus a constant. Keeping the constant apart lets copies of an unrolled body
/// share all arithmetic but the last addition, and tells when two indices differ by a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) base: Option<Value>,
    pub(crate) offset: i64,
}

impl Place {
    pub(crate) const ZERO: Place = Place {
        base: None,
        offset: 0,
    };

    pub(crate) fn constant(offset: i64) -> Place {
        Place { base: None, offset }
    }

    pub(crate) fn value(base: Value) -> Place {
        Place {
            base: Some(base),
            offset: 0,
        }
    }

    /// The index `by` elements further on.
    pub(crate) fn shifted(self, by: i64) -> Place {
        Place {
            offset: self.offset.wrapping_add(by),
            ..self
        }
    }

    pub(crate) fn as_const(self) -> Option<i64> {
        self.base.is_none().then_some(self.offset)
    }
}

impl Lowering<'_> {
    pub(crate) fn place_value(&mut self, place: Place) -> Value {
        let offset = self.builder.const_i64(place.offset);
        match place.base {
            None => offset,
            Some(base) if place.offset == 0 => base,
            Some(base) => self.builder.add_i64(base, offset),
        }
    }

    pub(crate) fn place_of(&self, value: Value) -> Place {
        match self.builder.known_i64(value) {
            Some(known) => Place::constant(known),
            None => Place::value(value),
        }
    }

    pub(crate) fn add_places(&mut self, a: Place, b: Place) -> Place {
        let base = match (a.base, b.base) {
            (Some(a), Some(b)) => Some(self.builder.add_i64(a, b)),
            (base, None) | (None, base) => base,
        };
        Place {
            base,
            offset: a.offset.wrapping_add(b.offset),
        }
    }

    pub(crate) fn sub_places(&mut self, a: Place, b: Place) -> Place {
        let offset = a.offset.wrapping_sub(b.offset);
        if a.base == b.base {
            return Place::constant(offset);
        }
        let base = match (a.base, b.base) {
            (base, None) => base,
            (a, Some(b)) => {
                let a = match a {
                    Some(a) => a,
                    None => self.builder.const_i64(0),
                };
                Some(self.builder.sub_i64(a, b))
            }
        };
        Place { base, offset }
    }

    pub(crate) fn mul_places(&mut self, a: Place, b: Place) -> Place {
        match (a.as_const(), b.as_const()) {
            (Some(a), Some(b)) => Place::constant(a.wrapping_mul(b)),
            (Some(factor), None) => self.scale(b, factor),
            (None, Some(factor)) => self.scale(a, factor),
            (None, None) => {
                let (a, b) = (self.place_value(a), self.place_value(b));
                let product = self.builder.mul_i64(a, b);
                self.place_of(product)
            }
        }
    }

    fn scale(&mut self, place: Place, factor: i64) -> Place {
        if factor == 0 {
            return Place::ZERO;
        }
        let base = place.base.map(|base| {
            let factor = self.builder.const_i64(factor);
            self.builder.mul_i64(base, factor)
        });
        Place {
            base,
            offset: place.offset.wrapping_mul(factor),
        }
    }

    /// The value of an index expression where the loops are now.
    pub(crate) fn place(&mut self, expr: &Expr) -> Result<Place, LowerError> {
        Ok(match expr.kind() {
            ExprKind::Const(value) => Place::constant(*value),
            ExprKind::Symbol(symbol) => self.symbol_place(*symbol)?,
            ExprKind::Add(terms) => {
                let mut sum = Place::ZERO;
                for term in terms {
                    let term = self.place(term)?;
                    sum = self.add_places(sum, term);
                }
                sum
            }
            ExprKind::Mul(factors) => {
                let mut product = Place::constant(1);
                for factor in factors {
                    let factor = self.place(factor)?;
                    product = self.mul_places(product, factor);
                }
                product
            }
            ExprKind::FloorDiv(a, b) => self.binary(Op::FloorDiv, a, b)?,
            ExprKind::Mod(a, b) => self.binary(Op::Mod, a, b)?,
            ExprKind::Min(a, b) => self.binary(Op::Min, a, b)?,
            ExprKind::Max(a, b) => self.binary(Op::Max, a, b)?,
            ExprKind::Compare(cmp, a, b) => {
                let (a, b) = (self.place(a)?, self.place(b)?);
                let (a, b) = (self.place_value(a), self.place_value(b));
                let op = match cmp {
                    Cmp::Eq => Op::Eq,
                    Cmp::Ne => Op::Ne,
                    Cmp::Lt => Op::Lt,
                    Cmp::Le => Op::Le,
                };
                let holds = self.builder.map(op, &[a, b]);
                let value = self.builder.cast(DType::I64, holds);
                self.place_of(value)
            }
        })
    }

    fn binary(&mut self, op: Op, a: &Expr, b: &Expr) -> Result<Place, LowerError> {
        let (a, b) = (self.place(a)?, self.place(b)?);
        let (a, b) = (self.place_value(a), self.place_value(b));
        let value = match op {
            Op::FloorDiv => self.builder.floor_div_i64(a, b),
            Op::Mod => self.builder.mod_i64(a, b),
            Op::Min => self.builder.min_i64(a, b),
            Op::Max => self.builder.max_i64(a, b),
            _ => self.builder.map(op, &[a, b]),
        };
        Ok(self.place_of(value))
    }

    fn symbol_place(&mut self, symbol: Symbol) -> Result<Place, LowerError> {
        if let Some(value) = self.dynamic_value(symbol) {
            return Ok(self.place_of(value));
        }
        let missing =
            |what: &str| LowerError::Symbolic(format!("{what} is used where no loop runs over it"));
        match self.graph.symbol(symbol) {
            SymbolInfo::Size { name, .. } | SymbolInfo::Static { name, .. } => {
                match self.sizes.get(&symbol) {
                    Some(value) => Ok(Place::value(*value)),
                    None => Err(missing(name)),
                }
            }
            SymbolInfo::Index(dim) => {
                self.index[*dim].ok_or_else(|| missing(&self.graph.dim(*dim).name))
            }
        }
    }

    /// The value of a symbolic index, as an `i64`.
    pub(crate) fn expr_value(&mut self, expr: &Expr) -> Result<Value, LowerError> {
        let place = self.place(expr)?;
        Ok(self.place_value(place))
    }
}
