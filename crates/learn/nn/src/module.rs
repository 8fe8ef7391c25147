//! Modules: things with parameters, which are found by name.

use loopwright_tensor::{Tensor, Variable};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Something with parameters: a layer, a network. `#[derive(Module)]` implements it for structs of such
/// things.
pub trait Module {
    /// Shows all parameters and states to a collector.
    fn collect(&self, found: &mut Collector);

    /// All parameters and states, with the names of their fields joined by dots.
    fn entries(&self) -> Vec<Entry> {
        let mut collector = Collector::default();
        self.collect(&mut collector);
        collector.found
    }

    /// The parameters that are trained, in order: those that are not frozen.
    fn parameters(&self) -> Vec<Parameter> {
        let trained = self
            .entries()
            .into_iter()
            .filter_map(|entry| match entry.part {
                Part::Parameter(parameter) if !parameter.is_frozen() => Some(parameter),
                Part::Parameter(_) | Part::State(_) => None,
            });
        let mut parameters: Vec<Parameter> = Vec::new();
        for parameter in trained {
            // One that stands in two places is trained once.
            if !parameters
                .iter()
                .any(|other| other.variable().id() == parameter.variable().id())
            {
                parameters.push(parameter);
            }
        }
        parameters
    }

    /// Freezes all parameters, or lets them be trained again.
    fn freeze(&self, frozen: bool) {
        for entry in self.entries() {
            if let Part::Parameter(parameter) = entry.part {
                parameter.freeze(frozen);
            }
        }
    }

    /// How many numbers are trained, as far as their shapes are known yet.
    fn count(&self) -> usize {
        let sizes = self
            .parameters()
            .into_iter()
            .map(|p| p.variable().shape().elements().unwrap_or(0));
        sizes.sum()
    }
}

/// What a module's fields are shown to.
#[derive(Default)]
pub struct Collector {
    path: Vec<String>,
    found: Vec<Entry>,
}

impl Collector {
    /// Shows a field.
    pub fn field(&mut self, name: &str, module: &(impl Module + ?Sized)) {
        self.path.push(name.to_owned());
        module.collect(self);
        self.path.pop();
    }

    fn push(&mut self, part: Part) {
        self.found.push(Entry {
            name: self.path.join("."),
            part,
        });
    }
}

/// A parameter or a state of a module, and where it is.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The names of the fields that lead to it, joined by dots.
    pub name: String,
    /// What is there.
    pub part: Part,
}

impl Entry {
    /// The variable that has the value.
    pub fn variable(&self) -> &Variable {
        match &self.part {
            Part::Parameter(parameter) => parameter.variable(),
            Part::State(state) => state.variable(),
        }
    }
}

/// A value that a module keeps.
#[derive(Clone, Debug)]
pub enum Part {
    /// It is trained.
    Parameter(Parameter),
    /// It changes otherwise: a running mean, a counter of random numbers.
    State(State),
}

/// A value that is trained.
#[derive(Clone, Debug)]
pub struct Parameter {
    variable: Variable,
    frozen: Arc<AtomicBool>,
}

impl Parameter {
    /// A parameter with a first value.
    pub fn new(first: &Tensor) -> Parameter {
        Parameter {
            variable: Variable::new(first),
            frozen: Arc::default(),
        }
    }

    /// The value at this point.
    #[track_caller]
    pub fn get(&self) -> Tensor {
        self.variable.get()
    }

    /// The variable that has the value.
    pub fn variable(&self) -> &Variable {
        &self.variable
    }

    /// Whether it is left out of training.
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed)
    }

    /// Leaves it out of training, or takes it in again. Functions that are compiled already stay as they are.
    pub fn freeze(&self, frozen: bool) {
        self.frozen.store(frozen, Ordering::Relaxed);
    }
}

/// A value that a module keeps and does not train.
#[derive(Clone, Debug)]
pub struct State {
    variable: Variable,
}

impl State {
    /// A state with a first value.
    pub fn new(first: &Tensor) -> State {
        State {
            variable: Variable::new(first),
        }
    }

    /// A variable as a state.
    pub fn of(variable: Variable) -> State {
        State { variable }
    }

    /// The value at this point.
    #[track_caller]
    pub fn get(&self) -> Tensor {
        self.variable.get()
    }

    /// The variable that has the value.
    pub fn variable(&self) -> &Variable {
        &self.variable
    }
}

impl Module for Parameter {
    fn collect(&self, found: &mut Collector) {
        found.push(Part::Parameter(self.clone()));
    }
}

impl Module for State {
    fn collect(&self, found: &mut Collector) {
        found.push(Part::State(self.clone()));
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn collect(&self, found: &mut Collector) {
        (**self).collect(found);
    }
}

impl<M: Module + ?Sized> Module for Arc<M> {
    fn collect(&self, found: &mut Collector) {
        (**self).collect(found);
    }
}

impl<M: Module> Module for Option<M> {
    fn collect(&self, found: &mut Collector) {
        if let Some(module) = self {
            module.collect(found);
        }
    }
}

impl<M: Module> Module for Vec<M> {
    fn collect(&self, found: &mut Collector) {
        self.as_slice().collect(found);
    }
}

impl<M: Module> Module for [M] {
    fn collect(&self, found: &mut Collector) {
        for (at, module) in self.iter().enumerate() {
            found.field(&at.to_string(), module);
        }
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn collect(&self, found: &mut Collector) {
        self.as_slice().collect(found);
    }
}

macro_rules! tuples {
    ($($($name:ident $at:tt)*;)*) => {
        $(impl<$($name: Module),*> Module for ($($name,)*) {
            fn collect(&self, found: &mut Collector) {
                $(found.field(stringify!($at), &self.$at);)*
            }
        })*
    };
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
}

macro_rules! plain {
    ($($type:ty)*) => {
        $(impl Module for $type {
            /// Plain values are no parameters.
            fn collect(&self, _: &mut Collector) {}
        })*
    };
}

plain! { () bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 String AtomicBool AtomicUsize }
