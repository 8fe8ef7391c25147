//! Shapes are inferred from use; a hidden dimension that nobody fixed is an error, never a hang.

use crate::{Checked, message};
use loopwright_nn::{Activation, BatchNorm, Conv, Dense, Layer, Module, Pool, Sequential, seed};
use loopwright_tensor::{
    Axis, DType, ErrorKind, Shape, Tensor, TensorError, Variable, concat, jit, unknown,
};

/// A table of ones, some of whose sizes are unknown.
fn ones(sizes: [&str; 2]) -> Tensor {
    let axis = |size: &str| match size.parse::<usize>() {
        Ok(size) => Axis::of(size),
        Err(_) => Axis::of(unknown(size)),
    };
    Tensor::full(Shape::new(sizes.map(axis)), 1.0, DType::F32)
}

#[test]
fn layers_take_their_inputs_from_use() -> Checked {
    seed(1);
    let net = Sequential::new()
        .then(Conv::new(4, &[3, 3]))
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(Pool::GlobalAverage(2))
        .then(Dense::new(3));
    let known = |net: &Sequential| -> Vec<String> {
        let entries = net.entries();
        let shape = |entry: &loopwright_nn::Entry| entry.variable().shape().to_string();
        entries.iter().map(shape).collect()
    };
    assert!(known(&net)[0] == "[4, ?, 3, 3]", "{:?}", known(&net));
    net.forward(&Tensor::ones([2, 5, 8, 8], DType::F32))
        .realize()?;
    assert_eq!(known(&net)[0], "[4, 5, 3, 3]");
    assert!(!known(&net).concat().contains('?'), "{:?}", known(&net));
    Ok(())
}

#[test]
fn sizes_flow_backwards_through_a_network() -> Checked {
    // Said by a bias in the middle, and by the target at the end.
    let (first, second) = (
        ones(["3", "hidden"]),
        ones(["hidden of the second", "outputs"]),
    );
    let (x, bias) = (
        Tensor::ones([2, 3], DType::F32),
        Tensor::ones([5], DType::F32),
    );
    let y = (x.matmul(&first) + bias).matmul(&second);
    let loss = (y - Tensor::ones([2, 4], DType::F32)).square().sum(..);
    assert_eq!(first.shape().to_string(), "[3, 5]");
    assert_eq!(second.shape().to_string(), "[5, 4]");
    assert_eq!(loss.item()?, 2.0 * 4.0 * 19.0 * 19.0);
    Ok(())
}

#[test]
fn a_hidden_size_that_nobody_fixed_is_an_error_that_names_it() {
    let hidden = unknown("the hidden width");
    let axis = || Axis::of(&hidden);
    let first = Tensor::full(Shape::new([Axis::of(3), axis()]), 1.0, DType::F32);
    let second = Tensor::full(Shape::new([axis(), Axis::of(1)]), 1.0, DType::F32);
    let y = Tensor::ones([2, 3], DType::F32)
        .matmul(&first)
        .matmul(&second);
    let expected =
        "nothing determines the hidden width; say it, or use it with something whose size is known";
    assert_eq!(message(&y), expected);
    assert_eq!(message(&y.sum(..)), expected);
    // The same in a function with parameters.
    let (first, second) = (Variable::new(&first), Variable::new(&second));
    let step = jit("step", move |x: &Tensor| {
        let (w1, w2) = (first.get(), second.get());
        let loss = x.matmul(&w1).matmul(&w2).sum(..);
        let [d1, d2] = loss.gradients([&w1, &w2]);
        first.set(&(w1 - d1))?;
        second.set(&(w2 - d2))?;
        Ok::<_, TensorError>(loss)
    });
    let error = step.call(&Tensor::ones([2, 3], DType::F32)).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Undetermined { what } if what == "the hidden width"),
        "{error}"
    );
}

#[test]
fn circles_of_sizes_end() {
    // A size that would have to be one more than itself.
    let a = Tensor::full(Shape::new([Axis::of(unknown("a"))]), 1.0, DType::F32);
    let longer = concat(&[&a, &Tensor::ones([1], DType::F32)], 0);
    let said = message(&(longer + &a));
    assert!(!said.is_empty(), "{said}");
    // Two that only depend on each other.
    let (b, c) = (ones(["b", "c"]), ones(["c of the other", "b of the other"]));
    let said = message(&(b.matmul(&c).matmul(&b)).sum(..));
    assert!(said.starts_with("nothing determines "), "{said}");
    // A long chain of them.
    let chain = (0..200).fold(ones(["2", "w0"]), |x, at| {
        x.matmul(&ones([&format!("in {at}"), &format!("out {at}")]))
    });
    assert!(message(&chain).starts_with("nothing determines "));
}
