//! Functions that are compiled once and called many times.
//!
//! A function over tensors is *traced*: called once with tensors that stand for its arguments. What it
//! made of them, and what it set of variables, becomes one routine with a plan of its memory. Calls with
//! arguments of the same shapes and dtypes run that routine; others are traced anew, and the function
//! says why.

use crate::buffer::{Buffer, Remembered, VALUE};
use crate::error::{ErrorKind, TensorError};
use crate::key;
use crate::lower;
use crate::node::{Kind, Tensor, program_order};
use crate::session::{Compiled, Session};
use crate::shape::Shape;
use crate::size;
use crate::trace;
use crate::tree::Tree;
use crate::variable::Variable;
use loopwright_ops::DType;
use loopwright_runtime::{Context, LinkOptions, Routine, RuntimeError};
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A compiled function; made by [`jit`].
pub struct Jit<I, O: Outcome> {
    name: Arc<str>,
    function: Box<dyn Fn(&I) -> O + Send + Sync>,
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

/// The function as it was traced for arguments of certain shapes, on a session's device.
struct Version<O> {
    session: Session,
    arguments: Vec<(Shape, DType)>,
    compiled: Arc<Compiled>,
    /// In the order of their names in the program, and whether each is updated.
    variables: Vec<(Variable, bool)>,
    /// Tensors with values that the function has taken from outside.
    captured: Vec<Tensor>,
    /// What the traced function gave.
    prototype: O,
    results: Vec<(Shape, DType)>,
    /// Linked routines. More than one where results of earlier calls are still held.
    instances: Vec<Instance>,
}

/// A routine with its memory.
struct Instance {
    routine: Routine,
    variables: Vec<Remembered>,
    results: Vec<Buffer>,
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
    /// Calls the function.
    ///
    /// In a function that is traced itself, it becomes a part of that one.
    ///
    /// # Errors
    /// What is wrong with the arguments or the function, or what the device says.
    #[track_caller]
    pub fn call(&self, arguments: &I) -> Result<O::Tree, TensorError> {
        if trace::is_on() {
            return (self.function)(arguments).into_tree();
        }
        let place = Location::caller();
        let lift = |error: RuntimeError| TensorError::at(error.into(), place);
        let session = Session::current().map_err(lift)?;
        let leaves = arguments.leaves();
        session.realize(&leaves, place)?;
        let mut versions = locked(&self.versions);
        let fits = |version: &Version<O::Tree>| {
            let alike = |(leaf, (shape, dtype)): (&Tensor, &(Shape, DType))| {
                leaf.dtype() == *dtype && leaf.shape() == shape
            };
            version.session.same(&session)
                && version.arguments.len() == leaves.len()
                && leaves.iter().zip(&version.arguments).all(alike)
        };
        let at = match versions.iter().position(fits) {
            Some(at) => at,
            None => {
                let reason = self.reason(&session, &versions, &leaves);
                versions.push(self.trace(&session, arguments, &leaves, reason, place)?);
                versions.len() - 1
            }
        };
        versions[at].call(&leaves, place)
    }

    /// Every time that the function was traced, and why.
    pub fn reports(&self) -> Vec<Report> {
        locked(&self.reports).clone()
    }

    /// Why the versions that there are do not do.
    fn reason(
        &self,
        session: &Session,
        versions: &[Version<O::Tree>],
        leaves: &[Tensor],
    ) -> String {
        let Some(last) = versions
            .iter()
            .rev()
            .find(|version| version.session.same(session))
        else {
            return match versions.is_empty() {
                true => "the first call".to_owned(),
                false => format!("the first call on {}", session.device().name()),
            };
        };
        if last.arguments.len() != leaves.len() {
            return format!(
                "{} tensors in place of {}",
                leaves.len(),
                last.arguments.len()
            );
        }
        let pairs = leaves.iter().zip(&last.arguments).enumerate();
        let different = pairs
            .filter(|(_, (leaf, (shape, dtype)))| leaf.shape() != shape || leaf.dtype() != *dtype);
        let texts = different.map(|(at, (leaf, (shape, dtype)))| {
            format!(
                "argument {at} is {}{}, and was {dtype}{shape}",
                leaf.dtype(),
                leaf.shape()
            )
        });
        texts.collect::<Vec<_>>().join("; ")
    }

