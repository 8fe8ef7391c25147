//! The layers of the crate `nn`.

use super::init;
use crate::array::{Array, Value, made_of};
use crate::convolve::{Numbers, PoolArguments, conv_options};
use crate::device;
use crate::dtype::{self, PyDType};
use crate::errors::OrRaise;
use crate::interrupts::Interruptible;
use crate::primitives::real_only;
use crate::variable::{PyVariable, object};
use loopwright_nn::{
    Activation, Attention, BatchNorm, Conv, ConvTranspose, Dense, Dropout, Embedding, FeedForward,
    GroupNorm, Gru, Init, KeyValueCache, Layer, LayerNorm, Lstm, LstmState, Module, Pool, RmsNorm,
    Rnn, Rope, TransformerBlock,
};
use loopwright_tensor::{Session, Size, Tensor, unknown};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type AnyLayer = dyn Layer + Send + Sync;

/// What kind of layer it is: those that take and give one tensor, and those with more to say.
enum Kind {
    Plain(Box<AnyLayer>),
    FeedForward(FeedForward),
    Embedding(Embedding),
    Attention(Attention),
    Block(Box<TransformerBlock>),
    Rnn(Rnn),
    Gru(Gru),
    Lstm(Lstm),
    /// A layer inside of another one.
    Inside(Arc<Kind>, String),
}

impl Kind {
    fn module(&self) -> &dyn Module {
        match self {
            Kind::Plain(layer) => &**layer,
            Kind::FeedForward(layer) => layer,
            Kind::Embedding(layer) => layer,
            Kind::Attention(layer) => layer,
            Kind::Block(layer) => &**layer,
            Kind::Rnn(layer) => layer,
            Kind::Gru(layer) => layer,
            Kind::Lstm(layer) => layer,
            Kind::Inside(whole, _) => whole.module(),
        }
    }

    /// The layer as one that takes and gives one tensor.
    fn layer(&self) -> Option<&AnyLayer> {
        match self {
            Kind::Plain(layer) => Some(&**layer),
            Kind::FeedForward(layer) => Some(layer),
            Kind::Embedding(layer) => Some(layer),
            Kind::Attention(layer) => Some(layer),
            Kind::Block(layer) => Some(&**layer),
            Kind::Rnn(_) | Kind::Gru(_) | Kind::Lstm(_) => None,
            Kind::Inside(whole, path) => whole.inside(path),
        }
    }

    /// A layer inside, by the names of the fields that lead to it.
    fn inside(&self, path: &str) -> Option<&AnyLayer> {
        match self {
            Kind::FeedForward(layer) => of_feed_forward(layer, path),
            Kind::Attention(layer) => of_attention(layer, path),
            Kind::Block(block) => of_block(block, path),
            Kind::Inside(whole, before) => whole.inside(&format!("{before}.{path}")),
            _ => None,
        }
    }
}

fn of_feed_forward<'a>(layer: &'a FeedForward, path: &str) -> Option<&'a AnyLayer> {
    match path {
        "up" => Some(&layer.up),
        "down" => Some(&layer.down),
        _ => None,
    }
}

fn of_attention<'a>(layer: &'a Attention, path: &str) -> Option<&'a AnyLayer> {
    match path {
        "query" => Some(&layer.query),
        "key" => Some(&layer.key),
        "value" => Some(&layer.value),
        "out" => Some(&layer.out),
        _ => None,
    }
}

fn of_block<'a>(block: &'a TransformerBlock, path: &str) -> Option<&'a AnyLayer> {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    match (first, rest) {
        ("norm1", None) => Some(&block.norm1),
        ("norm2", None) => Some(&block.norm2),
        ("norm_memory", None) => block.norm_memory.as_ref().map(|norm| norm as &AnyLayer),
        ("dropout", None) => Some(&block.dropout),
        ("attention", None) => Some(&block.attention),
        ("attention", Some(rest)) => of_attention(&block.attention, rest),
        ("memory", None) => block.memory.as_ref().map(|memory| memory as &AnyLayer),
        ("memory", Some(rest)) => of_attention(block.memory.as_ref()?, rest),
        ("feed_forward", None) => Some(&block.feed_forward),
        ("feed_forward", Some(rest)) => of_feed_forward(&block.feed_forward, rest),
        _ => None,
    }
}

