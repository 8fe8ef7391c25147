//! Functions on several streams at once, each over a part of the arguments.
//!
//! Every stream has copies of the variables that the function reads, and what it gives is added up through
//! merge buffers, pair by pair. A second function gets the sums on the first stream and updates variables.

use crate::buffer::{Buffer, Remembered, VALUE};
use crate::error::{ErrorKind, TensorError};
use crate::jit::{Jit, Outcome, jit};
use crate::key;
use crate::lower::{Lowered, size_name};
use crate::node::{Kind, Tensor};
use crate::session::Session;
use crate::shape::Shape;
use crate::size;
use crate::trace;
use crate::tree::Tree;
use crate::variable::Variable;
use loopwright_graph::{Array, Graph, GraphBuilder, GraphError};
use loopwright_ops::{DType, Op};
use loopwright_runtime::{Context, LinkOptions, MERGE, Merge, Routine, RuntimeError};
use loopwright_symbolic::Expr;
use std::cell::RefCell;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

/// A function that works on several streams; made by [`parallel`].
pub struct Parallel<I, O: Outcome> {
    name: Arc<str>,
    sessions: Vec<Session>,
    each: Arc<Each<I>>,
    then: Arc<Then<O>>,
    plans: Mutex<Vec<Plan<I, O>>>,
}

type Each<I> = dyn Fn(&I) -> Result<Vec<Tensor>, TensorError> + Send + Sync;
type Then<O> = dyn Fn(&[Tensor]) -> O + Send + Sync;

/// What every stream gives: what is added up, and what variables were set to.
type Given = (Vec<Tensor>, Vec<Option<Tensor>>);

/// What one stream takes: values of variables, a part of the arguments, and the stream's number.
type Taken<I> = (Vec<Tensor>, I, Tensor);

/// Both functions for parts of certain shapes.
struct Plan<I, O: Outcome> {
    parts: Vec<(Shape, DType)>,
    variables: Vec<Variable>,
    each: Jit<Taken<I>, Result<Given, TensorError>>,
    then: Jit<Given, Result<O::Tree, TensorError>>,
    /// The number of each stream.
    numbers: Vec<Tensor>,
    /// What adds another stream's value to one of a stream's own: by stream, by value.
    adders: Vec<Vec<Option<(Remembered, Routine)>>>,
}

thread_local! {
    static SHARD: RefCell<Option<Tensor>> = const { RefCell::new(None) };
}

/// The number of the part that is worked on (`u64`, from 0), in a function that is given to [`parallel`].
///
/// Random numbers that should differ from part to part follow from a key with it:
/// [`random::Generator`](crate::random::Generator) does so by itself.
pub fn shard() -> Option<Tensor> {
    SHARD.with_borrow(Clone::clone)
}

fn with_shard<T>(number: &Tensor, run: impl FnOnce() -> T) -> T {
    struct Restore(Option<Tensor>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            SHARD.with_borrow_mut(|shard| *shard = before);
        }
    }
    let before = SHARD.with_borrow_mut(|shard| shard.replace(number.clone()));
    let _restore = Restore(before);
    run()
}

/// A function over parts of its arguments, a part for each session, and what becomes of the sums.
///
/// The arguments are cut along their first axis into equal parts; tensors without axes go to all. `each` is
/// called with a part on every stream, and what it gives is added up over the streams. `then` has the sums,
/// on the first session, and may set variables. Variables that `each` sets (running means, counters) are
/// set to what the first part made of them.
///
/// Streams of one device ([`Session::streams`]) share what is compiled. Sessions of several devices of one
/// runtime will do, too.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Session, Tensor, TensorError, Variable, parallel};
/// use std::num::NonZero;
///
/// let weight = Variable::new(&Tensor::scalar(0.0f32));
/// let (read, write) = (weight.clone(), weight.clone());
/// let sessions = Session::current()?.streams(NonZero::new(2).expect("not zero"))?;
/// let step = parallel(
///     "step",
///     &sessions,
///     move |(x, y): &(Tensor, Tensor)| {
///         let weight = read.get();
///         let loss = (x * &weight - y).square().sum(..);
///         let [slope] = loss.gradients([&weight]);
///         Ok(vec![loss, slope])
///     },
///     move |sums| {
///         write.set(&(write.get() - &sums[1] * 0.01))?;
///         Ok::<_, TensorError>(sums[0].clone())
///     },
/// );
/// let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
/// let y = &x * 3.0;
/// for _ in 0..50 {
///     step.call(&(x.clone(), y.clone()))?;
/// }
/// assert!((weight.get().item()? - 3.0).abs() < 1e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parallel<I: Tree + 'static, O: Outcome + 'static>(
    name: &str,
    sessions: &[Session],
    each: impl Fn(&I) -> Result<Vec<Tensor>, TensorError> + Send + Sync + 'static,
    then: impl Fn(&[Tensor]) -> O + Send + Sync + 'static,
) -> Parallel<I, O> {
    Parallel {
        name: name.into(),
        sessions: sessions.to_vec(),
        each: Arc::new(each),
        then: Arc::new(then),
        plans: Mutex::default(),
    }
}

