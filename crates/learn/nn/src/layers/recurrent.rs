//! Recurrent layers over `[batch, time, width]`.
//!
//! The weights are laid out and named as in PyTorch: `weight_ih` is `[gates * hidden, inputs]`, `weight_hh`
//! `[gates * hidden, hidden]`, each with a bias. A layer of several there is a row of layers here, and what PyTorch
//! calls `weight_ih_l0` is `weight_ih` of the first.

use super::inferred;
use crate::Module;
use crate::init::Init;
use crate::mode::weighted;
use crate::module::Parameter;
use loopwright_tensor::{Axis, DType, Shape, Tensor, TensorError, Tree, scan};

/// The weights of a recurrent layer.
#[derive(Module)]
struct Gates {
    weight_ih: Parameter,
    weight_hh: Parameter,
    bias_ih: Parameter,
    bias_hh: Parameter,
}

impl Gates {
    #[track_caller]
    fn new(layer: &str, hidden: usize, gates: usize) -> Gates {
        let inputs = Axis::of(inferred("number of inputs", layer));
        let rows = Axis::of(gates * hidden);
        let count = Tensor::scalar(hidden);
        let make = |axes: &[&Axis]| {
            let shape = Shape::new(axes.iter().map(|axis| (*axis).clone()));
            Parameter::new(&Init::FanInUniform.tensor(&shape, DType::F32, &count, &count))
        };
        Gates {
            weight_ih: make(&[&rows, &inputs]),
            weight_hh: make(&[&rows, &Axis::of(hidden)]),
            bias_ih: make(&[&rows]),
            bias_hh: make(&[&rows]),
        }
    }

    /// What all steps' inputs give, in one product: `[batch, time, gates * hidden]`.
    #[track_caller]
    fn of_inputs(&self, x: &Tensor) -> Tensor {
        weighted(x, &self.weight_ih) + self.bias_ih.get()
    }

    #[track_caller]
    fn of_hidden(&self, h: &Tensor) -> Tensor {
        weighted(h, &self.weight_hh) + self.bias_hh.get()
    }
}

/// The part of a gate among all gates.
#[track_caller]
fn gate(gates: &Tensor, at: usize, hidden: usize) -> Tensor {
    gates.narrow(-1, at * hidden, hidden)
}

/// Zeros for the hidden state of `[batch, time, width]`.
#[track_caller]
fn zeros(x: &Tensor, hidden: usize) -> Result<Tensor, TensorError> {
    x.check()?;
    let [batch, _, _] = x.shape().axes() else {
        return Err(x.refusal("recurrent", "its axes are [batch, time, width]"));
    };
    let mut batch = batch.clone();
    batch.name = None;
    Ok(Tensor::zeros(
        Shape::new([batch, Axis::of(hidden)]),
        x.dtype(),
    ))
}

/// The states of all steps, along the second axis, and the last one: one loop along time.
#[track_caller]
fn run<S: Tree>(
    inputs: &Tensor,
    first: &S,
    step: impl Fn(&Tensor, &S) -> S,
    shown: impl Fn(&S) -> Tensor,
) -> Result<(Tensor, S), TensorError> {
    let (last, states) = scan(first, inputs, 1, |state, x| {
        let next = step(x, state);
        let shown = shown(&next);
        (next, shown)
    })?;
    Ok((states.permute([1, 0, 2]), last))
}