/// A layer of the Rust API.
#[pyclass(name = "Layer", module = "loopwright._core", frozen)]
pub(crate) struct PyLayer {
    kind: Arc<Kind>,
    entries: Vec<(String, Py<PyVariable>)>,
}

/// A size that is inferred from use, or said.
fn size(said: Option<usize>, what: &str, layer: &str, place: &str) -> Size {
    match said {
        Some(said) => said.into(),
        None => unknown(format!("the {what} of the `{layer}` made at {place}")).into(),
    }
}

fn activation_named(name: &str, slope: f64) -> PyResult<Activation> {
    Ok(match name {
        "relu" => Activation::Relu,
        "gelu" => Activation::Gelu,
        "gelu_tanh" => Activation::GeluTanh,
        "silu" => Activation::Silu,
        "tanh" => Activation::Tanh,
        "sigmoid" => Activation::Sigmoid,
        "leaky_relu" => Activation::LeakyRelu(slope),
        other => {
            return Err(PyValueError::new_err(format!(
                "there is no activation `{other}`; there are relu, gelu, gelu_tanh, silu, tanh, sigmoid, leaky_relu"
            )));
        }
    })
}

fn made(py: Python<'_>, kind: Kind) -> PyResult<PyLayer> {
    let session = device::current(py)?;
    let entries = kind.module().entries().into_iter();
    let entries = entries.map(|entry| Ok((entry.name, object(py, entry.part, &session)?)));
    Ok(PyLayer {
        entries: entries.collect::<PyResult<_>>()?,
        kind: Arc::new(kind),
    })
}

fn plain(py: Python<'_>, layer: impl Layer + Send + Sync + 'static) -> PyResult<PyLayer> {
    made(py, Kind::Plain(Box::new(layer)))
}

/// Runs a layer without the interpreter's lock: in training, some compute what they keep.
fn run<T: Send>(py: Python<'_>, session: &Session, run: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.interruptible(|| session.scope(run))
}

impl PyLayer {
    fn of_tensor(&self, py: Python<'_>, x: &Value, call: &str) -> PyResult<Tensor> {
        let Some(layer) = self.kind.layer() else {
            return Err(PyTypeError::new_err(format!("this layer has no {call}")));
        };
        run(py, &x.session, || layer.forward(&x.re))
    }
}

#[pymethods]
impl PyLayer {
    /// What the layer makes of an array.
    fn __call__(&self, py: Python<'_>, x: &Array) -> PyResult<Array> {
        let x = real_only(x, "a layer")?;
        let made = self.of_tensor(py, &x, "call with one array")?;
        Array::of(py, made_of(&[&x], made, None)?)
    }

    /// Names and variables of all parameters and states.
    fn entries(&self, py: Python<'_>) -> Vec<(String, Py<PyVariable>)> {
        let entries = self.entries.iter();
        let entries = entries.map(|(name, variable)| (name.clone(), variable.clone_ref(py)));
        entries.collect()
    }

    /// A layer inside of this one.
    fn part(&self, py: Python<'_>, name: &str) -> PyResult<PyLayer> {
        if self.kind.inside(name).is_none() {
            return Err(PyAttributeError::new_err(name.to_owned()));
        }
        let before = format!("{name}.");
        let entries = self.entries.iter().filter_map(|(full, variable)| {
            let rest = full.strip_prefix(&before)?;
            Some((rest.to_owned(), variable.clone_ref(py)))
        });
        Ok(PyLayer {
            entries: entries.collect(),
            kind: Arc::new(Kind::Inside(Arc::clone(&self.kind), name.to_owned())),
        })
    }

    /// Attention of `x` to `memory`, or the likeness of `x` to an embedding's rows.
    #[pyo3(signature = (x, memory=None, mask=None))]
    fn attend(
        &self,
        py: Python<'_>,
        x: &Array,
        memory: Option<&Array>,
        mask: Option<&Array>,
    ) -> PyResult<Array> {
        let x = real_only(x, "attention")?;
        let memory = memory
            .map(|memory| real_only(memory, "attention"))
            .transpose()?;
        let mask = mask.map(|mask| real_only(mask, "attention")).transpose()?;
        let made = match (&*self.kind, &memory) {
            (Kind::Embedding(layer), None) => run(py, &x.session, || layer.attend(&x.re))?,
            (Kind::Attention(layer), memory) => {
                let memory = memory.as_ref().unwrap_or(&x);
                let mask = mask.as_ref().map(|mask| &mask.re);
                run(py, &x.session, || layer.attend(&x.re, &memory.re, mask))?
            }
            _ => return Err(PyTypeError::new_err("this layer does not attend")),
        };
        let mut values = vec![&x];
        values.extend(&memory);
        values.extend(&mask);
        Array::of(py, made_of(&values, made, None)?)
    }

