//! A network that is written with this crate alone: nothing here names another one.

use loopwright::nn::{Entry, cosine_distance};
use loopwright::prelude::*;

/// Every form of module that the derive knows.
#[derive(Module)]
struct Net<Head> {
    #[module(rename = "stem")]
    hidden: Dense,
    #[module(flatten)]
    middle: Middle,
    head: Head,
    #[module(skip)]
    labels: [&'static str; 2],
}

#[derive(Module)]
enum Middle {
    Normed(LayerNorm),
    #[allow(dead_code, reason = "the derive has to write an arm for it")]
    Plain,
}

impl<Head: Layer> Layer for Net<Head> {
    fn forward(&self, x: &Tensor) -> Tensor {
        let hidden = self.hidden.forward(x).tanh();
        let hidden = match &self.middle {
            Middle::Normed(norm) => norm.forward(&hidden),
            Middle::Plain => hidden,
        };
        self.head.forward(&hidden)
    }
}

fn net() -> Net<Sequential> {
    seed(3);
    Net {
        hidden: Dense::new(8),
        middle: Middle::Normed(LayerNorm::new()),
        head: Sequential::new().then(Dense::new(2)),
        labels: ["same", "different"],
    }
}

#[test]
fn parameters_are_found_by_the_names_of_fields() {
    let names: Vec<String> = net().entries().into_iter().map(|e: Entry| e.name).collect();
    assert_eq!(
        names,
        [
            "stem.weight",
            "stem.bias",
            "0.weight",
            "0.bias",
            "head.0.weight",
            "head.0.bias"
        ]
    );
}

#[test]
fn a_derived_network_learns_exclusive_or() -> Result<(), TensorError> {
    let net = net();
    let labels = net.labels;
    let x = Tensor::from([[0.0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
    let y = Tensor::from([0i64, 1, 1, 0]);
    let adam = Adam::new(0.03);
    let step = jit("exclusive or", move |(x, y): &(Tensor, Tensor)| {
        let scores = training(|| net.forward(x));
        let loss = cross_entropy(&scores, y);
        adam.step(&net.parameters(), &loss)?;
        Ok::<_, TensorError>((loss, scores.argmax(-1)))
    });
    let mut last = (f64::NAN, Vec::new());
    for _ in 0..200 {
        let (loss, guess) = step.call(&(x.clone(), y.clone()))?;
        last = (loss.item()?, guess.to_vec::<i64>()?);
    }
    assert!(last.0 < 0.05, "the loss is still {}", last.0);
    let said: Vec<&str> = last.1.iter().map(|at| labels[*at as usize]).collect();
    assert_eq!(said, ["same", "different", "different", "same"]);
    Ok(())
}

#[test]
fn what_the_prelude_leaves_out_is_in_its_module() -> Result<(), TensorError> {
    let a = Tensor::from([[3.0f32, 4.0]]);
    assert!(cosine_distance(&a, &(&a * 2.0)).item()?.abs() < 1e-6);
    Ok(())
}
