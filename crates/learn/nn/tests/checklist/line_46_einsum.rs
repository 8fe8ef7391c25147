//! Einsum: ellipsis, fixed indices, strides and dilations, concatenation, captured sizes; of one, two and three
//! operands; with sums and other folds.

use crate::{Checked, close, message};
use loopwright_tensor::{Einsum, Op, ReduceOp, Tensor, einsum, einsum_with};

fn table() -> Tensor {
    Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]])
}

#[test]
fn of_one_operand() {
    close(&einsum("ij->ji", &[&table()]), &[1., 4., 2., 5., 3., 6.]);
    close(&einsum("ij->i", &[&table()]), &[6., 15.]);
    close(&einsum("ij->", &[&table()]), &[21.]);
    close(&einsum("ii->i", &[&table().at((.., ..2))]), &[1., 5.]);
    close(
        &einsum("i->ii", &[&Tensor::from([7.0f32, 8.0])]),
        &[7., 0., 0., 8.],
    );
}

#[test]
fn of_two_and_three_operands() {
    let v = Tensor::from([1.0f32, 0.0, -1.0]);
    let u = Tensor::from([10.0f32, 1.0]);
    close(&einsum("ij,j->i", &[&table(), &v]), &[-2., -2.]);
    close(
        &einsum("ik,jk->ij", &[&table(), &table()]),
        &[14., 32., 32., 77.],
    );
    close(&einsum("i,ij,j->", &[&u, &table(), &v]), &[-22.]);
    close(
        &einsum("i,ij,j->ij", &[&u, &table(), &v]),
        &[10., 0., -30., 4., 0., -6.],
    );
}

#[test]
fn with_the_rest_of_the_axes() -> Checked {
    let batches = Tensor::numbered([2, 4, 3]).cast(loopwright_tensor::DType::F32);
    let product = einsum("...j,ij->...i", &[&batches, &table()]);
    assert_eq!(product.sizes()?, [2, 4, 2]);
    close(&product.at((0, 1)), &[26., 62.]);
    // The rest of both meets as operands do.
    let both = einsum("...i,...i->...", &[&batches, &batches.at(1)]);
    assert_eq!(both.sizes()?, [2, 4]);
    close(&einsum("...->", &[&table()]), &[21.]);
    Ok(())
}

#[test]
fn with_fixed_indices() {
    close(&einsum("i2->i", &[&table()]), &[3., 6.]);
    close(&einsum("1j->j", &[&table()]), &[4., 5., 6.]);
    close(&einsum("i->1i", &[&Tensor::from([7.0f32])]), &[0., 7.]);
}

#[test]
fn with_strides_dilations_and_padding() {
    let x = Tensor::from([1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    let w = Tensor::from([1.0f32, 1.0]);
    close(
        &einsum("i+k,k->i", &[&x, &w]),
        &[3., 6., 12., 24., 48., 96.],
    );
    close(&einsum("2*i+k,k->i", &[&x, &w]), &[3., 12., 48.]);
    close(&einsum("i+3*k,k->i", &[&x, &w]), &[9., 18., 36., 72.]);
    close(&einsum("2*i+3*k,k->i", &[&x, &w]), &[9., 36.]);
    close(&einsum("3*i+k-1,k->i", &[&x, &w]), &[1., 12., 96.]);
    // The other way around: every element adds a window.
    let y = Tensor::from([1.0f32, 10.0]);
    close(&einsum("i,k->2*i+k", &[&y, &w]), &[1., 1., 10., 10.]);
}

#[test]
fn with_concatenation() {
    let (a, b) = (
        Tensor::from([1.0f32, 2.0]),
        Tensor::from([3.0f32, 4.0, 5.0]),
    );
    let joined = einsum("i,j->i^j", &[&a, &b]);
    close(&joined, &[1., 2., 3., 4., 5.]);
    close(
        &Einsum::new("i^j->j").size("i", 2).of(&[&joined]),
        &[3., 4., 5.],
    );
    close(&einsum("i^j,i,j->", &[&joined, &a, &b]), &[5. + 50.]);
}

#[test]
fn with_sizes_that_are_captured() {
    let x = Tensor::numbered([4, 6]).cast(loopwright_tensor::DType::F32);
    let (split, sizes) = Einsum::new("time (head width) -> head time width")
        .size("head", 3)
        .capture(&[&x]);
    assert_eq!(split.shape().to_string(), "[3, 4, 2]");
    assert_eq!(sizes.known("width"), Some(2));
    assert_eq!(sizes.known("time"), Some(4));
    assert_eq!(sizes.known("nobody"), None);
    close(&sizes.value("width"), &[2.]);
    // Found from the result's size: how long a kernel is.
    let (_, sizes) = Einsum::new("2*i+k,i->k")
        .capture(&[&Tensor::from([0.0f32; 9]), &Tensor::from([0.0f32; 4])]);
    assert_eq!(sizes.known("k"), Some(3));
}

#[test]
fn with_other_folds_and_ops() {
    let ways = Tensor::from([[0.0f32, 4.0, 9.0], [4.0, 0.0, 1.0], [9.0, 1.0, 0.0]]);
    let shortest = einsum_with(ReduceOp::Min, Op::Add, "ij,jk->ik", &[&ways, &ways]);
    close(&shortest, &[0., 4., 5., 4., 0., 1., 5., 1., 0.]);
    let longest = einsum_with(ReduceOp::Max, Op::Add, "ij,jk->ik", &[&ways, &ways]);
    close(&longest, &[18., 10., 9., 10., 8., 13., 9., 13., 18.]);
    let likely = einsum_with(ReduceOp::Max, Op::Mul, "i,i->", &[&ways.at(0), &ways.at(1)]);
    close(&likely, &[9.]);
    let near = ways.lt(&Tensor::scalar(2.0f32));
    let reached = einsum_with(ReduceOp::Any, Op::And, "ij,jk->ik", &[&near, &near]);
    close(
        &reached.cast(loopwright_tensor::DType::F32),
        &[1., 0., 0., 0., 1., 1., 0., 1., 1.],
    );
    // The largest of each window: a pool.
    let pooled = einsum_with(
        ReduceOp::Max,
        Op::Add,
        "2*i+k,k->i",
        &[&table().flatten(), &Tensor::from([0.0f32; 2])],
    );
    close(&pooled, &[2., 4., 6.]);
}

#[test]
fn a_mistake_shows_its_place() {
    assert_eq!(
        message(&einsum("ij,kj->iz", &[&table(), &table()])),
        "`einsum` of [2, 3] and [2, 3]: `z` is in no operand; say how long it is with `Einsum::size`\n  ij,kj->iz\n          ^"
    );
}
