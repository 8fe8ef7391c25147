//! Functions that are compiled once and called many times.
//!
//! A function over tensors is *traced*: called once with tensors that stand for its arguments. What it
//! made of them, and what it set of variables, becomes one routine with a plan of its memory. Calls with
//! arguments of the same shapes and dtypes run that routine; others are traced anew, and the function
//! says why.

mod family;
mod version;

use crate::error::{ErrorKind, TensorError};
use crate::key;
use crate::loops::Loops;
use crate::lower;
use crate::node::{Kind, Tensor, program_order};
use crate::ops::AxisRef;
use crate::program::Program;
use crate::session::Session;
use crate::size;
use crate::trace::{self, Trace};
use crate::tree::Tree;
use crate::variable::Variable;
use family::{Dynamic, Family, Sizes};
use loopwright_runtime::RuntimeError;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use version::Version;

/// A compiled function; made by [`jit`].
pub struct Jit<I, O: Outcome> {
    name: Arc<str>,
    function: Box<dyn Fn(&I) -> O + Send + Sync>,
    dynamic: Vec<Dynamic>,
    versions: Mutex<Vec<Version<O::Tree>>>,
    reports: Mutex<Vec<Report>>,
}

/// Why and how a function was traced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Why it had to be.
    pub reason: String,
    /// How many tensors its program has.
    pub tensors: usize,
    /// Variables that it reads.
    pub variables: usize,
    /// Variables that it updates.
    pub updates: usize,
}

/// A function over tensors that is compiled when it is first called with arguments of some shapes.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, Variable, jit};
///
/// let total = Variable::new(&Tensor::from([0.0f32, 0.0]));
/// let add = jit("add", {
///     let total = total.clone();
///     move |x: &Tensor| {
///         let sum = total.get() + x;
///         total.set(&sum)?;
///         Ok::<_, loopwright_tensor::TensorError>(sum.sum(..))
///     }
/// });
/// for _ in 0..3 {
///     add.call(&Tensor::from([1.0f32, 2.0]))?;
/// }
/// assert_eq!(total.get().to_vec::<f32>()?, [3.0, 6.0]);
/// assert_eq!(add.reports().len(), 1); // traced once
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
pub fn jit<I: Tree, O: Outcome>(
    name: &str,
    function: impl Fn(&I) -> O + Send + Sync + 'static,
) -> Jit<I, O> {
    Jit {
        name: name.into(),
        function: Box::new(function),
        dynamic: Vec::new(),
        versions: Mutex::default(),
        reports: Mutex::default(),
    }
}

/// What a function gives: tensors, or a result with tensors.
pub trait Outcome: Sized {
    /// The tensors.
    type Tree: Tree;

    /// The tensors, or why there are none.
    ///
    /// # Errors
    /// The function's own.
    fn into_tree(self) -> Result<Self::Tree, TensorError>;
}

impl<T: Tree> Outcome for Result<T, TensorError> {
    type Tree = T;

    fn into_tree(self) -> Result<T, TensorError> {
        self
    }
}

impl Outcome for Tensor {
    type Tree = Tensor;

    fn into_tree(self) -> Result<Tensor, TensorError> {
        Ok(self)
    }
}

impl<T: Tree> Outcome for Vec<T> {
    type Tree = Vec<T>;

    fn into_tree(self) -> Result<Vec<T>, TensorError> {
        Ok(self)
    }
}

impl<T: Tree, const N: usize> Outcome for [T; N] {
    type Tree = [T; N];

    fn into_tree(self) -> Result<[T; N], TensorError> {
        Ok(self)
    }
}

impl<A: Tree, B: Tree> Outcome for (A, B) {
    type Tree = (A, B);

    fn into_tree(self) -> Result<(A, B), TensorError> {
        Ok(self)
    }
}

impl<A: Tree, B: Tree, C: Tree> Outcome for (A, B, C) {
    type Tree = (A, B, C);

