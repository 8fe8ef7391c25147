//! A GPT-2 as Hugging Face's `transformers` saves it.

use crate::{apart, arrays, reference, tensor};
use loopwright_nn::train::{Stored, TrainError, load_as};
use loopwright_nn::{Embedding, Layer, LayerNorm, Module, TransformerBlock};
use loopwright_tensor::{Axis, Session, Tensor, TensorError, jit};
use std::sync::Arc;

const WIDTH: usize = 48;
const HEADS: usize = 4;
const LAYERS: usize = 3;
const VOCABULARY: usize = 200;
const POSITIONS: usize = 32;

#[derive(Module)]
struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<TransformerBlock>,
    ln_f: LayerNorm,
}

impl Gpt2 {
    fn new(layers: usize) -> Gpt2 {
        Gpt2 {
            wte: Embedding::new(VOCABULARY, WIDTH),
            wpe: Embedding::new(POSITIONS, WIDTH),
            h: (0..layers)
                .map(|_| TransformerBlock::causal(WIDTH, HEADS, 0.0))
                .collect(),
            ln_f: LayerNorm::new(),
        }
    }

    /// Puts the file's weights in place, by its own names.
    fn load(&self) -> Result<(), TrainError> {
        load_as(&reference("gpt2"), &self.entries(), stored, |_| false)?;
        Ok(())
    }
}

/// What the file calls an entry, and how it keeps it: matrices of blocks are `[inputs, outputs]`, and those of
/// queries, keys and values are one.
fn stored(entry: &str) -> Option<Stored> {
    let named = |name: String| Stored::named(format!("transformer.{name}"));
    let ["h", layer, ref path @ .., last] = entry.split('.').collect::<Vec<_>>()[..] else {
        return Some(named(entry.to_owned()));
    };
    let (there, part) = match path {
        ["norm1"] => ("ln_1", None),
        ["norm2"] => ("ln_2", None),
        ["attention", "query"] => ("attn.c_attn", Some(0)),
        ["attention", "key"] => ("attn.c_attn", Some(1)),
        ["attention", "value"] => ("attn.c_attn", Some(2)),
        ["attention", "out"] => ("attn.c_proj", None),
        ["feed_forward", "up"] => ("mlp.c_fc", None),
        ["feed_forward", "down"] => ("mlp.c_proj", None),
        // Dropout's counter of random numbers is in no file of theirs.
        _ => return None,
    };
    // A vector stays what it is.
    let stored = named(format!("h.{layer}.{there}.{last}")).transposed();
    Some(match part {
        Some(at) => stored.part(at, 3),
        None => stored,
    })
}

impl Layer for Gpt2 {
    fn forward(&self, tokens: &Tensor) -> Tensor {
        let time = match tokens.sizes() {
            Ok(sizes) => sizes.last().copied().unwrap_or(0),
            Err(error) => return Tensor::from_error(error),
        };
        let places = Tensor::index(Axis::of(time));
        let x = self.wte.forward(tokens) + self.wpe.forward(&places);
        let x = self.h.iter().fold(x, |x, block| block.forward(&x));
        self.wte.attend(&self.ln_f.forward(&x))
    }
}

#[test]
fn a_gpt2_of_hugging_face_gives_the_same_logits() -> Result<(), TensorError> {
    let session = Session::new("x86").expect("there is such a device");
    session.scope(|| {
        let model = Gpt2::new(LAYERS);
        model.load().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(model.count(), 96_048);
        let said = arrays("gpt2-said");
        let logits = jit("gpt2", move |ids: &Tensor| model.forward(ids));
        let found = logits.call(&tensor(&said, "ids"))?.array()?;
        let apart = apart(&found, &said.arrays["logits"]);
        assert!(apart < 1e-5, "{apart}");
        Ok(())
    })
}

/// It goes on with the same words: at each position the likeliest follows.
#[test]
fn a_gpt2_of_hugging_face_says_the_same() -> Result<(), TensorError> {
    let session = Session::new("x86").expect("there is such a device");
    session.scope(|| {
        let model = Arc::new(Gpt2::new(LAYERS));
        model.load().unwrap_or_else(|error| panic!("{error}"));
        // What lies behind a position is not seen, so that one length does for all.
        let next = jit("next", move |ids: &Tensor| model.forward(ids).argmax(-1));
        let expected = tensor(&arrays("gpt2-said"), "generated").to_vec::<i64>()?;
        let mut text = expected[..4].to_vec();
        while text.len() < expected.len() {
            let mut ids = text.clone();
            ids.resize(expected.len(), 0);
            let likeliest = next.call(&Tensor::new(&ids, [1, ids.len()]))?;
            text.push(likeliest.to_vec::<i64>()?[text.len() - 1]);
        }
        assert_eq!(text, expected);
        assert_eq!(next.reports().len(), 1);
        Ok(())
    })
}

#[test]
fn a_model_of_other_depth_is_refused_in_the_words_of_the_file() {
    let deeper = Gpt2::new(LAYERS + 1).load().unwrap_err().to_string();
    assert!(
        deeper.contains("missing `transformer.h.3.attn.c_attn.bias` f32[144]"),
        "{deeper}"
    );
    let shallower = Gpt2::new(LAYERS - 1).load().unwrap_err().to_string();
    assert!(
        shallower.contains("unexpected `transformer.h.2.mlp.c_proj.weight` f32[192, 48]"),
        "{shallower}"
    );
}

#[test]
fn a_part_that_is_not_there_is_named() {
    let model = Gpt2::new(LAYERS);
    let wrong = |entry: &str| match entry {
        "ln_f.weight" => Some(Stored::named("transformer.ln_f.weight").part(3, 3)),
        "ln_f.bias" => Some(Stored::named("transformer.ln_f.bias").part(0, 5)),
        _ => None,
    };
    let error = load_as(&reference("gpt2"), &model.entries(), wrong, |_| true).unwrap_err();
    assert!(matches!(error, TrainError::NoPart { at: 3, of: 3, .. }));
    let error = error.to_string();
    assert!(
        error.contains("`ln_f.weight` is to be part 3 of 3 of `transformer.ln_f.weight`"),
        "{error}"
    );
    // None of the others is changed then either.
    let only_bias = |entry: &str| (entry == "ln_f.bias").then(|| wrong(entry)).flatten();
    let error = load_as(&reference("gpt2"), &model.entries(), only_bias, |_| true).unwrap_err();
    assert!(matches!(error, TrainError::NoPart { at: 0, of: 5, .. }));
}
