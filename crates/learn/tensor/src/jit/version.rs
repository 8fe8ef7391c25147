//! A function as it was traced, with the memory that its calls use.

use super::family::{Family, Sizes};
use crate::buffer::{Buffer, Pin, Remembered, VALUE};
use crate::error::TensorError;
use crate::lower;
use crate::node::Tensor;
use crate::session::{Compiled, Placed, Session};
use crate::shape::{Axis, Shape};
use crate::tree::Tree;
use crate::variable::{self, Variable, hold};
use loopwright_ops::{DType, Op};
use loopwright_runtime::{Context, LinkOptions, Loc, Routine, RuntimeError};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

/// How many routines with memory of their own are kept for calls with other sizes, or with other memory of
/// variables.
const KEPT: usize = 8;

/// How many routines of the same sizes there are before the results of earlier calls, which are still held,
/// are moved out of the way.
const SIDE_BY_SIDE: usize = 2;

/// Arguments of so many bytes, if they are the same as in the call before, are read where they lie. Others are copied to where the
/// routine reads them: to link it to each of them would take more.
const IN_PLACE: usize = 1 << 16;

/// Results up to so many bytes are moved out of the way at once: a second routine would take more.
const SMALL: usize = 1 << 16;

/// The function as it was traced for arguments of certain shapes, on a session's device.
pub(crate) struct Version<O> {
    pub(crate) session: Session,
    pub(crate) family: Family,
    pub(crate) compiled: Arc<Compiled>,
    /// How often its code had changed when the routines were linked.
    pub(crate) changes: u64,
    /// In the order of their names in the program, and whether each is updated.
    pub(crate) variables: Vec<(Variable, bool)>,
    /// The same, each once, in the order of their identities.
    pub(crate) held: Vec<Variable>,
    /// Tensors with values that the function has taken from outside.
    pub(crate) captured: Vec<Tensor>,
    /// What the traced function gave.
    pub(crate) prototype: O,
    pub(crate) results: Vec<(Shape, DType)>,
    /// Linked routines; the one used last is the first.
    pub(crate) instances: Vec<Instance>,
    /// The memory of variables in a call, empty between calls.
    pub(crate) memory: Vec<Buffer>,
    /// The large arguments of the last call.
    pub(crate) last: Vec<Option<Remembered>>,
}

/// A routine with its memory.
pub(crate) struct Instance {
    routine: Routine,
    sizes: Sizes,
    /// Where arguments go; nowhere if they are not used, or are read where they lie.
    arguments: Vec<Option<Context>>,
    /// Where arguments lie that are read there.
    in_place: InPlace<Loc>,
    variables: Vec<Remembered>,
    results: Vec<Buffer>,
    shapes: Vec<Shape>,
    /// Results of earlier calls that are held elsewhere lie where these were.
    places: Vec<Context>,
    _captured: Vec<Pin>,
}

impl<T: Tree> Version<T> {
    /// Runs it with arguments that its family takes.
    #[track_caller]
    pub(crate) fn call(
        &mut self,
        leaves: &[Tensor],
        sizes: &Sizes,
        place: &'static Location<'static>,
    ) -> Result<T, TensorError> {
        let variables = std::mem::take(&mut self.held);
        let held = hold(&variables);
        let called = self.scheduled(leaves, sizes, place);
        drop(held);
        self.held = variables;
        self.memory.clear();
        called
    }

    #[track_caller]
    fn scheduled(
        &mut self,
        leaves: &[Tensor],
        sizes: &Sizes,
        place: &'static Location<'static>,
    ) -> Result<T, TensorError> {
        let lift = |error: RuntimeError| TensorError::at(error.into(), place);
        variable::place(&self.session, &self.variables)?;
        let placed = self.variables.iter().map(|(variable, _)| {
            let memory = variable.memory();
            memory.expect("a variable that was placed has memory")
        });
        self.memory.extend(placed);
        let steady = self.steady(leaves).map_err(lift)?;
        let at = self.free_instance(sizes, &steady, place)?;
        // The one used last comes first.
        self.instances[..=at].rotate_right(1);
        let instance = &self.instances[0];
        instance.give(&self.session, leaves).map_err(lift)?;
        instance.routine.schedule(&[]).map_err(lift)?;
        for (buffer, (_, updated)) in self.memory.iter().zip(&self.variables) {
            if *updated {
                buffer.is_overwritten(&self.session);
            }
        }
        let mut at = 0;
        Ok(self.prototype.replace(&mut |_| {
            let (buffer, shape) = (&instance.results[at], &instance.shapes[at]);
            at += 1;
            buffer.is_overwritten(&self.session);
            Tensor::of_buffer(buffer.clone(), shape.clone())
        }))
    }

