//! Values made of tensors: what functions take and give.

use crate::node::Tensor;

/// Something made of tensors: a tensor, tuples, arrays, vectors and options of such things.
pub trait Tree {
    /// Shows every tensor, in order.
    fn visit(&self, see: &mut dyn FnMut(&Tensor));

    /// The same with every tensor replaced, in order.
    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;

    /// All tensors, in order.
    fn leaves(&self) -> Vec<Tensor> {
        let mut leaves = Vec::new();
        self.visit(&mut |tensor| leaves.push(tensor.clone()));
        leaves
    }
}

impl Tree for Tensor {
    fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
        see(self);
    }

    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> Tensor {
        by(self)
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|part| part.visit(see));
    }

    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<T> {
        self.iter().map(|part| part.replace(by)).collect()
    }
}

impl<T: Tree> Tree for Option<T> {
    fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|part| part.visit(see));
    }

    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> Option<T> {
        self.as_ref().map(|part| part.replace(by))
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|part| part.visit(see));
    }

    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> [T; N] {
        std::array::from_fn(|at| self[at].replace(by))
    }
}

impl Tree for () {
    fn visit(&self, _: &mut dyn FnMut(&Tensor)) {}

    fn replace(&self, _: &mut dyn FnMut(&Tensor) -> Tensor) {}
}

macro_rules! tuples {
    ($($($name:ident $at:tt)*;)*) => {
        $(impl<$($name: Tree),*> Tree for ($($name,)*) {
            fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
                $(self.$at.visit(see);)*
            }

            fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                ($(self.$at.replace(by),)*)
            }
        })*
    };
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
}