impl<I: Tree + 'static, O: Outcome + 'static> Parallel<I, O> {
    /// The streams that it works on.
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// Calls the function. Nothing is waited for.
    ///
    /// # Errors
    /// What is wrong with the arguments or the functions, or what a device says.
    #[track_caller]
    pub fn call(&self, arguments: &I) -> Result<O::Tree, TensorError> {
        let place = Location::caller();
        if trace::has_stand_ins() {
            let inside = trace::name();
            return Err(self.refuse(
                format!("it works on streams of its own, and `{inside}`, which is traced, has one; call it from outside"),
                place,
            ));
        }
        let Some(first) = self.sessions.first() else {
            return Err(self.refuse("there is no session to work on".to_owned(), place));
        };
        let parts = self.parts(arguments, place)?;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |plan: &Plan<I, O>| plan.fits(&parts[0]);
        let at = match plans.iter().position(fits) {
            Some(at) => at,
            None => {
                plans.push(self.plan(&parts[0])?);
                plans.len() - 1
            }
        };
        let plan = &mut plans[at];
        let values: Vec<Tensor> = plan.variables.iter().map(Variable::get).collect();
        let mut given: Vec<Given> = Vec::with_capacity(parts.len());
        for (at, (session, part)) in self.sessions.iter().zip(parts).enumerate() {
            let taken = (values.clone(), part, plan.numbers[at].clone());
            given.push(session.scope(|| plan.each.call(&taken))?);
        }
        // Who holds a value keeps it from being updated in place.
        drop(values);
        plan.merge(&self.sessions, &given)
            .map_err(|error| error.moved_to(place))?;
        let sums = given.swap_remove(0);
        drop(given);
        first.scope(|| plan.then.call(&sums))
    }

    fn refuse(&self, reason: String, place: &'static Location<'static>) -> TensorError {
        let op = self.name.to_string();
        TensorError::at(ErrorKind::Argument { op, reason }, place)
    }

    /// The part of each session.
    fn parts(
        &self,
        arguments: &I,
        place: &'static Location<'static>,
    ) -> Result<Vec<I>, TensorError> {
        let count = self.sessions.len();
        let mut leaves = Vec::new();
        for leaf in arguments.leaves() {
            leaf.check()?;
            let rows = match leaf.shape().axes().first() {
                None => None,
                Some(axis) => match axis.known() {
                    Some(rows) if rows % count == 0 => Some(rows / count),
                    _ => {
                        let shape = leaf.shape();
                        return Err(self.refuse(
                            format!("the first axis of {shape} cannot be cut into {count} equal parts, one for each stream"),
                            place,
                        ));
                    }
                },
            };
            leaves.push((leaf, rows));
        }
        let part = |at: usize| {
            let mut leaves = leaves.iter();
            arguments.replace(&mut |_| match leaves.next() {
                Some((leaf, Some(rows))) => rows_of(leaf, at * rows, *rows),
                Some((leaf, None)) => leaf.clone(),
                None => unreachable!("a tree shows as many tensors as it replaces"),
            })
        };
        Ok((0..count).map(part).collect())
    }

    /// Both functions for parts like this.
    fn plan(&self, part: &I) -> Result<Plan<I, O>, TensorError> {
        // Which variables there are is found by tracing it once, and so are their sizes.
        let mut parts = Vec::new();
        let stand_ins = part.replace(&mut |leaf| {
            let at = parts.len();
            parts.push((leaf.shape().clone(), leaf.dtype()));
            Tensor::make(Kind::Argument(at), &[], leaf.shape().clone(), leaf.dtype())
        });
        let number = Tensor::make(
            Kind::Argument(parts.len()),
            &[],
            Shape::scalar(),
            DType::U64,
        );
        let (given, trace) = trace::record(Arc::clone(&self.name), || {
            with_shard(&number, || (self.each)(&stand_ins))
        });
        for tensor in given? {
            tensor.check()?;
        }
        size::settle();
        let variables: Vec<Variable> = trace.variables().cloned().collect();
        let each = jit(&self.name, {
            let (each, variables) = (Arc::clone(&self.each), variables.clone());
            move |(values, part, number): &Taken<I>| {
                let run = || with_shard(number, || each(part));
                let (given, set) = trace::with_values(&variables, values, run);
                Ok((given?, set))
            }
        });
        let then = jit(&format!("{} of all", self.name), {
            let (then, variables) = (Arc::clone(&self.then), variables.clone());
            move |(sums, set): &Given| {
                for (variable, value) in variables.iter().zip(set) {
                    if let Some(value) = value {
                        variable.set(value)?;
                    }
                }
                then(sums).into_tree()
            }
        });
        let numbers = (0..self.sessions.len() as u64).map(Tensor::scalar);
        Ok(Plan {
            parts,
            variables,
            each,
            then,
            numbers: numbers.collect(),
            adders: self.sessions.iter().map(|_| Vec::new()).collect(),
        })
    }
}