    /// Where the large arguments lie that are the same as in the call before.
    fn steady(&mut self, leaves: &[Tensor]) -> Result<InPlace<Context>, RuntimeError> {
        self.last.resize_with(leaves.len(), || None);
        let mut steady = InPlace::with_capacity(leaves.len());
        for (leaf, last) in leaves.iter().zip(&mut self.last) {
            let sizes = leaf.shape().axes().iter().map(Axis::known);
            let elements: Option<usize> = sizes.product();
            if elements.unwrap_or(0) * leaf.dtype().bytes() < IN_PLACE {
                steady.push(None);
                continue;
            }
            let value = leaf.node.value.get().expect("arguments have been computed");
            steady.push(match last {
                Some(last) if last.is(value) => value.placed(&self.session)?,
                _ => {
                    *last = Some(value.remembered());
                    None
                }
            });
        }
        Ok(steady)
    }

    /// A routine for these sizes that is linked to the memory of variables and of steady arguments, and nobody holds whose
    /// results.
    #[track_caller]
    fn free_instance(
        &mut self,
        sizes: &Sizes,
        steady: &InPlace<Context>,
        place: &'static Location<'static>,
    ) -> Result<usize, TensorError> {
        let memory = &self.memory;
        let is_linked = |instance: &Instance| {
            let mut pairs = instance.variables.iter().zip(memory);
            pairs.all(|(known, now)| known.is(now))
        };
        // Variables that were set have new memory for good.
        self.instances.retain(is_linked);
        let changes = self.compiled.changes();
        if changes != self.changes {
            self.instances.clear();
            self.changes = changes;
        }
        let wanted: InPlace<Loc> = steady.iter().map(|place| place.as_ref().map(loc)).collect();
        let alike = |instance: &Instance| instance.sizes == *sizes && instance.in_place == wanted;
        let free = |instance: &Instance| alike(instance) && !instance.is_held();
        if let Some(at) = self.instances.iter().position(free) {
            return Ok(at);
        }
        let count = self.instances.iter().filter(|one| alike(one)).count();
        for at in 0..self.instances.len() {
            let instance = &mut self.instances[at];
            let move_away = instance.bytes() <= SMALL || count >= SIDE_BY_SIDE;
            if alike(instance) && move_away && instance.empty(&self.session, place)? {
                return Ok(at);
            }
        }
        let linked = self.link(sizes, steady, wanted);
        let instance = linked.map_err(|error| TensorError::at(error.into(), place))?;
        if self.instances.len() >= KEPT
            && let Some(oldest) = self.instances.iter().rposition(|one| !one.is_held())
        {
            self.instances.remove(oldest);
        }
        // Arguments that are no longer given should not stay for the sake of a routine.
        let is_left = |one: &Instance| {
            let reads_others = one.in_place.iter().any(Option::is_some);
            reads_others && one.in_place != instance.in_place && !one.is_held()
        };
        self.instances.retain(|one| !is_left(one));
        self.instances.push(instance);
        Ok(self.instances.len() - 1)
    }

    fn link(
        &self,
        sizes: &Sizes,
        steady: &InPlace<Context>,
        in_place: InPlace<Loc>,
    ) -> Result<Instance, RuntimeError> {
        let Placed {
            mut context,
            missing,
            pins,
        } = self.session.place(self.captured.iter())?;
        for (at, buffer) in self.memory.iter().enumerate() {
            let memory = buffer
                .on(&self.session)
                .expect("a variable was moved to the device");
            context = context.with_array(&lower::variable_name(at), &memory, VALUE)?;
        }
        for (at, found) in steady.iter().enumerate() {
            if let Some(found) = found {
                context = context.with_array(&lower::argument_name(at), found, VALUE)?;
            }
        }
        let names: Vec<String> = (0..sizes.len()).map(lower::size_name).collect();
        let sized: Vec<(&str, i64)> = names
            .iter()
            .map(String::as_str)
            .zip(sizes.iter().copied())
            .collect();
        let options = LinkOptions {
            sizes: &sized,
            prior: &[],
        };
        let routine = context.link(&self.compiled.code(), &options)?;
        let linked = routine.context();
        self.session.upload(linked, &missing)?;
        let alone = |name: &str| self.session.root().with_array(VALUE, linked, name);
        let mut arguments = Vec::new();
        for at in 0..self.family.count() {
            let name = lower::argument_name(at);
            // One that is not used is no part of the program.
            let is_there = in_place.get(at).is_some_and(Option::is_some);
            let used = !is_there && linked.node(&name).is_some();
            arguments.push(if used { Some(alone(&name)?) } else { None });
        }
        let (mut results, mut places, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (shape, dtype)) in self.results.iter().enumerate() {
            let place = alone(&lower::output_name(at))?;
            results.push(Buffer::of_context(&self.session, place.clone(), *dtype));
            places.push(place);
            shapes.push(self.family.at(shape, sizes));
        }
        Ok(Instance {
            sizes: sizes.clone(),
            in_place,
            arguments,
            variables: self.memory.iter().map(Buffer::remembered).collect(),
            results,
            shapes,
            places,
            _captured: pins,
            routine,
        })
    }
}

