//! The text form of modules.
//!
//! ```text
//! loopwright kernel 1
//!
//! struct Pair { x: f32, y: array<i32, 4> }
//!
//! kernel @scale(%A: readwrite noalias ptr<global, f32>, %n: i64) {
//!   %zero: i64 = const 0
//!   %one: i64 = const 1
//!   for %i: i64 = %zero .. %n step %one serial {
//!     %x: f32 = load %A[%i]
//!     %2: f32 = add %x, %x
//!     store %A[%i], %2
//!   }
//! }
//! ```
//!
//! **Values** are written `%label`. A label is the value's name where no other value of the function
//! has it, `name'number` otherwise, and the bare number for a value without a name; a label that is
//! no identifier stands in quotes, `%"a b"`. Read back, everything before the last `'number` is the
//! name, and numbers are given in the order of definition, which makes printing and parsing inverse
//! to one another on modules in the normal form of [`crate::Function::compact`].
//!
//! **Statements** end with their line or with `;`:
//!
//! ```text
//! %v: TYPE = INSTRUCTION                 barrier [local] [global]
//! store %p[%i], %v                       async_copy %dst[%i], %src[%j], %count
//! call @f(%a, %b)                        async_wait 1
//! for %i: i64 = %a .. %b step %c KIND { ... }          (serial, parallel, unroll, vectorize)
//! while { ... } cond %c { ... }          tile_store %p[%i] stride %s, %tile
//! if %c { ... } [else { ... }]           break, continue, return [%v]
//! ```
//!
//! **Instructions** take their result's type from the annotation:
//!
//! ```text
//! const 1.5            OP %a, %b            cast %a              bitcast %a
//! alloc private f32x8 x 4                   load %p[%i]          offset %p[%i]
//! field %p, name       elements %p          splat %a             build %a, %b
//! extract %v, 0        insert %v, 0, %a     shuffle %v, %w, [0, 5]
//! reduce sum %v        global_id 0          atomic add %p[%i], %a
//! compare_exchange %p[%i], %expected, %a    call @f(%a)
//! tile_load %p[%i] stride %s                tile_splat %a        tile_mma %l, %r, %acc
//! ```
//!
//! **Types** are dtypes (`f32`), vectors (`f32x16`), `ptr<SPACE, TYPE>`, `array<TYPE, COUNT>`,
//! `tile<ROLE, DTYPE, ROWS, COLUMNS>` and names of structs.

mod keywords;
mod labels;
mod parser;
mod printer;

pub(crate) use labels::value_label;
pub use parser::{Places, parse, parse_unvalidated};
pub use printer::print;
pub(crate) use printer::{statement_line, type_text};