impl<I: Tree, O: Outcome> Plan<I, O> {
    fn fits(&self, part: &I) -> bool {
        let mut known = self.parts.iter();
        let mut fits = true;
        part.visit(&mut |leaf| {
            fits &= known
                .next()
                .is_some_and(|(shape, dtype)| leaf.shape() == shape && leaf.dtype() == *dtype);
        });
        fits && known.next().is_none()
    }

    /// Adds up what the streams have, pair by pair, into what the first one has.
    fn merge(&mut self, sessions: &[Session], given: &[Given]) -> Result<(), TensorError> {
        let lift = |error: RuntimeError| TensorError::new(error.into());
        let buffer = |at: usize, value: usize| {
            let value = given[at].0[value].node.value.get();
            value.expect("a result has a value")
        };
        let mut apart = 1;
        while apart < sessions.len() {
            for to in (0..sessions.len() - apart).step_by(2 * apart) {
                for value in 0..given[to].0.len() {
                    let (own, other) = (buffer(to, value), buffer(to + apart, value));
                    let other = other.on(&sessions[to + apart]);
                    let other = other.expect("it was computed there");
                    let adder = self.adder(to, &sessions[to], value, own)?;
                    merge_from(adder.context(), &other).map_err(lift)?;
                    adder.schedule(&[]).map_err(lift)?;
                    own.is_overwritten(&sessions[to]);
                }
            }
            apart *= 2;
        }
        Ok(())
    }

    /// What adds to a value of a stream.
    fn adder(
        &mut self,
        stream: usize,
        session: &Session,
        value: usize,
        own: &Buffer,
    ) -> Result<&Routine, TensorError> {
        let adders = &mut self.adders[stream];
        if adders.len() <= value {
            adders.resize_with(value + 1, || None);
        }
        let is_linked = |(known, _): &(Remembered, Routine)| known.is(own);
        if !adders[value].as_ref().is_some_and(is_linked) {
            let context = own.on(session).expect("it was computed there");
            adders[value] = Some((own.remembered(), link_adder(session, &context)?));
        }
        let (_, routine) = adders[value].as_ref().expect("it was just linked");
        Ok(routine)
    }
}

/// Rows of a tensor.
#[track_caller]
fn rows_of(leaf: &Tensor, from: usize, rows: usize) -> Tensor {
    let array = leaf.node.value.get().and_then(Buffer::on_host);
    let Some(array) = array else {
        return leaf.narrow(0, from, rows);
    };
    let mut shape = array.shape().to_vec();
    let bytes = array.bytes().len().checked_div(shape[0]).unwrap_or(0);
    shape[0] = rows;
    let part = &array.bytes()[from * bytes..][..rows * bytes];
    let part = Array::from_bytes(array.dtype(), &shape, part);
    let part = part.expect("a part of an array has as many bytes as its shape says");
    let mut named = leaf.shape().clone();
    named.0[0].size = Expr::constant(rows as i64);
    Tensor::of_buffer(Buffer::of_array(part), named)
}

/// Has the merge buffer of a stream hold another stream's value; where it lies, if that can be read.
fn merge_from(own: &Context, other: &Context) -> Result<(), RuntimeError> {
    match own.merge_from(VALUE, other, Merge::Streaming) {
        Err(RuntimeError::NotStreamable { .. }) => own.merge_from(VALUE, other, Merge::Copy)?,
        streamed => streamed?,
    };
    Ok(())
}

/// A routine that adds what is in the merge buffer to the value of a context.
fn link_adder(session: &Session, context: &Context) -> Result<Routine, TensorError> {
    let node = context.node(VALUE).expect("the context has the value");
    let (dtype, rank) = (node.dtype, node.shape.len());
    let key = key::of_text(&format!("merge {dtype} {rank}"));
    let lower = || {
        let graph = adding(dtype, rank).map_err(|error| TensorError::new(error.into()))?;
        Ok(Lowered { graph })
    };
    let compiled = session.compiled(key, "merge", lower)?;
    let names: Vec<String> = (0..rank).map(size_name).collect();
    let sizes: Vec<(&str, i64)> = names
        .iter()
        .map(String::as_str)
        .zip(node.shape.iter().map(|size| *size as i64))
        .collect();
    let options = LinkOptions {
        sizes: &sizes,
        prior: &[VALUE],
    };
    let linked = context.link(&compiled.code(), &options);
    linked.map_err(|error| TensorError::new(error.into()))
}

/// The program that adds the merge buffer to a value.
fn adding(dtype: DType, rank: usize) -> Result<Graph, GraphError> {
    let mut builder = GraphBuilder::new();
    let mut dims = Vec::with_capacity(rank);
    for at in 0..rank {
        let size = builder.size(&size_name(at), None)?;
        let dim = builder.dim(&format!("d{at}"))?;
        builder.set_size(dim, Expr::symbol(size), VALUE);
        dims.push(dim);
    }
    let own = builder.state(VALUE, dtype, &dims)?;
    let other = builder.input(&format!("{VALUE}{MERGE}"), dtype, &dims)?;
    let sum = builder.map(Op::Add, &[own, other])?;
    builder.update(own, sum)?;
    builder.finish()
}

impl<I, O: Outcome> std::fmt::Debug for Parallel<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parallel({} on {:?})", self.name, self.sessions)
    }
}
