//! Networks that train: layers, losses, optimisers. All of [`loopwright_nn`], where `#[derive(Module)]` is the
//! one for programs that depend on this crate alone.
//!
//! ```
//! use loopwright::prelude::*;
//!
//! #[derive(Module)]
//! struct Net {
//!     hidden: Dense,
//!     out: Dense,
//! }
//!
//! impl Layer for Net {
//!     fn forward(&self, x: &Tensor) -> Tensor {
//!         self.out.forward(&self.hidden.forward(x).relu())
//!     }
//! }
//!
//! let net = Net { hidden: Dense::new(8), out: Dense::new(2) };
//! let scores = net.forward(&Tensor::ones([5, 3], DType::F32));
//! assert_eq!(scores.sizes()?, [5, 2]);
//! assert_eq!(net.entries()[0].name, "hidden.weight");
//! # Ok::<(), TensorError>(())
//! ```

pub use loopwright_nn::*;

// What is said outright goes before what comes with the star: the trait is that one's, the macro this one.
pub use loopwright_derive::ModuleOfLoopwright as Module;
