//! Functions of functions: compiled, differentiated, mapped over an axis.

mod derivative;
mod jit;
mod mapped;
pub(crate) mod tree;

pub(crate) use derivative::{
    Gradient, checkpoint, custom_gradient, hessian, jacobian, jvp, stop_gradient, vjp,
};
pub(crate) use jit::Function;
pub(crate) use mapped::vmap;
