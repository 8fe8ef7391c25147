//! Variables: tensors that keep their place and change their value.

use crate::buffer::Buffer;
use crate::error::{ErrorKind, TensorError};
use crate::node::{Node, Tensor};
use crate::ops::realize;
use crate::session::Session;
use crate::shape::Shape;
use crate::size;
use crate::trace;
use loopwright_ops::{DType, Op};
use loopwright_runtime::RuntimeError;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// A variable's identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VariableId(u64);

impl VariableId {
    /// A number that no other variable of this process has.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A tensor with a value that can be set: a parameter, a moment of an optimiser, a counter.
///
/// In a function made by [`jit`](crate::jit()) a variable is updated in place, in the same memory in every
/// call. Its shape may have sizes that are inferred from use; the first value is computed when they are
/// known. Clones are the same variable.
#[derive(Clone)]
pub struct Variable {
    shared: Arc<Shared>,
}

struct Shared {
    id: VariableId,
    shape: Shape,
    dtype: DType,
    value: Mutex<Value>,
    /// Whether a call is under way that uses its memory: see [`hold`].
    held: Mutex<bool>,
    let_go: Condvar,
}

enum Value {
    /// The first value as a formula.
    Formula(Tensor),
    /// Where it lies, and the tensor that last stood for it: as long as somebody has that one, it is the
    /// one that everybody gets, so that gradients know it again.
    Memory(Buffer, Weak<Node>),
}

impl Value {
    fn in_memory(buffer: Buffer) -> Value {
        Value::Memory(buffer, Weak::new())
    }
}

impl Variable {
    /// A variable with a first value.
    pub fn new(first: &Tensor) -> Variable {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Variable {
            shared: Arc::new(Shared {
                id: VariableId(NEXT.fetch_add(1, Ordering::Relaxed)),
                shape: first.shape().clone(),
                dtype: first.dtype(),
                value: Mutex::new(Value::Formula(first.clone())),
                held: Mutex::new(false),
                let_go: Condvar::new(),
            }),
        }
    }

    /// Its identity.
    pub fn id(&self) -> VariableId {
        self.shared.id
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shared.shape
    }

    /// Its elements' type.
    pub fn dtype(&self) -> DType {
        self.shared.dtype
    }

    fn value(&self) -> MutexGuard<'_, Value> {
        self.shared
            .value
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The value at this point.
    #[track_caller]
    pub fn get(&self) -> Tensor {
        if let Some(traced) = trace::read(self) {
            return traced;
        }
        let _held = hold(std::slice::from_ref(self));
        match &mut *self.value() {
            Value::Formula(tensor) => tensor.clone(),
            Value::Memory(buffer, last) => match last.upgrade() {
                Some(node) => Tensor { node },
                None => {
                    let tensor = Tensor::of_buffer(buffer.clone(), self.shape().clone());
                    *last = Arc::downgrade(&tensor.node);
                    tensor
                }
            },
        }
    }

    /// Sets the value: at once, or in a function that is traced, when that is called.
    ///
    /// # Errors
    /// [`ErrorKind::Shapes`] where the value is not shaped as the variable, and whatever is wrong with it.
    #[track_caller]
    pub fn set(&self, value: &Tensor) -> Result<(), TensorError> {
        assign(&[(self, value.clone())])
    }

    #[track_caller]
    fn fits(&self, value: &Tensor) -> Result<(), TensorError> {
        value.check()?;
        let pairs = self.shape().axes().iter().zip(value.shape().axes());
        let same = self.shape().rank() == value.rank()
            && self.dtype() == value.dtype()
            && pairs
                .into_iter()
                .all(|(a, b)| size::equate(&a.size, &b.size));
        if same {
            return Ok(());
        }
        Err(TensorError::new(ErrorKind::Shapes {
            op: "set".to_owned(),
            left: format!("{}{}", self.dtype(), self.shape()),
            right: format!("{}{}", value.dtype(), value.shape()),
            reason: "a variable keeps its dtype and shape".to_owned(),
        }))
    }

    /// Whether it lies in memory of its own on a session's device, which is free to be overwritten if it is to be.
    fn is_placed(&self, session: &Session, overwritten: bool) -> bool {
        match &*self.value() {
            // The variable's own handle is one.
            Value::Memory(buffer, _) => {
                buffer.on(session).is_some() && !(overwritten && buffer.is_shared())
            }
            Value::Formula(_) => false,
        }
    }