    fn trace(
        &self,
        session: &Session,
        arguments: &I,
        leaves: &[Tensor],
        reason: String,
        place: &'static Location<'static>,
    ) -> Result<Version<O::Tree>, TensorError> {
        let mut next = 0;
        let stand_ins = arguments.replace(&mut |leaf| {
            let kind = Kind::Argument(next);
            next += 1;
            Tensor::make(kind, &[], leaf.shape().clone(), leaf.dtype())
        });
        let (outcome, trace) =
            trace::record(Arc::clone(&self.name), || (self.function)(&stand_ins));
        let prototype = outcome.into_tree()?;
        let results = prototype.leaves();
        let updated = trace.variables.iter().filter_map(|traced| {
            // A variable that is set to its own value is only read.
            let after = traced
                .after
                .as_ref()
                .filter(|after| !after.same(&traced.before))?;
            Some((traced.before.clone(), after.clone()))
        });
        let updates: Vec<(Tensor, Tensor)> = updated.collect();
        let mut roots = results.clone();
        roots.extend(
            updates
                .iter()
                .flat_map(|(before, after)| [before.clone(), after.clone()]),
        );
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
        let stray = order.iter().any(|tensor| match tensor.node.kind {
            Kind::Variable(id) => !trace
                .variables
                .iter()
                .any(|traced| traced.variable.id() == id),
            _ => false,
        });
        if stray {
            return Err(TensorError::at(
                ErrorKind::Traced {
                    function: self.name.to_string(),
                },
                place,
            ));
        }
        let key = key::of(&order, &results, &updates)?;
        let compiled =
            session.compiled(key, &self.name, || lower::lower(&order, &results, &updates))?;
        let variables = order.iter().filter_map(|tensor| match tensor.node.kind {
            Kind::Variable(id) => {
                let traced = trace
                    .variables
                    .iter()
                    .find(|traced| traced.variable.id() == id)?;
                let is_updated = updates.iter().any(|(before, _)| before.same(tensor));
                Some((traced.variable.clone(), is_updated))
            }
            _ => None,
        });
        let variables: Vec<(Variable, bool)> = variables.collect();
        locked(&self.reports).push(Report {
            reason,
            tensors: order.len(),
            variables: variables.len(),
            updates: updates.len(),
        });
        let captured = order
            .iter()
            .filter(|tensor| tensor.node.value.get().is_some())
            .cloned();
        let described = |tensor: &Tensor| (tensor.shape().clone(), tensor.dtype());
        Ok(Version {
            session: session.clone(),
            arguments: leaves.iter().map(described).collect(),
            compiled,
            variables,
            captured: captured.collect(),
            results: results.iter().map(described).collect(),
            prototype,
            instances: Vec::new(),
        })
    }
}

impl<T: Tree> Version<T> {
    #[track_caller]
    fn call(
        &mut self,
        leaves: &[Tensor],
        place: &'static Location<'static>,
    ) -> Result<T, TensorError> {
        let lift = |error: RuntimeError| TensorError::at(error.into(), place);
        let mut variables = Vec::with_capacity(self.variables.len());
        for (variable, updated) in &self.variables {
            variables.push(variable.memory(&self.session, *updated)?);
        }
        let linked = |instance: &Instance| {
            instance
                .variables
                .iter()
                .zip(&variables)
                .all(|(known, now)| known.is(now))
        };
        self.instances.retain(linked);
        let free = |instance: &Instance| !instance.results.iter().any(Buffer::is_shared);
        let at = match self.instances.iter().position(free) {
            Some(at) => at,
            None => {
                let instance = self.link(&variables).map_err(lift)?;
                self.instances.push(instance);
                self.instances.len() - 1
            }
        };
        let instance = &self.instances[at];
        instance.give(&self.session, leaves).map_err(lift)?;
        instance.routine.schedule(&[]).map_err(lift)?;
        for (buffer, (_, updated)) in variables.iter().zip(&self.variables) {
            if *updated {
                buffer.is_overwritten(&self.session);
            }
        }
        let mut at = 0;
        Ok(self.prototype.replace(&mut |_| {
            let (buffer, (shape, _)) = (&instance.results[at], &self.results[at]);
            at += 1;
            buffer.is_overwritten(&self.session);
            Tensor::of_buffer(buffer.clone(), shape.clone())
        }))
    }

    fn link(&self, variables: &[Buffer]) -> Result<Instance, RuntimeError> {
        let (mut context, missing) = self.session.place(self.captured.iter())?;
        for (at, buffer) in variables.iter().enumerate() {
            let memory = buffer
                .on(&self.session)
                .expect("a variable was moved to the device");
            context = context.with_array(&lower::variable_name(at), &memory, VALUE)?;
        }
        let routine = context.link(&self.compiled.code, &LinkOptions::default())?;
        self.session.upload(routine.context(), &missing)?;
        let mut results = Vec::with_capacity(self.results.len());
        for (at, (_, dtype)) in self.results.iter().enumerate() {
            let name = lower::output_name(at);
            let alone = self
                .session
                .root()
                .with_array(VALUE, routine.context(), &name)?;
            results.push(Buffer::of_context(&self.session, alone, *dtype));
        }
        Ok(Instance {
            routine,
            variables: variables.iter().map(Buffer::remembered).collect(),
            results,
        })
    }
}

impl Instance {
    /// Moves arguments to where the routine reads them.
    fn give(&self, session: &Session, leaves: &[Tensor]) -> Result<(), RuntimeError> {
        let context: &Context = self.routine.context();
        for (at, leaf) in leaves.iter().enumerate() {
            let name = lower::argument_name(at);
            let value = leaf.node.value.get().expect("arguments have been computed");
            // An argument that is not used is no part of the program: nothing is done.
            match (value.on_host(), value.on(session)) {
                (Some(array), _) => {
                    context.upload(&name, array)?;
                }
                (None, Some(found)) => {
                    context.copy_from(&name, &session.root().with_array(&name, &found, VALUE)?)?;
                }
                (None, None) => {
                    context.upload(&name, value.array()?)?;
                }
            }
        }
        Ok(())
    }
}

impl<I, O: Outcome> std::fmt::Debug for Jit<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jit({})", self.name)
    }
}
