//! The assembler: hardware registers, the table of vector instructions, the encoder, labels and the constant pool.
//!
//! It knows nothing of kernels. [`Assembler`] has one method for each kind of integer instruction; all vector
//! instructions go through [`Assembler::vector`], whose operands are a [`Vector`] and whose encodings all come from one
//! row of [`table`].
//!
//! ```
//! use loopwright_x86::asm::{Alu, Assembler, Bits, RAX, RDI};
//!
//! let mut asm = Assembler::new();
//! asm.mov(Bits::B64, RAX, RDI);
//! asm.alu_imm(Alu::Add, Bits::B64, RAX, 2);
//! asm.ret();
//! assert_eq!(asm.finish(&[]).bytes, [0x48, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x02, 0xc3]);
//! ```

mod assembler;
mod bytes;
mod integer;
mod registers;
pub mod table;
mod tile;
mod vector;

pub use assembler::{Assembler, Code, Label};
pub use integer::{Alu, BitCount, Prefetch, Shift, Unary};
pub use registers::*;
pub use table::{Spec, Vop};
pub use tile::{Tile, TileDot};
pub use vector::{Operand, Rm, Vector};
