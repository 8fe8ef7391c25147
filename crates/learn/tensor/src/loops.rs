//! The loops of what is computed: to look at, and to shape.

use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Mark, Tensor};
use crate::ops::failure;
use crate::session::{Compiled, Session};
use loopwright_compile::Program;
use loopwright_looptree::{
    Plan, Schedule, parse_mutation, parse_schedule_file, print_schedule, print_tree,
};
use loopwright_runtime::{Code, CodeOptions};
use loopwright_text::{Diagnostic, Source};
use std::panic::Location;
use std::sync::Arc;

/// A compiled program over tensors: every stage of it as text, and how it runs.
///
/// [`Tensor::loops`] and [`loops`] give that of tensors, [`Jit::loops`](crate::Jit::loops) that of a function. A schedule
/// that is set belongs to the program on this session: whatever computes the same formulas over the same shapes
/// runs by it from then on. It never changes a value, but for the rounding of float sums that are added in another
/// order.
///
/// ```
/// # use loopwright_interp as _;
/// use loopwright_tensor::{Session, Tensor, jit};
///
/// # Session::new("interp").unwrap().scope(|| {
/// let product = jit("product", |(a, b): &(Tensor, Tensor)| (a * b).sum("k").label("c"));
/// let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).named(["i", "k"]);
/// let b = Tensor::from([[1.0f32, 1.0], [0.0, 1.0]]).named(["k", "j"]);
/// let loops = product.loops(&(a.clone(), b.clone()))?;
/// assert_eq!(loops.schedule(), "loopwright schedule 1\nc: i, j, k\n");
///
/// let loops = loops.set_schedule("loopwright schedule 1\nc: i, k, j\n")?;
/// assert_eq!(loops.tree(), "\
/// loopwright tree 1
/// for i {
///   for k {
///     for j {
///       c
///     }
///   }
/// }
/// ");
/// assert_eq!(product.call(&(a, b))?.to_vec::<f32>()?, [1.0, 3.0, 3.0, 7.0]);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// # }).unwrap();
/// ```
///
/// Tensors are called by their labels ([`Tensor::label`]), results without one `y0`, `y1`, .., everything else by a
/// number (`%3`). What is given is called `a0`, `a1`, .. if it is an argument, `v0`, .. if it is a variable and `x0`, ..
/// if it is a value. Axes keep their names; those without one are called `d0`, `d1`, ..
#[derive(Clone)]
pub struct Loops {
    session: Session,
    compiled: Arc<Compiled>,
    code: Code,
}

/// The loops that compute tensors, all in one program, which is compiled now if it has not been, and not run.
///
/// # Errors
/// What is wrong with the tensors, and [`ErrorKind::Argument`] for one whose value is there already.
#[track_caller]
pub fn loops(tensors: &[Tensor]) -> Result<Loops, TensorError> {
    let place = Location::caller();
    let refuse = |reason: &str| {
        let (op, reason) = ("loops".to_owned(), reason.to_owned());
        Err(TensorError::at(ErrorKind::Argument { op, reason }, place))
    };
    if tensors.is_empty() {
        return refuse("there is nothing to compute");
    }
    for tensor in tensors {
        tensor.check()?;
        let is_constant = matches!(tensor.node.kind, Kind::Constant(_));
        if is_constant || tensor.node.value.get().is_some() {
            return refuse(
                "the value is there already, so nothing is computed; ask before it is, or for the loops of a `jit` function",
            );
        }
    }
    let session = Session::current().map_err(|error| TensorError::at(error.into(), place))?;
    let compiled = session.compiled_for(tensors, place)?;
    Ok(Loops::new(&session, &compiled))
}

impl Tensor {
    /// The loops that compute this tensor: see [`loops`].
    ///
    /// # Errors
    /// As [`loops`].
    #[track_caller]
    pub fn loops(&self) -> Result<Loops, TensorError> {
        loops(std::slice::from_ref(self))
    }

    /// The same tensor, called so in loops and schedules. A label is a word that is not a letter and a number; others
    /// are left out. If two tensors of a program have the same, the later one is `label_2`.
    #[must_use]
    #[track_caller]
    pub fn label(&self, label: &str) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let kind = Kind::Marked(Mark::Label(label.into()));
        Tensor::make(kind, &[self], self.shape().clone(), self.dtype())
    }
}

