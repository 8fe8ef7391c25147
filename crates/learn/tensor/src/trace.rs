//! Functions while they are traced: what they read and set of variables.

use crate::node::{Kind, Tensor};
use crate::variable::Variable;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What a function has done with variables so far.
pub(crate) struct Trace {
    name: Arc<str>,
    variables: Vec<Traced>,
}

/// A variable in a traced function.
struct Traced {
    variable: Variable,
    /// Its value when the function begins.
    before: Tensor,
    /// Its value when the function ends, if it is set.
    after: Option<Tensor>,
}

thread_local! {
    static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) };
    /// How many functions that are mapped over an axis are inside each other.
    static MAPPED: Cell<usize> = const { Cell::new(0) };
    /// Whether the step of a loop is traced.
    static SCANNED: Cell<bool> = const { Cell::new(false) };
}

/// The name of the function that is traced on this thread.
pub(crate) fn name() -> String {
    let traced = TRACE.with_borrow(|trace| trace.as_ref().map(|trace| trace.name.to_string()));
    let mapped = || if is_mapped() { "vmap" } else { "a function" };
    traced.unwrap_or_else(|| mapped().to_owned())
}

/// Whether a function is traced on this thread.
pub(crate) fn is_on() -> bool {
    TRACE.with_borrow(Option::is_some)
}

/// Whether a function is mapped over an axis on this thread: it is called with tensors that stand for one
/// example.
pub(crate) fn is_mapped() -> bool {
    MAPPED.get() > 0
}

/// Runs a function that is mapped over an axis.
pub(crate) fn mapped<T>(run: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            MAPPED.set(MAPPED.get() - 1);
        }
    }
    MAPPED.set(MAPPED.get() + 1);
    let _leave = Leave;
    run()
}

/// Whether the step of a loop is traced on this thread.
pub(crate) fn is_scanned() -> bool {
    SCANNED.get()
}

/// Runs the step of a loop with tensors that stand for those of one step.
pub(crate) fn scanned<T>(run: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            SCANNED.set(false);
        }
    }
    SCANNED.set(true);
    let _leave = Leave;
    mapped(run)
}

/// Whether there are tensors on this thread that stand for arguments of a function, and have no values.
pub(crate) fn has_stand_ins() -> bool {
    is_on() || is_mapped()
}

/// Runs a function and notes what it does with variables.
pub(crate) fn record<T>(name: Arc<str>, run: impl FnOnce() -> T) -> (T, Trace) {
    struct Clear;
    impl Drop for Clear {
        fn drop(&mut self) {
            TRACE.with_borrow_mut(|trace| *trace = None);
        }
    }
    TRACE.with_borrow_mut(|trace| {
        *trace = Some(Trace {
            name,
            variables: Vec::new(),
        })
    });
    let _clear = Clear;
    let value = run();
    let trace = TRACE
        .with_borrow_mut(Option::take)
        .expect("it was set, and nested functions are part of it");
    (value, trace)
}

/// The value of a variable at this point of the function that is traced; `None` if none is.
#[track_caller]
pub(crate) fn read(variable: &Variable) -> Option<Tensor> {
    TRACE.with_borrow_mut(|trace| {
        let traced = trace.as_mut()?.entry(variable);
        Some(traced.after.as_ref().unwrap_or(&traced.before).clone())
    })
}

/// Sets a variable in the function that is traced; `false` if none is.
#[track_caller]
pub(crate) fn set(variable: &Variable, value: &Tensor) -> bool {
    TRACE.with_borrow_mut(|trace| match trace {
        Some(trace) => {
            trace.entry(variable).after = Some(value.clone());
            true
        }
        None => false,
    })
}

/// Runs a part of the function that is traced with other values in the place of variables; with what it has
/// set them to, and the variables themselves as they were before.
#[track_caller]
pub(crate) fn with_values<T>(
    variables: &[Variable],
    values: &[Tensor],
    run: impl FnOnce() -> T,
) -> (T, Vec<Option<Tensor>>) {
    let exchange = |variable: &Variable, value: Option<Tensor>| {
        TRACE.with_borrow_mut(|trace| {
            let trace = trace.as_mut().expect("a function is traced");
            std::mem::replace(&mut trace.entry(variable).after, value)
        })
    };
    let pairs = || variables.iter().zip(values);
    let before: Vec<Option<Tensor>> = pairs()
        .map(|(variable, value)| exchange(variable, Some(value.clone())))
        .collect();
    let result = run();
    let after = pairs().zip(before).map(|((variable, value), before)| {
        exchange(variable, before).filter(|after| !after.same(value))
    });
    (result, after.collect())
}

impl Trace {
    /// The variables that were read or set.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().map(|traced| &traced.variable)
    }

    /// The variable that a tensor is the first value of.
    pub(crate) fn of(&self, before: &Tensor) -> Option<&Variable> {
        let Kind::Variable(id) = before.node.kind else {
            return None;
        };
        let mut traced = self.variables.iter();
        let found = traced.find(|traced| traced.variable.id() == id)?;
        // It may be that of an earlier trace.
        found.before.same(before).then_some(&found.variable)
    }

    /// Variables that are set to something else than they were, as pairs of the old and the new value.
    pub(crate) fn updates(&self) -> Vec<(Tensor, Tensor)> {
        let updated = self.variables.iter().filter_map(|traced| {
            let after = traced.after.as_ref()?;
            let is_new = !after.same(&traced.before);
            is_new.then(|| (traced.before.clone(), after.clone()))
        });
        updated.collect()
    }

    #[track_caller]
    fn entry(&mut self, variable: &Variable) -> &mut Traced {
        let found = self
            .variables
            .iter()
            .position(|traced| traced.variable.id() == variable.id());
        let at = found.unwrap_or_else(|| {
            let kind = Kind::Variable(variable.id());
            let before = Tensor::make(kind, &[], variable.shape().clone(), variable.dtype());
            self.variables.push(Traced {
                variable: variable.clone(),
                before,
                after: None,
            });
            self.variables.len() - 1
        });
        &mut self.variables[at]
    }
}
