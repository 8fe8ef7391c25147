//! Linear regression: gradient descent finds the weights that made the data.
//!
//! It shows the three things that every training program is made of: variables, gradients, and a step that is
//! compiled once.
//!
//! ```console
//! $ cargo run --release --example linear_regression
//! ```
//!
//! It prints the loss on its way down, and the weights found beside the true ones.

use loopwright::data::{Linear, linear};
use loopwright::prelude::*;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    // 1000 points y = w · x + b with a little noise; nobody but this line knows w and b.
    let truth = linear(1000, 4, 0.01, 7)?;
    let (weights, bias) = fit(&truth, 100, |step, loss| {
        if step % 20 == 0 || step == 1 {
            println!("step {step:>3}  loss {loss:.6}");
        }
    })?;

    println!("\n         true     found");
    for (at, (wanted, found)) in truth.weights.iter().zip(&weights).enumerate() {
        println!("w[{at}]  {wanted:>8.4}  {found:>8.4}");
    }
    println!("b     {:>8.4}  {bias:>8.4}", truth.bias);
    Ok(())
}

/// The weights and the bias with the least squared error, after some steps of gradient descent.
fn fit(
    data: &Linear,
    steps: usize,
    mut tell: impl FnMut(usize, f64),
) -> Result<(Vec<f64>, f64), TensorError> {
    let x = Tensor::of(data.examples.inputs.clone());
    let y = Tensor::of(data.examples.targets.clone());
    let w = Variable::new(&Tensor::zeros([data.weights.len()], DType::F32));
    let b = Variable::new(&Tensor::scalar(0.0f32));

    // The closure runs once, on stand-ins: what it does with them becomes one compiled routine, which
    // updates both variables where they lie.
    let step = jit("step", {
        let (w, b) = (w.clone(), b.clone());
        move |[x, y]: &[Tensor; 2]| {
            let (weights, bias) = (w.get(), b.get());
            let loss = mean_squared_error(&(x.matmul(&weights) + &bias), y);
            let [dw, db] = loss.gradients([&weights, &bias]);
            assign(&[(&w, weights - dw * 0.1), (&b, bias - db * 0.1)])?;
            Ok::<_, TensorError>(loss)
        }
    });

    let batch = [x, y];
    for at in 1..=steps {
        tell(at, step.call(&batch)?.item()?);
    }
    Ok((w.get().to_f64()?, b.get().item()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_weights_are_found() -> Result<(), Box<dyn Error>> {
        let truth = linear(1000, 4, 0.01, 7)?;
        let mut losses = Vec::new();
        let (weights, bias) = fit(&truth, 100, |_, loss| losses.push(loss))?;
        for (wanted, found) in truth.weights.iter().zip(&weights) {
            assert!((wanted - found).abs() < 1e-3, "{found} is not {wanted}");
        }
        assert!((truth.bias - bias).abs() < 1e-3, "{bias}");
        // What is left is the noise, which has a variance of 0.0001.
        assert!(losses.is_sorted_by(|before, after| after <= before || *after < 2e-4));
        assert!(losses.last().is_some_and(|loss| *loss < 1.2e-4));
        Ok(())
    }
}