    fn into_tree(self) -> Result<(A, B, C), TensorError> {
        Ok(self)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<I: Tree, O: Outcome> Jit<I, O> {
    /// Lets an axis of an argument (a place among all tensors of the arguments) have any size: one trace
    /// and one program serve all sizes, each with memory of its own.
    ///
    /// While the function is traced, the size is unknown, and never taken to be 1. What needs to know it (a
    /// part that ends at a place counted from the end, joining along that axis) is refused. Where the
    /// function says what the size is (a parameter has it, or a constant), it is not open, and calls
    /// with another size are traced anew.
    ///
    /// ```
    /// # use loopwright_x86 as _;
    /// use loopwright_tensor::{DType, Tensor, jit};
    ///
    /// let mean = jit("mean", |x: &Tensor| x.square().mean(0)).dynamic(0, 0);
    /// for batch in [3, 5, 8] {
    ///     let x = Tensor::full([batch, 2], 2.0, DType::F32);
    ///     assert_eq!(mean.call(&x)?.to_vec::<f32>()?, [4.0, 4.0]);
    /// }
    /// assert_eq!(mean.reports().len(), 1);
    /// # Ok::<(), loopwright_tensor::TensorError>(())
    /// ```
    #[must_use]
    pub fn dynamic(mut self, argument: usize, axis: impl Into<AxisRef>) -> Jit<I, O> {
        self.dynamic.push(Dynamic::At(argument, axis.into()));
        self
    }

    /// Lets the axes of that name, of all arguments, have any size, which is the same for all of them: see
    /// [`Jit::dynamic`].
    #[must_use]
    pub fn dynamic_axis(mut self, name: &str) -> Jit<I, O> {
        self.dynamic.push(Dynamic::Named(name.into()));
        self
    }

    /// Calls the function.
    ///
    /// In a function that is traced itself, it becomes a part of that one.
    ///
    /// # Errors
    /// What is wrong with the arguments or the function, or what the device says.
    #[track_caller]
    pub fn call(&self, arguments: &I) -> Result<O::Tree, TensorError> {
        if trace::has_stand_ins() {
            return (self.function)(arguments).into_tree();
        }
        let place = Location::caller();
        let (mut versions, leaves, at, sizes) = self.prepared(arguments, place)?;
        versions[at].call(&leaves, &sizes, place)
    }

    /// The loops that the function runs in for arguments like these: traced and compiled now if it has not been, and
    /// not run. See [`Loops`] for what can be done with them.
    ///
    /// # Errors
    /// As [`Jit::call`].
    #[track_caller]
    pub fn loops(&self, arguments: &I) -> Result<Loops, TensorError> {
        let place = Location::caller();
        if trace::has_stand_ins() {
            let function = trace::name();
            return Err(TensorError::at(ErrorKind::Traced { function }, place));
        }
        let (versions, _, at, _) = self.prepared(arguments, place)?;
        let version = &versions[at];
        Ok(Loops::new(&version.session, &version.compiled))
    }

    /// The version for arguments, made now if there is none: its place, and the values of open sizes.
    fn prepared(
        &self,
        arguments: &I,
        place: &'static Location<'static>,
    ) -> Result<Prepared<'_, O::Tree>, TensorError> {
        let lift = |error: RuntimeError| TensorError::at(error.into(), place);
        let session = Session::current().map_err(lift)?;
        let mut leaves: SmallVec<[Tensor; 8]> = SmallVec::new();
        arguments.visit(&mut |leaf| leaves.push(leaf.clone()));
        session.realize(&leaves, place)?;
        let mut versions = locked(&self.versions);
        let bound = versions.iter().enumerate().find_map(|(at, version)| {
            let here = version.session.same(&session);
            let sizes = here.then(|| version.family.bind(&leaves)).flatten()?;
            Some((at, sizes))
        });
        let (at, sizes) = match bound {
            Some(bound) => bound,
            None => {
                let reason = reason(&session, &versions, &leaves);
                let call = Call {
                    session: &session,
                    arguments,
                    leaves: &leaves,
                    place,
                };
                let version = self.version(&call, reason)?;
                let sizes = version.family.bind(&leaves);
                let sizes = sizes.expect("it was traced for these arguments");
                versions.push(version);
                (versions.len() - 1, sizes)
            }
        };
        Ok((versions, leaves, at, sizes))
    }

    /// Every time that the function was traced, and why.
    pub fn reports(&self) -> Vec<Report> {
        locked(&self.reports).clone()
    }

    /// The function traced for arguments like these.
    fn version(&self, call: &Call<'_, I>, reason: String) -> Result<Version<O::Tree>, TensorError> {
        if !self.dynamic.is_empty()
            && let Some(version) = self.traced(call, &reason, &self.dynamic)?
        {
            return Ok(version);
        }
        // The function has said what a dynamic size is, or that two are equal which are not: a size of 1
        // that is repeated, or a mistake, which is found without open sizes.
        let version = self.traced(call, &reason, &[])?;
        Ok(version.expect("without open sizes it is traced for these arguments"))
    }

    /// The function traced for arguments like these with some sizes open; nothing if what it says about
    /// those does not go with these arguments.
    fn traced(
        &self,
        call: &Call<'_, I>,
        reason: &str,
        dynamic: &[Dynamic],
    ) -> Result<Option<Version<O::Tree>>, TensorError> {
        let Call {
            session,
            arguments,
            leaves,
            place,
        } = *call;
        let mut family = Family::new(&self.name, leaves, dynamic);
        let mut stand_ins: Vec<Tensor> = Vec::with_capacity(leaves.len());
        let given = arguments.replace(&mut |leaf| {
            let at = stand_ins.len();
            let shape = family.shape(at).clone();
            stand_ins.push(Tensor::make(Kind::Argument(at), &[], shape, leaf.dtype()));
            stand_ins[at].clone()
        });
        let (outcome, trace) = trace::record(Arc::clone(&self.name), || (self.function)(&given));
        let prototype = outcome.into_tree()?;
        let results = prototype.leaves();
        let updates = trace.updates();
        let changed = updates
            .iter()
            .flat_map(|(before, after)| [before.clone(), after.clone()]);
        let roots: Vec<Tensor> = results.iter().cloned().chain(changed).collect();
        for root in &roots {
            root.check()?;
        }
        if roots.is_empty() {
            return Err(TensorError::at(
                ErrorKind::Argument {
                    op: self.name.to_string(),
                    reason: "the function gives nothing and sets no variable".to_owned(),
                },
                place,
            ));
        }
        size::settle();
        let order = program_order(&roots);
        self.check_own(&order, &stand_ins, &trace, place)?;
        let fixed = order.iter().filter(|tensor| {
            matches!(tensor.node.kind, Kind::Variable(_)) || tensor.node.value.get().is_some()
        });
        family.settle(leaves, fixed.map(Tensor::shape));
        if family.bind(leaves).is_none() {
            return Ok(None);
        }
        let program = Program::new(&order, &results, &updates, family.open());
        let key = key::of(&program)?;
        let compiled = session.compiled(key, &self.name, || lower::lower(&program))?;
        let variables = order.iter().filter_map(|tensor| {
            let traced = trace.of(tensor)?;
            let is_updated = updates.iter().any(|(before, _)| before.same(tensor));
            Some((traced.clone(), is_updated))
        });
        let variables: Vec<(Variable, bool)> = variables.collect();
        let mut held: Vec<Variable> = variables
            .iter()
            .map(|(variable, _)| variable.clone())
            .collect();
        held.sort_unstable_by_key(Variable::id);
        locked(&self.reports).push(Report {
            reason: reason.to_owned(),
            tensors: order.len(),
            variables: variables.len(),
            updates: updates.len(),
        });
        let captured: Vec<Tensor> = program.inputs().cloned().collect();
        let described = |tensor: &Tensor| (tensor.shape().clone(), tensor.dtype());
        Ok(Some(Version {
            session: session.clone(),
            changes: compiled.changes(),
            compiled,
            memory: Vec::with_capacity(variables.len()),
            last: Vec::new(),
            variables,
            held,
            captured,
            results: results.iter().map(described).collect(),
            prototype,
            family,
            instances: Vec::new(),
        }))
    }

    /// Refuses tensors that stand for arguments and variables of another trace.
    fn check_own(
        &self,
        order: &[Tensor],
        stand_ins: &[Tensor],
        trace: &Trace,
        place: &'static Location<'static>,
    ) -> Result<(), TensorError> {
        let stray = order.iter().find(|tensor| match tensor.node.kind {
            _ if tensor.node.value.get().is_some() => false,
            Kind::Argument(at) => !stand_ins.get(at).is_some_and(|own| own.same(tensor)),
            Kind::Variable(_) => trace.of(tensor).is_none(),
            _ => false,
        });
        match stray {
            None => Ok(()),
            Some(_) => Err(TensorError::at(
                ErrorKind::Argument {
                    op: self.name.to_string(),
                    reason: "it uses a tensor that was made while another function was traced, which has no value; give it back as a result, or keep it in a variable".to_owned(),
                },
                place,
            )),
        }
    }
}

/// Versions of a function, the tensors of a call's arguments, which version takes them, and the values of open sizes.
type Prepared<'a, T> = (
    MutexGuard<'a, Vec<Version<T>>>,
    SmallVec<[Tensor; 8]>,
    usize,
    Sizes,
);

/// A call that needs a trace.
struct Call<'a, I> {
    session: &'a Session,
    arguments: &'a I,
    leaves: &'a [Tensor],
    place: &'static Location<'static>,
}

/// Why the versions that there are do not do.
fn reason<T>(session: &Session, versions: &[Version<T>], leaves: &[Tensor]) -> String {
    let here = |version: &&Version<T>| version.session.same(session);
    match versions.iter().rev().find(here) {
        Some(last) => last.family.differences(leaves),
        None if versions.is_empty() => "the first call".to_owned(),
        None => format!("the first call on {}", session.device().name()),
    }
}

impl<I, O: Outcome> std::fmt::Debug for Jit<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jit({})", self.name)
    }
}
