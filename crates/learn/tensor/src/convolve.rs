//! Convolutions and pools: windows along the last axes, and what is done with what they show.

use crate::error::{ErrorKind, TensorError};
use crate::node::{Tensor, View};
use crate::ops::{Window, counted, failure, refuse_shape, settle};
use crate::shape::{Axis, Places, Shape, Size};
use crate::size::{self, axis_index};
use loopwright_ops::{ReduceOp, Scalar};
use loopwright_symbolic::{Cmp, Error as ExprError, Expr};
use smallvec::SmallVec;

/// A number for every spatial axis: one for all of them, or one for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PerAxis {
    /// The same along all.
    All(usize),
    /// In the order of the axes.
    Each(Vec<usize>),
}

impl PerAxis {
    #[track_caller]
    fn get(&self, op: &str, what: &str, count: usize) -> Result<Vec<usize>, TensorError> {
        match self {
            PerAxis::All(value) => Ok(vec![*value; count]),
            PerAxis::Each(values) if values.len() == count => Ok(values.clone()),
            PerAxis::Each(values) => Err(TensorError::new(ErrorKind::Argument {
                op: op.to_owned(),
                reason: format!(
                    "{} for the {what} along {}",
                    counted(values.len(), "number"),
                    counted(count, "axis")
                ),
            })),
        }
    }
}

impl From<usize> for PerAxis {
    fn from(value: usize) -> PerAxis {
        PerAxis::All(value)
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis {
    fn from(values: [usize; N]) -> PerAxis {
        PerAxis::Each(values.to_vec())
    }
}

impl From<&[usize]> for PerAxis {
    fn from(values: &[usize]) -> PerAxis {
        PerAxis::Each(values.to_vec())
    }
}

impl From<Vec<usize>> for PerAxis {
    fn from(values: Vec<usize>) -> PerAxis {
        PerAxis::Each(values)
    }
}

/// How a kernel moves in a convolution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConvOptions {
    /// How far it moves from place to place.
    pub stride: PerAxis,
    /// How many zeros stand before the first element and behind the last one.
    pub padding: PerAxis,
    /// How far apart the elements are that it sees.
    pub dilation: PerAxis,
    /// Into how many groups the channels fall that do not see each other.
    pub groups: usize,
    /// How many more elements a transposed convolution has at the end; several sizes would give the same
    /// input. A convolution takes no note of it.
    pub output_padding: PerAxis,
}

impl Default for ConvOptions {
    fn default() -> ConvOptions {
        ConvOptions {
            stride: PerAxis::All(1),
            padding: PerAxis::All(0),
            dilation: PerAxis::All(1),
            groups: 1,
            output_padding: PerAxis::All(0),
        }
    }
}

impl ConvOptions {
    /// The same with another stride.
    pub fn stride(self, stride: impl Into<PerAxis>) -> ConvOptions {
        let stride = stride.into();
        ConvOptions { stride, ..self }
    }

    /// The same with another padding.
    pub fn padding(self, padding: impl Into<PerAxis>) -> ConvOptions {
        let padding = padding.into();
        ConvOptions { padding, ..self }
    }

    /// The same with elements further apart.
    pub fn dilation(self, dilation: impl Into<PerAxis>) -> ConvOptions {
        let dilation = dilation.into();
        ConvOptions { dilation, ..self }
    }

    /// The same in groups.
    pub fn groups(self, groups: usize) -> ConvOptions {
        ConvOptions { groups, ..self }
    }