impl Loops {
    pub(crate) fn new(session: &Session, compiled: &Arc<Compiled>) -> Loops {
        Loops {
            session: session.clone(),
            code: compiled.code(),
            compiled: Arc::clone(compiled),
        }
    }

    /// The compiled program, with every stage of it for other tools.
    pub fn program(&self) -> &Arc<Program> {
        let program = self.code.program();
        program.expect("tensors are compiled ahead, not when they are linked")
    }

    /// The program in the language of `.lw` files: what schedules speak of.
    pub fn graph(&self) -> String {
        self.program().written().to_string()
    }

    /// How it runs: the text of its schedule.
    pub fn schedule(&self) -> String {
        let program = self.program();
        print_schedule(program.graph(), program.schedule())
    }

    /// The loops that follow from it.
    pub fn tree(&self) -> String {
        let program = self.program();
        print_tree(program.graph(), program.tree())
    }

    /// The kernel that the device is given.
    pub fn kernel(&self) -> String {
        loopwright_kernel::print(&self.program().module())
    }

    /// The code that the device has made of it.
    pub fn code(&self) -> String {
        self.program().code()
    }

    /// What of the schedule was not carried out, and why; what was rewritten.
    pub fn notes(&self) -> &[String] {
        self.program().notes()
    }

    /// Lets the program run by another schedule from now on, and gives the loops that it has then.
    ///
    /// # Errors
    /// [`ErrorKind::Schedule`], with the line underlined, for a text that is no schedule of the program; what the compiler
    /// says.
    #[track_caller]
    pub fn set_schedule(&self, text: &str) -> Result<Loops, TensorError> {
        let source = Source::new("schedule", text);
        let written = self.program().written();
        let file = parse_schedule_file(&source, written);
        let schedule = file.map_err(|error| unreadable(&error, &source))?.schedule;
        Plan::new(written.clone(), schedule.clone()).map_err(|error| refused(error.to_string()))?;
        self.put(schedule)
    }

    /// Changes the schedule by one mutation that keeps every value, such as `split c k 8`, and gives the loops that the
    /// program has then.
    ///
    /// # Errors
    /// [`ErrorKind::Schedule`] for a text that is no mutation, and for one that would change a value, with the dependence
    /// that stands against it.
    #[track_caller]
    pub fn mutate(&self, text: &str) -> Result<Loops, TensorError> {
        let program = self.program();
        let source = Source::new("mutation", text);
        let mutation = parse_mutation(&source, program.graph())
            .map_err(|error| unreadable(&error, &source))?;
        let plan = Plan::new(program.written().clone(), program.schedule().clone());
        let plan = plan.map_err(|error| refused(error.to_string()))?;
        let changed = plan.mutate(&mutation);
        let changed = changed.map_err(|error| refused(error.to_string()))?;
        self.put(changed.plan.schedule().clone())
    }

    /// Lets the program run by the schedule that was made for it again.
    pub fn reset_schedule(&self) -> Loops {
        self.compiled.set(None);
        Loops::new(&self.session, &self.compiled)
    }

    #[track_caller]
    fn put(&self, schedule: Schedule) -> Result<Loops, TensorError> {
        let written = self.program().written();
        let options = CodeOptions {
            schedule: Some(schedule),
            ..CodeOptions::default()
        };
        let name = self.compiled.made().name();
        let code = self.session.device().compile(name, written, &options);
        let code = code.map_err(|error| TensorError::new(error.into()))?;
        self.compiled.set(Some(code.clone()));
        Ok(Loops {
            code,
            ..self.clone()
        })
    }
}

#[track_caller]
fn unreadable(error: &Diagnostic, source: &Source) -> TensorError {
    let text = error.render(source);
    refused(text.trim_start_matches("error: ").trim_end().to_owned())
}

#[track_caller]
fn refused(reason: String) -> TensorError {
    TensorError::new(ErrorKind::Schedule { reason })
}

impl std::fmt::Debug for Loops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Loops").field(&self.code.name()).finish()
    }
}

/// The loops as a tree.
impl std::fmt::Display for Loops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.tree())
    }
}
