//! First and second gradients against finite differences, in `f64`, on every backend that works here.

use loopwright_cc as _;
use loopwright_gccjit as _;
use loopwright_interp as _;
use loopwright_manycore as _;
use loopwright_x86 as _;

mod deep;
mod differences;
mod folds;
mod indices;
mod ops;
mod products;
mod rules;
mod views;