    /// The memory it lies in, if it has a value.
    pub(crate) fn memory(&self) -> Option<Buffer> {
        match &*self.value() {
            Value::Memory(buffer, _) => Some(buffer.clone()),
            Value::Formula(_) => None,
        }
    }
}

/// Gives variables memory of their own on a session's device; beside each it is said whether it is to be overwritten.
/// First values are computed, and values that others hold are copied, all in one program.
#[track_caller]
pub(crate) fn place(session: &Session, variables: &[(Variable, bool)]) -> Result<(), TensorError> {
    let missing =
        |(variable, overwritten): &&(Variable, bool)| !variable.is_placed(session, *overwritten);
    if variables.iter().find(missing).is_none() {
        return Ok(());
    }
    let missing: Vec<&Variable> = variables
        .iter()
        .filter(missing)
        .map(|(variable, _)| variable)
        .collect();
    // A result of a program has memory of its own.
    let copy = |variable: &&Variable| {
        let value = match &*variable.value() {
            Value::Formula(tensor) => tensor.clone(),
            Value::Memory(buffer, _) => Tensor::of_buffer(buffer.clone(), variable.shape().clone()),
        };
        Tensor::map(Op::Copy, &[&value])
    };
    let copies: Vec<Tensor> = missing.iter().map(copy).collect();
    session.realize(&copies, Location::caller())?;
    for (variable, copy) in missing.into_iter().zip(copies) {
        let computed = copy.node.value.get().expect("it has been computed");
        *variable.value() = Value::in_memory(computed.clone());
    }
    Ok(())
}

/// Variables that nobody else reads or sets.
pub(crate) struct Held<'a>(&'a [Variable]);

/// Waits until nobody else holds any of these variables, and holds them. A call decides whether a value is
/// to be copied, and then schedules what overwrites it: in between no other thread may take the value.
///
/// They are in the order of their identities, so that no two threads wait for each other.
pub(crate) fn hold(variables: &[Variable]) -> Held<'_> {
    debug_assert!(variables.is_sorted_by_key(Variable::id));
    for variable in variables {
        let shared = &variable.shared;
        let held = shared.held.lock().unwrap_or_else(PoisonError::into_inner);
        let free = shared.let_go.wait_while(held, |held| *held);
        *free.unwrap_or_else(PoisonError::into_inner) = true;
    }
    Held(variables)
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for variable in self.0 {
            let held = variable.shared.held.lock();
            *held.unwrap_or_else(PoisonError::into_inner) = false;
            variable.shared.let_go.notify_one();
        }
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variable({}{})", self.dtype(), self.shape())
    }
}

/// Sets several variables, computing all values in one program.
///
/// # Errors
/// As [`Variable::set`]; no variable is changed then.
#[track_caller]
pub fn assign(values: &[(&Variable, Tensor)]) -> Result<(), TensorError> {
    if trace::is_mapped() {
        return Err(TensorError::new(ErrorKind::Argument {
            op: "set".to_owned(),
            reason: "a variable cannot be set in a function that `vmap` maps, where it would have a value for each example; give the value back as a result, and set the variable outside".to_owned(),
        }));
    }
    for (variable, value) in values {
        variable.fits(value)?;
    }
    if trace::is_on() {
        for (variable, value) in values {
            trace::set(variable, value);
        }
        return Ok(());
    }
    let tensors: Vec<Tensor> = values.iter().map(|(_, value)| value.clone()).collect();
    realize(&tensors)?;
    let lift = |error: RuntimeError| TensorError::new(error.into());
    let session = Session::current().map_err(lift)?;
    for ((variable, _), tensor) in values.iter().zip(tensors) {
        let _held = hold(std::slice::from_ref(*variable));
        let new = tensor.node.value.get().expect("it has been computed");
        let mut value = variable.value();
        // Functions that are linked to its memory go on with that, if nobody else needs what is there.
        let filled = match &*value {
            Value::Memory(old, _) => old.fill(&session, new).map_err(lift)?,
            Value::Formula(_) => false,
        };
        if !filled {
            *value = Value::in_memory(new.clone());
        }
    }
    Ok(())
}
