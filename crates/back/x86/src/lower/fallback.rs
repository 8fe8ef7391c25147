//! Ops that the machine has no instructions for: their operands go through memory to the functions that say what ops mean.

use super::Refusal;
use super::function::{Room, Writer};
use super::value::{Pieces, size_of};
use crate::asm::Mem;
use crate::machine::{Argument, Callee, Inst as M, VReg};
use loopwright_kernel::{Type, Value};
use loopwright_ops::{DType, Op, Scalar, cast, evaluate};
use smallvec::SmallVec;
use std::sync::Arc;

/// Something that is computed by a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fallback {
    /// An op on every lane.
    Map {
        op: Op,
        /// The dtypes of the operands, and where in the block they are.
        operands: SmallVec<[(DType, u32); 3]>,
        lanes: u32,
    },
    /// A conversion of every lane.
    Cast {
        from: DType,
        to: DType,
        lanes: u32,
        at: u32,
    },
    /// `accumulator + left * right` of matrices, rows one after the other.
    Mma {
        left: DType,
        right: DType,
        accumulator: DType,
        rows: u32,
        cols: u32,
        depth: u32,
        /// Where the operands and the result are.
        at: [u32; 4],
    },
}

/// Reads an element.
///
/// # Safety
/// The address is that of an element.
unsafe fn read(at: *const u8, dtype: DType) -> Scalar {
    let mut bytes = [0; 8];
    // SAFETY: as the caller states.
    unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), size_of(dtype) as usize) };
    Scalar::from_bits(dtype, u64::from_le_bytes(bytes))
}

/// Writes an element.
///
/// # Safety
/// The address is that of an element.
unsafe fn write(at: *mut u8, scalar: Scalar) {
    let bytes = scalar.bits().to_le_bytes();
    // SAFETY: as the caller states.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, size_of(scalar.dtype()) as usize) };
}

/// What compiled code calls. The result is written to the start of the block.
///
/// # Safety
/// `what` is of the module that calls, and `block` is laid out as it says.
unsafe extern "C" fn run(what: *const Fallback, block: *mut u8) {
    // SAFETY: as the caller states; the code keeps what it refers to.
    let what = unsafe { &*what };
    // SAFETY: places are within the block, as it was laid out.
    let element = |at: u32, lane: u32, dtype: DType| unsafe {
        read(block.add((at + lane * size_of(dtype)) as usize), dtype)
    };
    // Validated modules have no ops with operands that these do not take.
    let value = |op: Op, operands: &[Scalar]| match evaluate(op, operands) {
        Ok(value) => value,
        Err(_) => Scalar::zero(operands[0].dtype()),
    };
    match what {
        Fallback::Map {
            op,
            operands,
            lanes,
        } => {
            for lane in 0..*lanes {
                let scalars: SmallVec<[Scalar; 3]> = operands
                    .iter()
                    .map(|(dtype, at)| element(*at, lane, *dtype))
                    .collect();
                let result = value(*op, &scalars);
                let at = (lane * size_of(result.dtype())) as usize;
                // SAFETY: as above.
                unsafe { write(block.add(at), result) };
            }
        }
        Fallback::Cast {
            from,
            to,
            lanes,
            at,
        } => {
            for lane in 0..*lanes {
                let result = cast(element(*at, lane, *from), *to);
                // SAFETY: as above.
                unsafe { write(block.add((lane * size_of(*to)) as usize), result) };
            }
        }
        Fallback::Mma {
            left,
            right,
            accumulator,
            rows,
            cols,
            depth,
            at,
        } => {
            for row in 0..*rows {
                for col in 0..*cols {
                    let mut sum = element(at[2], row * cols + col, *accumulator);
                    for k in 0..*depth {
                        let a = cast(element(at[0], row * depth + k, *left), *accumulator);
                        let b = cast(element(at[1], k * cols + col, *right), *accumulator);
                        sum = value(Op::MulAdd, &[a, b, sum]);
                    }
                    let lane = row * cols + col;
                    let at = (at[3] + lane * size_of(*accumulator)) as usize;
                    // SAFETY: as above.
                    unsafe { write(block.add(at), sum) };
                }
            }
        }
    }
}

/// The address of the function that computes fallbacks.
pub(crate) fn fallback_address() -> u64 {
    let run: unsafe extern "C" fn(*const Fallback, *mut u8) = run;
    run as usize as u64
}

/// An area of a block, from one multiple of 64 to another.
fn area(ty: &Type) -> u32 {
    let Some(dtype) = ty.dtype() else { return 64 };
    (size_of(dtype) * ty.lanes()).next_multiple_of(64)
}

impl Writer<'_, '_, '_> {
    /// An op on values, by a call.
    pub(crate) fn fallback(
        &mut self,
        op: Op,
        operands: &[Value],
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let operands: Vec<(Type, Pieces)> = operands
            .iter()
            .map(|operand| (self.function.ty(*operand).clone(), self.pieces(*operand)))
            .collect();
        Ok(self.fallback_on(op, &operands, ty))
    }

    /// An op on registers, by a call.
    pub(crate) fn fallback_on(&mut self, op: Op, operands: &[(Type, Pieces)], ty: &Type) -> Pieces {
        let mut bytes = area(ty);
        let mut places = SmallVec::new();
        for (ty, _) in operands {
            let Some(dtype) = ty.dtype() else {
                unreachable!("ops are on scalars and vectors")
            };
            places.push((dtype, bytes));
            bytes += area(ty);
        }
        let block = self.lanes_room(bytes);
        for ((ty, pieces), (_, at)) in operands.iter().zip(&places) {
            self.store_pieces(ty, Mem::at(VReg::FRAME, block + *at as i32), pieces);
        }
        let what = Fallback::Map {
            op,
            operands: places,
            lanes: ty.lanes(),
        };
        self.ask(what, block);
        self.load_pieces(ty, Mem::at(VReg::FRAME, block))
    }

    /// A conversion, by a call.
    pub(crate) fn fallback_cast(&mut self, from: Value, ty: &Type) -> Result<Pieces, Refusal> {
        let source = self.function.ty(from).clone();
        let pieces = self.pieces(from);
        let (Some(was), Some(to)) = (source.dtype(), ty.dtype()) else {
            unreachable!("scalars and vectors are cast")
        };
        let at = area(ty);
        let block = self.lanes_room(at + area(&source));
        self.store_pieces(&source, Mem::at(VReg::FRAME, block + at as i32), &pieces);
        let what = Fallback::Cast {
            from: was,
            to,
            lanes: ty.lanes(),
            at,
        };
        self.ask(what, block);
        Ok(self.load_pieces(ty, Mem::at(VReg::FRAME, block)))
    }

    /// Calls the function that computes it.
    pub(crate) fn ask(&mut self, what: Fallback, block: i32) {
        let what = match self
            .shared
            .fallbacks
            .iter()
            .position(|known| **known == what)
        {
            Some(known) => &self.shared.fallbacks[known],
            None => {
                self.shared.fallbacks.push(Arc::new(what));
                &self.shared.fallbacks[self.shared.fallbacks.len() - 1]
            }
        };
        let what = Arc::as_ptr(what);
        self.emit(M::Call {
            callee: Callee::Address(fallback_address()),
            arguments: vec![Argument::Imm(what.addr() as i64), Argument::Frame(block)],
        });
    }

    /// Room for vectors that are taken apart. Parts of registers go through another one.
    pub(crate) fn lanes_room(&mut self, bytes: u32) -> i32 {
        self.room(Room::Lanes, bytes)
    }
}
