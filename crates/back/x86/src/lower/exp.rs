//! The exponential function by instructions that only AVX-512 has.

use super::function::Writer;
use super::ops::Span;
use crate::asm::{Vop, Width};
use crate::machine::VReg;
use loopwright_kernel::passes::expand_math::{EXP, LN_2_HIGH, LN_2_LOW};

/// Below, the result is 0; above, it is infinite.
const LEAST: f32 = -104.0;
const MOST: f32 = 89.0;

impl Writer<'_, '_, '_> {
    /// `exp(x)` of single precision: `x = n * ln 2 + r` with a whole `n`, a polynomial of `r`, and a scaling by `2^n` that rounds and
    /// overflows as it should. At most a unit in the last place off, as the expansion for other machines.
    pub(crate) fn exp(&mut self, span: Span, x: VReg) -> VReg {
        // Scalars as vectors of four: the instructions are the same.
        let width = match span {
            Span::Scalar => Width::W128,
            Span::Piece(width) => width,
        };
        let number = |writer: &mut Self, value: f32| writer.lanes32(value.to_bits());
        let (least, most) = (number(self, LEAST), number(self, MOST));
        // The second operand is the result where it is NaN.
        let x = self.vector3(Vop::Maxps, width, least, x);
        let x = self.vector3(Vop::Minps, width, most, x);
        let per_ln2 = number(self, std::f32::consts::LOG2_E);
        let n = self.vector3(Vop::Mulps, width, x, per_ln2);
        let n = self.vector2_imm(Vop::Rndscaleps, width, n, 8);
        let (high, low) = (number(self, LN_2_HIGH), number(self, LN_2_LOW));
        let piece = Span::Piece(width);
        let r = self.fma(Vop::Fnmadd231ps, piece, n, high, x, None);
        let r = self.fma(Vop::Fnmadd231ps, piece, n, low, r, None);
        let mut polynomial = number(self, EXP[0]);
        for coefficient in &EXP[1..] {
            let coefficient = number(self, *coefficient);
            polynomial = self.fma(Vop::Fmadd231ps, piece, polynomial, r, coefficient, None);
        }
        let square = self.vector3(Vop::Mulps, width, r, r);
        let less_one = self.fma(Vop::Fmadd231ps, piece, polynomial, square, r, None);
        let one = number(self, 1.0);
        let p = self.vector3(Vop::Addps, width, less_one, one);
        self.vector3(Vop::Scalefps, width, p, n)
    }
}