/// Something for each argument that is read where it lies.
type InPlace<T> = SmallVec<[Option<T>; 8]>;

/// Where the value of a context lies.
fn loc(context: &Context) -> Loc {
    let loc = context.loc(VALUE);
    loc.expect("the context was made with the value")
}

impl Instance {
    /// Whether someone holds results of an earlier call.
    fn is_held(&self) -> bool {
        self.results.iter().any(Buffer::is_shared)
    }

    /// How long its results are.
    fn bytes(&self) -> usize {
        let bytes = |place: &Context| place.node(VALUE).map_or(0, |node| node.bytes);
        self.places.iter().map(bytes).sum()
    }

    /// Moves results of an earlier call that are held out of the way; `false` where one has to stay.
    fn empty(
        &mut self,
        session: &Session,
        place: &'static Location<'static>,
    ) -> Result<bool, TensorError> {
        for (at, buffer) in self.results.iter_mut().enumerate() {
            if !buffer.is_shared() {
                continue;
            }
            let dtype = buffer.dtype();
            let shape = &self.shapes[at];
            let moved = buffer.move_away(session, |from| {
                let here = Buffer::of_context(session, from, dtype);
                let copy = Tensor::map(Op::Copy, &[&Tensor::of_buffer(here, shape.clone())]);
                session.realize(std::slice::from_ref(&copy), place)?;
                let value = copy.node.value.get().expect("it has been computed");
                Ok::<_, TensorError>(value.on(session).expect("it was computed there"))
            })?;
            if !moved {
                return Ok(false);
            }
            *buffer = Buffer::of_context(session, self.places[at].clone(), dtype);
        }
        Ok(true)
    }

    /// Moves arguments to where the routine reads them.
    fn give(&self, session: &Session, leaves: &[Tensor]) -> Result<(), RuntimeError> {
        for (leaf, to) in leaves.iter().zip(&self.arguments) {
            let Some(to) = to else { continue };
            let value = leaf.node.value.get().expect("arguments have been computed");
            value.copy_to(session, to)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::jit;
    use loopwright_interp as _;

    /// Where a variable lies.
    fn place(variable: &Variable, session: &Session) -> Loc {
        variable::place(session, &[(variable.clone(), false)]).expect("it has a value");
        let memory = variable.memory().expect("it was placed");
        let context = memory.on(session).expect("it was moved there");
        context.node(VALUE).expect("it is called so").loc
    }

    #[test]
    fn a_variable_stays_where_it_is() {
        let session = Session::new("interp").expect("the interpreter works everywhere");
        session.scope(|| {
            let total = Variable::new(&Tensor::from([1.0f32, 2.0]));
            let add = jit("add", {
                let total = total.clone();
                move |x: &Tensor| total.set(&(total.get() + x))
            });
            let x = Tensor::from([1.0f32, 1.0]);
            let call = || add.call(&x).expect("it is well formed");
            call();
            let first = place(&total, &session);
            call();
            call();
            assert_eq!(place(&total, &session), first);
            // Set from outside, it stays, too.
            let set = |value: &Tensor| total.set(value).expect("it fits");
            set(&Tensor::from([10.0f32, 20.0]));
            call();
            assert_eq!(place(&total, &session), first);
            assert_eq!(total.get().to_f64().expect("it has a value"), [11.0, 21.0]);
            set(&(total.get() * 2.0));
            call();
            assert_eq!(total.get().to_f64().expect("it has a value"), [23.0, 43.0]);
            // A value that someone holds stays, and the variable moves.
            let snapshot = total.get();
            call();
            assert_ne!(place(&total, &session), first);
            assert_eq!(snapshot.to_f64().expect("it has a value"), [23.0, 43.0]);
            assert_eq!(total.get().to_f64().expect("it has a value"), [24.0, 44.0]);
        });
    }

    #[test]
    fn routines_for_many_sizes_are_not_all_kept() {
        let session = Session::new("interp").expect("the interpreter works everywhere");
        session.scope(|| {
            let double = jit("double", |x: &Tensor| x + x).dynamic(0, 0);
            for size in 1..3 * KEPT {
                let x = Tensor::from(vec![1.5f32; size]);
                let sum = double.call(&x).expect("it is well formed");
                assert_eq!(sum.to_f64().expect("it has a value"), vec![3.0; size]);
            }
            assert_eq!(double.reports().len(), 1);
            let versions = double.versions.lock().expect("nobody panicked");
            assert_eq!(versions[0].instances.len(), KEPT);
        });
    }
}
