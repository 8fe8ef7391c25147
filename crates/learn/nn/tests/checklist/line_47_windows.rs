//! Convolution and pooling: valid, padded, strided; gradients of the largest in windows that overlap.

use crate::{Checked, close};
use loopwright_tensor::{
    ConvOptions, DType, PoolOptions, Tensor, avg_pool, conv, einsum, max_pool,
};

/// One picture of one channel.
fn picture() -> Tensor {
    Tensor::numbered([1, 1, 4, 4]).cast(DType::F32)
}

/// A kernel that adds up what it sees.
fn box_of(size: usize) -> Tensor {
    Tensor::ones([1, 1, size, size], DType::F32)
}

#[test]
fn a_convolution_is_valid_padded_or_strided() -> Checked {
    let valid = conv(&picture(), &box_of(3), &ConvOptions::default());
    assert_eq!(valid.sizes()?, [1, 1, 2, 2]);
    close(&valid, &[45., 54., 81., 90.]);
    let padded = conv(&picture(), &box_of(3), &ConvOptions::default().padding(1));
    assert_eq!(padded.sizes()?, [1, 1, 4, 4]);
    close(&padded.at((0, 0, 0)), &[10., 18., 24., 18.]);
    let strided = conv(&picture(), &box_of(2), &ConvOptions::default().stride(2));
    close(&strided, &[10., 18., 42., 50.]);
    let both = conv(
        &picture(),
        &box_of(3),
        &ConvOptions::default().stride(2).padding(1),
    );
    assert_eq!(both.sizes()?, [1, 1, 2, 2]);
    close(&both, &[10., 24., 51., 90.]);
    // The same as a formula of indices.
    let formula = einsum(
        "b c 2*y+v-1 2*x+u-1, o c v u -> b o y x",
        &[&picture(), &box_of(3)],
    );
    close(&formula, &both.to_f64()?);
    Ok(())
}

#[test]
fn the_gradients_of_a_convolution_are_convolutions() {
    let (x, w) = (picture(), box_of(2));
    let y = conv(&x, &w, &ConvOptions::default());
    let [dx, dw] = y.sum(..).gradients([&x, &w]);
    // How many windows see each element.
    close(
        &dx,
        &[
            1., 2., 2., 1., 2., 4., 4., 2., 2., 4., 4., 2., 1., 2., 2., 1.,
        ],
    );
    // What each place of the kernel sees, added up.
    close(&dw, &[45., 54., 81., 90.]);
}

#[test]
fn a_pool_is_valid_padded_or_strided() -> Checked {
    let windows = PoolOptions::new([2, 2]);
    close(&max_pool(&picture(), &windows), &[5., 7., 13., 15.]);
    close(&avg_pool(&picture(), &windows), &[2.5, 4.5, 10.5, 12.5]);
    let overlapping = PoolOptions::new([3, 3]).stride(1);
    close(&max_pool(&picture(), &overlapping), &[10., 11., 14., 15.]);
    let padded = PoolOptions::new([3, 3]).stride(2).padding(1);
    assert_eq!(max_pool(&picture(), &padded).sizes()?, [1, 1, 2, 2]);
    // What is padded is never the largest.
    close(
        &max_pool(&(picture() - 100.0), &padded),
        &[-95., -93., -87., -85.],
    );
    Ok(())
}

#[test]
fn the_largest_of_several_windows_gets_the_gradient_of_each() {
    let x = Tensor::from([[1.0f32, 5.0, 2.0, 3.0, 0.0]]);
    let y = max_pool(&x, &PoolOptions::new([3]).stride(1));
    close(&y, &[5., 5., 3.]);
    let weights = Tensor::from([[1.0f32, 10.0, 100.0]]);
    let [dx] = (y * weights).sum(..).gradients([&x]);
    close(&dx, &[0., 11., 0., 100., 0.]);
    // In two dimensions: the middle of three by three is in all four windows.
    let x =
        Tensor::from([[0.0f32, 1.0, 0.0], [1.0, 9.0, 1.0], [0.0, 1.0, 0.0]]).reshape([1, 1, 3, 3]);
    let y = max_pool(&x, &PoolOptions::new([2, 2]).stride(1));
    let [dx] = y.sum(..).gradients([&x]);
    close(&dx, &[0., 0., 0., 0., 4., 0., 0., 0., 0.]);
}