    /// An empty cache of keys and values: `key`, `value` and `length`.
    fn key_value_cache(
        &self,
        py: Python<'_>,
        batch: usize,
        capacity: usize,
        dtype: Any<'_, '_>,
    ) -> PyResult<(Array, Array, Array)> {
        let Kind::Attention(layer) = &*self.kind else {
            return Err(PyTypeError::new_err("this layer has no cache"));
        };
        let session = crate::device::current(py)?;
        let cache = layer.cache(batch, capacity, PyDType::of_any(dtype)?.part);
        let array = |tensor| Array::of(py, Value::real(tensor, session.clone()));
        Ok((array(cache.key)?, array(cache.value)?, array(cache.length)?))
    }

    /// Attention of positions behind those in a cache, and the cache with them.
    fn attend_cached(
        &self,
        py: Python<'_>,
        x: &Array,
        cache: (Bound<'_, Array>, Bound<'_, Array>, Bound<'_, Array>),
    ) -> PyResult<(Array, Array, Array, Array)> {
        let Kind::Attention(layer) = &*self.kind else {
            return Err(PyTypeError::new_err("this layer has no cache"));
        };
        let of = |array: &Bound<'_, Array>| real_only(array.get(), "attention");
        let (x, key, value) = (real_only(x, "attention")?, of(&cache.0)?, of(&cache.1)?);
        let length = of(&cache.2)?;
        let cache = KeyValueCache {
            key: key.re.clone(),
            value: value.re.clone(),
            length: length.re.clone(),
        };
        let (made, next) = run(py, &x.session, || layer.attend_cached(&x.re, &cache))?;
        let values = [&x, &key, &value, &length];
        let array = |tensor| Array::of(py, made_of(&values, tensor, None)?);
        Ok((
            array(made)?,
            array(next.key)?,
            array(next.value)?,
            array(next.length)?,
        ))
    }

    /// What a block makes of a sequence and an encoder's memory.
    #[pyo3(signature = (x, memory=None))]
    fn with_memory(&self, py: Python<'_>, x: &Array, memory: Option<&Array>) -> PyResult<Array> {
        let x = real_only(x, "attention")?;
        let memory = memory
            .map(|memory| real_only(memory, "attention"))
            .transpose()?;
        let Kind::Block(block) = &*self.kind else {
            return Err(PyTypeError::new_err("this layer takes no memory"));
        };
        let tensor = memory.as_ref().map(|memory| &memory.re);
        let made = run(py, &x.session, || block.with_memory(&x.re, tensor))?;
        let mut values = vec![&x];
        values.extend(&memory);
        Array::of(py, made_of(&values, made, None)?)
    }

    /// The hidden states of all steps, and the last ones, of a recurrent layer.
    #[pyo3(signature = (x, start=None))]
    fn steps(
        &self,
        py: Python<'_>,
        x: &Array,
        start: Option<Vec<Bound<'_, Array>>>,
    ) -> PyResult<(Array, Vec<Array>)> {
        let x = real_only(x, "a recurrent layer")?;
        let start = start.unwrap_or_default();
        let start = start.iter();
        let start = start.map(|array| real_only(array.get(), "a recurrent layer"));
        let start: Vec<Value> = start.collect::<PyResult<_>>()?;
        let first = start.first().map(|value| &value.re);
        let (all, last) = match (&*self.kind, start.get(1)) {
            (Kind::Rnn(layer), None) => {
                let (all, last) = run(py, &x.session, || layer.forward(&x.re, first))?;
                (all, vec![last])
            }
            (Kind::Gru(layer), None) => {
                let (all, last) = run(py, &x.session, || layer.forward(&x.re, first))?;
                (all, vec![last])
            }
            (Kind::Lstm(layer), second) => {
                let state = match (first, second) {
                    (Some(hidden), Some(cell)) => Some(LstmState {
                        hidden: hidden.clone(),
                        cell: cell.re.clone(),
                    }),
                    (None, None) => None,
                    _ => return Err(PyTypeError::new_err("the state of an LSTM is two arrays")),
                };
                let (all, last) = run(py, &x.session, || layer.forward(&x.re, state.as_ref()))?;
                (all, vec![last.hidden, last.cell])
            }
            _ => return Err(PyTypeError::new_err("this layer has no such steps")),
        };
        let mut values = vec![&x];
        values.extend(&start);
        let array = |tensor: Tensor| Array::of(py, made_of(&values, tensor, None)?);
        let last = last.into_iter().map(array).collect::<PyResult<_>>()?;
        Ok((array(all)?, last))
    }

    #[staticmethod]
    fn dense(
        py: Python<'_>,
        outputs: usize,
        inputs: Option<usize>,
        init: Option<Any<'_, '_>>,
        bias: bool,
        dtype: Option<Any<'_, '_>>,
        place: &str,
    ) -> PyResult<PyLayer> {
        let dtype = match dtype {
            Some(dtype) => PyDType::of_any(dtype)?,
            None => PyDType::real(dtype::float()),
        };
        if !dtype.is_float() {
            let name = dtype.name();
            return Err(PyTypeError::new_err(format!(
                "a layer's parameters are floats, not {name}"
            )));
        }
        let init = init::of(init, Init::FanInUniform)?;
        let inputs = size(inputs, "number of inputs", "Dense", place);
        plain(py, Dense::with(inputs, outputs, init, bias, dtype.part))
    }

    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
    fn conv(
        py: Python<'_>,
        outputs: usize,
        window: Vec<usize>,
        inputs: Option<usize>,
        stride: Numbers,
        padding: Numbers,
        dilation: Numbers,
        groups: usize,
        init: Option<Any<'_, '_>>,
        bias: bool,
        place: &str,
    ) -> PyResult<PyLayer> {
        let options = conv_options(stride, padding, dilation, groups, Numbers::One(0));
        let init = init::of(init, Init::FanInUniform)?;
        let what = match groups {
            1 => "number of input channels",
            _ => "number of input channels of a group",
        };
        let inputs = size(inputs, what, "Conv", place);
        plain(
            py,
            Conv::with(inputs, outputs, &window, options, init, bias),
        )
    }

    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
    fn conv_transpose(
        py: Python<'_>,
        outputs: usize,
        window: Vec<usize>,
        stride: Numbers,
        padding: Numbers,
        dilation: Numbers,
        groups: usize,
        output_padding: Numbers,
        bias: bool,
    ) -> PyResult<PyLayer> {
        let options = conv_options(stride, padding, dilation, groups, output_padding);
        let mut layer = ConvTranspose::new(outputs, &window, options);
        if !bias {
            layer.bias = None;
        }
        plain(py, layer)
    }

    #[staticmethod]
    fn pool(
        py: Python<'_>,
        largest: bool,
        window: Vec<usize>,
        stride: Option<Numbers>,
        padding: Numbers,
        dilation: Numbers,
        count_include_pad: bool,
    ) -> PyResult<PyLayer> {
        let options = PoolArguments {
            window,
            stride,
            padding,
            dilation,
            count_include_pad,
        };
        let options = options.options();
        plain(
            py,
            match largest {
                true => Pool::Max(options),
                false => Pool::Average(options),
            },
        )
    }

    #[staticmethod]
    fn global_average(py: Python<'_>, axes: usize) -> PyResult<PyLayer> {
        plain(py, Pool::GlobalAverage(axes))
    }

    #[staticmethod]
    fn embedding(
        py: Python<'_>,
        things: usize,
        width: usize,
        init: Option<Any<'_, '_>>,
    ) -> PyResult<PyLayer> {
        let own = Init::Normal {
            mean: 0.0,
            deviation: 1.0,
        };
        let layer = Embedding::with(things, width, init::of(init, own)?);
        made(py, Kind::Embedding(layer))
    }

    #[staticmethod]
    fn layer_norm(
        py: Python<'_>,
        width: Option<usize>,
        epsilon: f64,
        place: &str,
    ) -> PyResult<PyLayer> {
        let width = size(width, "width", "LayerNorm", place);
        plain(py, LayerNorm::with(width, epsilon))
    }

    #[staticmethod]
    fn rms_norm(
        py: Python<'_>,
        width: Option<usize>,
        epsilon: f64,
        place: &str,
    ) -> PyResult<PyLayer> {
        let width = size(width, "width", "RmsNorm", place);
        plain(py, RmsNorm::with(width, epsilon))
    }

    #[staticmethod]
    fn batch_norm(
        py: Python<'_>,
        channels: Option<usize>,
        momentum: f64,
        epsilon: f64,
        place: &str,
    ) -> PyResult<PyLayer> {
        let channels = size(channels, "number of channels", "BatchNorm", place);
        plain(py, BatchNorm::with(channels, momentum, epsilon))
    }

    #[staticmethod]
    fn group_norm(py: Python<'_>, groups: usize, channels: usize) -> PyResult<PyLayer> {
        plain(py, GroupNorm::new(groups, channels))
    }

    #[staticmethod]
    fn dropout(py: Python<'_>, rate: f64) -> PyResult<PyLayer> {
        if !(0.0..1.0).contains(&rate) {
            return Err(PyValueError::new_err(format!(
                "a part from 0 up to 1, which is left out, can be dropped, not {rate}"
            )));
        }
        plain(py, Dropout::new(rate))
    }

    #[staticmethod]
    fn activation(py: Python<'_>, name: &str, slope: f64) -> PyResult<PyLayer> {
        plain(py, activation_named(name, slope)?)
    }

    #[staticmethod]
    fn feed_forward(
        py: Python<'_>,
        width: usize,
        inside: usize,
        activation: &str,
    ) -> PyResult<PyLayer> {
        let activation = activation_named(activation, 0.01)?;
        let layer = FeedForward::new(width, inside, activation);
        made(py, Kind::FeedForward(layer))
    }

    #[staticmethod]
    fn attention(
        py: Python<'_>,
        width: usize,
        heads: usize,
        shared_heads: Option<usize>,
        causal: bool,
        rope: Option<f64>,
    ) -> PyResult<PyLayer> {
        let layer = attention_of(width, heads, shared_heads, causal, rope)?;
        made(py, Kind::Attention(layer))
    }

    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
    fn transformer_block(
        py: Python<'_>,
        width: usize,
        heads: usize,
        shared_heads: Option<usize>,
        causal: bool,
        rope: Option<f64>,
        decoder: bool,
        dropout: f64,
    ) -> PyResult<PyLayer> {
        let attention = attention_of(width, heads, shared_heads, causal, rope)?;
        let block = TransformerBlock::of_attention(width, attention, dropout);
        let block = match decoder {
            false => block,
            true => TransformerBlock {
                norm_memory: Some(LayerNorm::with(width, 1e-5)),
                memory: Some(attention_of(width, heads, shared_heads, false, None)?),
                ..block
            },
        };
        made(py, Kind::Block(Box::new(block)))
    }

    #[staticmethod]
    fn recurrent(py: Python<'_>, kind: &str, hidden: usize) -> PyResult<PyLayer> {
        made(
            py,
            match kind {
                "rnn" => Kind::Rnn(Rnn::new(hidden)),
                "gru" => Kind::Gru(Gru::new(hidden)),
                _ => Kind::Lstm(Lstm::new(hidden)),
            },
        )
    }
}

fn attention_of(
    width: usize,
    heads: usize,
    shared_heads: Option<usize>,
    causal: bool,
    rope: Option<f64>,
) -> PyResult<Attention> {
    let shared = shared_heads.unwrap_or(heads);
    if heads == 0 || shared == 0 || !width.is_multiple_of(heads) || !heads.is_multiple_of(shared) {
        return Err(PyValueError::new_err(format!(
            "the heads divide the width, and the shared heads divide the heads: {heads} and {shared} of {width} do not"
        )));
    }
    let mut layer = Attention::grouped(width, heads, shared);
    if causal {
        layer = layer.causal();
    }
    Ok(match rope {
        Some(base) => layer.with_rope(Rope { base }),
        None => layer,
    })
}

/// Turns `[.., time, width]` by angles that grow with the position, from one on: an integer, or an array of one.
#[pyfunction]
fn rope(py: Python<'_>, x: &Array, position: Any<'_, '_>, base: f64) -> PyResult<Array> {
    let x = real_only(x, "rope")?;
    let made = match position.cast::<Array>() {
        Ok(position) => Rope { base }.apply_at(&x.re, &real_only(position.get(), "rope")?.re),
        Err(_) => Rope { base }.apply(&x.re, position.extract()?),
    };
    made.check().or_raise()?;
    Array::of(py, made_of(&[&x], made, None)?)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLayer>()?;
    module.add_function(wrap_pyfunction!(rope, module)?)
}