macro_rules! layer {
    ($(#[$doc:meta])* $name:ident, $gates:literal) => {
        $(#[$doc])*
        #[derive(Module)]
        pub struct $name {
            #[module(flatten)]
            gates: Gates,
            hidden: usize,
        }

        impl $name {
            /// A layer with a hidden state of a width; the number of inputs is inferred.
            #[track_caller]
            pub fn new(hidden: usize) -> $name {
                $name { gates: Gates::new(stringify!($name), hidden, $gates), hidden }
            }
        }
    };
}

layer! {
    /// `h' = tanh(W x + U h)`.
    Rnn, 1
}

layer! {
    /// A gated recurrent unit. Its gates lie as reset, update, new; reset is applied to what the hidden state
    /// gives, with its bias, as in PyTorch.
    Gru, 3
}

layer! {
    /// Long short-term memory. Its gates lie as input, forget, new, output, as in PyTorch.
    Lstm, 4
}

impl Rnn {
    /// The hidden states of all steps, `[batch, time, hidden]`, and the last one.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, start: Option<&Tensor>) -> (Tensor, Tensor) {
        let step = |x: &Tensor, h: &Tensor| (x + self.gates.of_hidden(h)).tanh();
        hidden_states(x, self.hidden, start, step, &self.gates)
    }
}

impl Gru {
    /// The hidden states of all steps, `[batch, time, hidden]`, and the last one.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, start: Option<&Tensor>) -> (Tensor, Tensor) {
        let width = self.hidden;
        let step = |x: &Tensor, h: &Tensor| {
            let own = self.gates.of_hidden(h);
            let reset = (gate(x, 0, width) + gate(&own, 0, width)).sigmoid();
            let update = (gate(x, 1, width) + gate(&own, 1, width)).sigmoid();
            let new = (gate(x, 2, width) + reset * gate(&own, 2, width)).tanh();
            &new + update * (h - &new)
        };
        hidden_states(x, width, start, step, &self.gates)
    }
}

#[track_caller]
fn hidden_states(
    x: &Tensor,
    hidden: usize,
    start: Option<&Tensor>,
    step: impl Fn(&Tensor, &Tensor) -> Tensor,
    gates: &Gates,
) -> (Tensor, Tensor) {
    let first = match start {
        Some(start) => Ok(start.clone()),
        None => zeros(x, hidden),
    };
    let done = first.and_then(|first| run(&gates.of_inputs(x), &first, step, Tensor::clone));
    done.unwrap_or_else(|error| {
        let failed = Tensor::from_error(error);
        (failed.clone(), failed)
    })
}

/// The state of an [`Lstm`]: what it shows and what it keeps.
#[derive(Clone, Debug)]
pub struct LstmState {
    /// `[batch, hidden]`, what is shown.
    pub hidden: Tensor,
    /// `[batch, hidden]`, what is kept.
    pub cell: Tensor,
}

/// So that functions take and give it.
impl Tree for LstmState {
    fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
        see(&self.hidden);
        see(&self.cell);
    }

    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> LstmState {
        LstmState {
            hidden: by(&self.hidden),
            cell: by(&self.cell),
        }
    }
}

impl Lstm {
    /// The hidden states of all steps, `[batch, time, hidden]`, and the state after the last one.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, start: Option<&LstmState>) -> (Tensor, LstmState) {
        let first = match start {
            Some(start) => Ok(start.clone()),
            None => zeros(x, self.hidden).map(|zeros| LstmState {
                hidden: zeros.clone(),
                cell: zeros,
            }),
        };
        let step = |x: &Tensor, state: &LstmState| self.step(x, state);
        let shown = |state: &LstmState| state.hidden.clone();
        let done = first.and_then(|first| run(&self.gates.of_inputs(x), &first, step, shown));
        done.unwrap_or_else(|error| {
            let failed = Tensor::from_error(error);
            let state = LstmState {
                hidden: failed.clone(),
                cell: failed.clone(),
            };
            (failed, state)
        })
    }

    #[track_caller]
    fn step(&self, x: &Tensor, state: &LstmState) -> LstmState {
        let width = self.hidden;
        let gates = x + self.gates.of_hidden(&state.hidden);
        let part = |at| gate(&gates, at, width);
        let (input, forget) = (part(0).sigmoid(), part(1).sigmoid());
        let (new, output) = (part(2).tanh(), part(3).sigmoid());
        let cell = forget * &state.cell + input * new;
        LstmState {
            hidden: output * cell.tanh(),
            cell,
        }
    }
}