    /// The same with more elements at the end of a transposed convolution.
    pub fn output_padding(self, output_padding: impl Into<PerAxis>) -> ConvOptions {
        let output_padding = output_padding.into();
        ConvOptions {
            output_padding,
            ..self
        }
    }
}

/// The convolution of `x` `[.., channels, spatial..]` with `w` `[out, channels / groups, kernel..]`, in as
/// many dimensions as the kernel has: `[.., out, places..]`. As in networks the kernel is not turned around.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{ConvOptions, DType, Tensor, conv};
///
/// let x = Tensor::ones([1, 3, 8, 8], DType::F32);
/// let w = Tensor::ones([4, 3, 3, 3], DType::F32);
/// let y = conv(&x, &w, &ConvOptions::default().padding(1).stride(2));
/// assert_eq!(y.sizes()?, [1, 4, 4, 4]);
/// assert_eq!(y.at((0, 0, 1, 1)).item()?, 27.0);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
#[track_caller]
pub fn conv(x: &Tensor, w: &Tensor, options: &ConvOptions) -> Tensor {
    match failure(&[x, w]) {
        Some(failed) => failed,
        None => settle(convolved("conv", x, w, options)),
    }
}

#[track_caller]
fn refuse_pair(op: &str, x: &Tensor, w: &Tensor, reason: impl Into<String>) -> TensorError {
    TensorError::new(ErrorKind::Shapes {
        op: op.to_owned(),
        left: x.shape().to_string(),
        right: w.shape().to_string(),
        reason: reason.into(),
    })
}

/// The number of spatial axes, and of those before the channels.
#[track_caller]
fn ranks(op: &str, x: &Tensor, w: &Tensor, groups: usize) -> Result<(usize, usize), TensorError> {
    if w.rank() < 3 {
        let reason = "the second is a kernel of channels, channels and at least one more axis";
        return Err(refuse_pair(op, x, w, reason));
    }
    let spatial = w.rank() - 2;
    if x.rank() < spatial + 1 {
        let reason = format!("a kernel over {spatial} axes needs an input of channels and those");
        return Err(refuse_pair(op, x, w, reason));
    }
    if x.dtype() != w.dtype() {
        let reason = format!(
            "the first is {}, the second is {}; convert one of them with `.cast(..)`",
            x.dtype(),
            w.dtype()
        );
        return Err(refuse_pair(op, x, w, reason));
    }
    if groups == 0 {
        return Err(refuse_pair(op, x, w, "there is at least one group"));
    }
    Ok((spatial, x.rank() - spatial - 1))
}

#[track_caller]
fn convolved(
    op: &str,
    x: &Tensor,
    w: &Tensor,
    options: &ConvOptions,
) -> Result<Tensor, TensorError> {
    let groups = options.groups;
    let (spatial, lead) = ranks(op, x, w, groups)?;
    let stride = options.stride.get(op, "stride", spatial)?;
    let padding = options.padding.get(op, "padding", spatial)?;
    let dilation = options.dilation.get(op, "dilation", spatial)?;
    let refuse = |error: ExprError| refuse_pair(op, x, w, error.to_string());
    let channels = &x.shape().axes()[lead].size;
    let inner = &w.shape().axes()[1].size;
    let count = Expr::constant(groups as i64);
    if !size::equate(channels, &inner.mul(&count).map_err(refuse)?) {
        let reason = match groups {
            1 => format!(
                "the input has {} channels and the kernel is for {}",
                x.shape().axes()[lead],
                w.shape().axes()[1]
            ),
            _ => format!(
                "with {groups} groups, the kernel has to have as many channels as a group of the input"
            ),
        };
        return Err(refuse_pair(op, x, w, reason));
    }
    let out = w.shape().axes()[0].clone();
    if out.known().is_some_and(|out| out % groups != 0) {
        let reason = format!("{out} channels do not fall into {groups} groups");
        return Err(refuse_pair(op, x, w, reason));
    }
    let mut windows = x.unnamed();
    for at in 0..spatial {
        let window = Window::new(Size(w.shape().axes()[2 + at].size.clone()))
            .stride(stride[at])
            .dilation(dilation[at])
            .padding(padding[at]);
        let zero = Some(Scalar::zero(x.dtype()));
        windows = windows.window(lead + 1 + 2 * at, &window, zero);
    }
    // A window that does not fit is a mistake with this op, whatever says so.
    if let Err(error) = windows.check() {
        let reason = match error.kind() {
            ErrorKind::Shape { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        return Err(refuse_pair(op, x, w, reason));
    }
    let mut kernel = w.unnamed();
    let part = size::resolve(inner);
    let of_group = out.size.floor_div(&count).map_err(refuse)?;
    windows = windows.split_axis(lead, Shape::new([Axis::of(groups), Axis::of(part)]));
    kernel = kernel.split_axis(0, Shape::new([Axis::of(groups), Axis::of(of_group)]));
    windows.check()?;
    kernel.check()?;
    // The result's axes [lead.., group, out, places..], and behind them those that are summed.
    let axes = |tensor: &Tensor, at: usize| tensor.shape().axes()[at].clone();
    let mut shape = Shape::new((0..lead + 1).map(|at| axes(&windows, at)));
    shape.0.push(axes(&kernel, 1));
    let mut from_x: Places = (0..lead + 1).map(Some).chain([None]).collect();
    let mut from_w: Places = (0..lead).map(|_| None).chain([Some(0), Some(1)]).collect();
    for at in 0..spatial {
        shape.0.push(axes(&windows, lead + 2 + 2 * at));
        from_x.push(Some(lead + 2 + 2 * at));
        from_w.push(None);
    }
    let kept = shape.rank();
    shape.0.push(axes(&windows, lead + 1));
    from_x.push(Some(lead + 1));
    from_w.push(Some(2));
    for at in 0..spatial {
        shape.0.push(axes(&windows, lead + 3 + 2 * at));
        from_x.push(Some(lead + 3 + 2 * at));
        from_w.push(Some(3 + at));
    }
    let products = windows.spread(&shape, &from_x) * kernel.spread(&shape, &from_w);
    let over = (kept..shape.rank()).collect();
    let summed = products
        .fold(ReduceOp::Sum, over)
        .merge_axes(lead, lead + 1);
    summed.check()?;
    Ok(as_named(summed, x))
}

/// The result with the names of an input's axes.
#[track_caller]
fn as_named(result: Tensor, like: &Tensor) -> Tensor {
    let mut shape = result.shape().clone();
    for (axis, named) in shape.0.iter_mut().zip(like.shape().axes()) {
        axis.name.clone_from(&named.name);
    }
    result.in_place(shape)
}

/// The transposed convolution of `x` `[.., channels, spatial..]` with `w`
/// `[channels, out / groups, kernel..]`: what flows back through a convolution with the same kernel and
/// options from `out` channels to these. Along an axis of `n` elements it has
/// `(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + output_padding`.
#[track_caller]
pub fn conv_transpose(x: &Tensor, w: &Tensor, options: &ConvOptions) -> Tensor {
    match failure(&[x, w]) {
        Some(failed) => failed,
        None => settle(transposed(x, w, options)),
    }
}

#[track_caller]
fn transposed(x: &Tensor, w: &Tensor, options: &ConvOptions) -> Result<Tensor, TensorError> {
    let op = "conv_transpose";
    let (spatial, lead) = ranks(op, x, w, options.groups)?;
    let stride = options.stride.get(op, "stride", spatial)?;
    let padding = options.padding.get(op, "padding", spatial)?;
    let dilation = options.dilation.get(op, "dilation", spatial)?;
    let more = options.output_padding.get(op, "output padding", spatial)?;
    if !x.dtype().is_float() {
        return Err(TensorError::new(ErrorKind::Expected {
            op: op.to_owned(),
            expected: "tensors of floats".to_owned(),
            got: x.dtype(),
        }));
    }
    let refuse = |error: ExprError| refuse_pair(op, x, w, error.to_string());
    if !size::equate(&x.shape().axes()[lead].size, &w.shape().axes()[0].size) {
        let reason = "the kernel's first axis has to be as long as the input has channels";
        return Err(refuse_pair(op, x, w, reason));
    }
    let number = |value: usize| Expr::constant(value as i64);
    let out = size::resolve(&w.shape().axes()[1].size).mul(&number(options.groups));
    let mut shape = Shape::new(
        x.shape().axes()[..lead]
            .iter()
            .map(|axis| Axis::of(&axis.size)),
    );
    shape.0.push(Axis::of(out.map_err(refuse)?));
    for at in 0..spatial {
        if more[at] >= stride[at].max(dilation[at]) {
            let reason = "the output padding is smaller than the stride or the dilation";
            return Err(refuse_pair(op, x, w, reason));
        }
        let one = number(1);
        let length = || {
            let n = size::resolve(&x.shape().axes()[lead + 1 + at].size);
            let kernel = size::resolve(&w.shape().axes()[2 + at].size);
            let far = n.sub(&one)?.mul(&number(stride[at]))?;
            let reach = kernel.sub(&one)?.mul(&number(dilation[at]))?;
            far.add(&reach)?
                .add(&number(1 + more[at]))?
                .sub(&number(2 * padding[at]))
        };
        let length = length().map_err(refuse)?;
        if length.as_const().is_some_and(|length| length < 1) {
            return Err(refuse_pair(op, x, w, "the padding takes all of the result"));
        }
        shape.0.push(Axis::of(length));
    }
    let result = Tensor::zeros(shape, x.dtype());
    let forward = convolved(op, &result, w, options)?;
    let pairs = forward.shape().axes().iter().zip(x.shape().axes());
    if !pairs.clone().all(|(a, b)| size::equate(&a.size, &b.size)) {
        let reason = format!("a convolution of its result would be {}", forward.shape());
        return Err(refuse_pair(op, x, w, reason));
    }
    let weight = x.unnamed().in_place(forward.shape().clone());
    let back = forward.vjp(&weight, &[&result]).remove(0);
    back.check()?;
    Ok(as_named(back, x))
}

/// How the windows of a pool move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolOptions {
    /// How many elements a window shows along each spatial axis; there are as many of those as numbers.
    pub size: Vec<usize>,
    /// How far it moves from place to place; `None` is by its size.
    pub stride: Option<PerAxis>,
    /// How many places stand before the first element and behind the last one.
    pub padding: PerAxis,
    /// How far apart the elements are that it shows.
    pub dilation: PerAxis,
    /// Whether a mean counts padding as zeros. Otherwise it is the mean of what is there.
    pub count_include_pad: bool,
}

impl PoolOptions {
    /// Windows of a size along the last axes, side by side.
    pub fn new(size: impl Into<Vec<usize>>) -> PoolOptions {
        PoolOptions {
            size: size.into(),
            stride: None,
            padding: PerAxis::All(0),
            dilation: PerAxis::All(1),
            count_include_pad: true,
        }
    }

    /// The same with another stride.
    pub fn stride(self, stride: impl Into<PerAxis>) -> PoolOptions {
        let stride = Some(stride.into());
        PoolOptions { stride, ..self }
    }

    /// The same with another padding.
    pub fn padding(self, padding: impl Into<PerAxis>) -> PoolOptions {
        let padding = padding.into();
        PoolOptions { padding, ..self }
    }

    /// The same with elements further apart.
    pub fn dilation(self, dilation: impl Into<PerAxis>) -> PoolOptions {
        let dilation = dilation.into();
        PoolOptions { dilation, ..self }
    }

    /// The same where a mean counts padding, or does not.
    pub fn count_include_pad(self, count_include_pad: bool) -> PoolOptions {
        PoolOptions {
            count_include_pad,
            ..self
        }
    }

    /// The windows of the last axes: places, and behind them what each shows; a fold of the latter.
    #[track_caller]
    fn folded(
        &self,
        op: &str,
        x: &Tensor,
        reduce: ReduceOp,
        outside: Scalar,
    ) -> Result<Tensor, TensorError> {
        let spatial = self.size.len();
        if spatial == 0 || x.rank() < spatial {
            let reason = format!("windows over {spatial} axes are asked for");
            return Err(refuse_shape(op, x.shape(), reason));
        }
        let sizes = PerAxis::Each(self.size.clone());
        let stride = self
            .stride
            .as_ref()
            .unwrap_or(&sizes)
            .get(op, "stride", spatial)?;
        let padding = self.padding.get(op, "padding", spatial)?;
        let dilation = self.dilation.get(op, "dilation", spatial)?;
        let lead = x.rank() - spatial;
        let mut windows = x.unnamed();
        for at in 0..spatial {
            if 2 * padding[at] > self.size[at] {
                let reason =
                    "the padding is at most half of a window, so that each shows an element";
                return Err(refuse_shape(op, x.shape(), reason));
            }
            let window = Window::new(self.size[at])
                .stride(stride[at])
                .dilation(dilation[at])
                .padding(padding[at]);
            windows = windows.window(lead + 2 * at, &window, Some(outside));
        }
        if let Err(error) = windows.check() {
            let reason = match error.kind() {
                ErrorKind::Shape { reason, .. } => reason.clone(),
                other => other.to_string(),
            };
            return Err(refuse_shape(op, x.shape(), reason));
        }
        let over = (0..spatial).map(|at| lead + 1 + 2 * at).collect();
        let folded = windows.fold(reduce, over);
        folded.check()?;
        Ok(folded)
    }
}

/// The largest element of each window along the last axes. Padding is smaller than all.
#[track_caller]
pub fn max_pool(x: &Tensor, options: &PoolOptions) -> Tensor {
    if let Some(failed) = failure(&[x]) {
        return failed;
    }
    let lowest = Scalar::min_value(x.dtype());
    let pooled = options.folded("max_pool", x, ReduceOp::Max, lowest);
    settle(pooled.map(|pooled| as_named(pooled, x)))
}

/// The mean of each window along the last axes.
#[track_caller]
pub fn avg_pool(x: &Tensor, options: &PoolOptions) -> Tensor {
    match failure(&[x]) {
        Some(failed) => failed,
        None => settle(means(x, options)),
    }
}

#[track_caller]
fn means(x: &Tensor, options: &PoolOptions) -> Result<Tensor, TensorError> {
    needs_floats("avg_pool", x)?;
    let zero = Scalar::zero(x.dtype());
    let sums = options.folded("avg_pool", x, ReduceOp::Sum, zero)?;
    let padded = options.padding != PerAxis::All(0);
    let means = if options.count_include_pad || !padded {
        let count: usize = options.size.iter().product();
        sums / count as f64
    } else {
        let lead = x.rank() - options.size.len();
        let spatial = Shape::new(
            x.shape().axes()[lead..]
                .iter()
                .map(|axis| Axis::of(&axis.size)),
        );
        let ones = Tensor::ones(spatial, x.dtype());
        sums / options.folded("avg_pool", &ones, ReduceOp::Sum, zero)?
    };
    Ok(as_named(means, x))
}

#[track_caller]
fn needs_floats(op: &str, x: &Tensor) -> Result<(), TensorError> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(TensorError::new(ErrorKind::Expected {
        op: op.to_owned(),
        expected: "a tensor of floats".to_owned(),
        got: x.dtype(),
    }))
}

/// The mean along the last `spatial` axes, which go.
#[track_caller]
pub fn global_avg_pool(x: &Tensor, spatial: usize) -> Tensor {
    let axes: Vec<i64> = (1..=spatial as i64).map(|at| -at).collect();
    x.mean(axes)
}

/// The largest element along the last `spatial` axes, which go.
#[track_caller]
pub fn global_max_pool(x: &Tensor, spatial: usize) -> Tensor {
    let axes: Vec<i64> = (1..=spatial as i64).map(|at| -at).collect();
    x.max(axes)
}

/// Means of as many parts along the last axes as are asked for: part `i` of `m` along an axis of `n`
/// elements goes from `i * n / m`, rounded down, to `(i + 1) * n / m`, rounded up.
#[track_caller]
pub fn adaptive_avg_pool(x: &Tensor, parts: &[usize]) -> Tensor {
    if let Some(failed) = failure(&[x]) {
        return failed;
    }
    if let Err(error) = needs_floats("adaptive_avg_pool", x) {
        return settle(Err(error));
    }
    let zero = Scalar::zero(x.dtype());
    settle(adapted("adaptive_avg_pool", x, parts, ReduceOp::Sum, zero))
}

/// The largest elements of as many parts along the last axes as are asked for, as
/// [`adaptive_avg_pool`] cuts them.
#[track_caller]
pub fn adaptive_max_pool(x: &Tensor, parts: &[usize]) -> Tensor {
    if let Some(failed) = failure(&[x]) {
        return failed;
    }
    let lowest = Scalar::min_value(x.dtype());
    settle(adapted(
        "adaptive_max_pool",
        x,
        parts,
        ReduceOp::Max,
        lowest,
    ))
}

#[track_caller]
fn adapted(
    op: &str,
    x: &Tensor,
    parts: &[usize],
    reduce: ReduceOp,
    outside: Scalar,
) -> Result<Tensor, TensorError> {
    if parts.len() > x.rank() {
        let reason = format!("parts of {} axes are asked for", parts.len());
        return Err(refuse_shape(op, x.shape(), reason));
    }
    let lead = x.rank() - parts.len();
    let mut result = x.unnamed();
    for (at, count) in parts.iter().enumerate() {
        result = cut(op, &result, lead + at, *count, reduce, outside)?;
        result.check()?;
    }
    Ok(as_named(result, x))
}

/// Parts of one axis, folded.
#[track_caller]
fn cut(
    op: &str,
    x: &Tensor,
    at: usize,
    count: usize,
    reduce: ReduceOp,
    outside: Scalar,
) -> Result<Tensor, TensorError> {
    let Some(size) = x.shape().axes()[at].known() else {
        let reason = format!("the size of axis {at} is not known yet");
        return Err(refuse_shape(op, x.shape(), reason));
    };
    if count == 0 || size == 0 {
        return Err(refuse_shape(
            op,
            x.shape(),
            "there is nothing to cut into parts",
        ));
    }
    let lengths: Vec<usize> = (0..count)
        .map(|i| ((i + 1) * size).div_ceil(count) - i * size / count)
        .collect();
    let longest = lengths.iter().copied().max().unwrap_or(1);
    let mut shape = x.shape().clone();
    shape.0[at].size = Expr::constant(count as i64);
    shape.0.insert(at + 1, Axis::of(longest));
    let refuse = |error: ExprError| refuse_shape(op, x.shape(), error.to_string());
    let (n, m) = (Expr::constant(size as i64), Expr::constant(count as i64));
    let view = || {
        let start = axis_index(at).mul(&n)?.floor_div(&m)?;
        let end = axis_index(at)
            .add(&Expr::constant(1))?
            .mul(&n)?
            .ceil_div(&m)?;
        let index = start.add(&axis_index(at + 1))?;
        let mut map: SmallVec<[Expr; 4]> = (0..x.rank())
            .map(|axis| axis_index(axis + usize::from(axis > at)))
            .collect();
        let inside = Expr::compare(Cmp::Lt, &index, &end)?;
        map[at] = index;
        Ok(View {
            constraints: vec![inside],
            outside: Some(outside),
            ..View::inside(map)
        })
    };
    let folded = x
        .view(view().map_err(refuse)?, shape)
        .fold(reduce, [at + 1].into_iter().collect());
    if reduce != ReduceOp::Sum {
        return Ok(folded);
    }
    let lengths: Vec<f64> = lengths.iter().map(|length| *length as f64).collect();
    let mut lengths = Tensor::new(&lengths, [count]).cast(x.dtype());
    for _ in at + 1..folded.rank() {
        lengths = lengths.unsqueeze(-1);
    }
    Ok(folded / lengths)
}
