//! Changes of plans: a method for each, all of which go through the text of the change.

use super::errors;
use super::node::PyNode;
use super::plan::PyPlan;
use super::symbols;
use super::tree::PyPlace;
use super::value::PyValue;
use loopwright_looptree::{
    Annotation, MUTATIONS, Mutation, for_sharers, maximise_reuse, print_mutation, unroll_inner,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// A node's name as changes say it, in quotes where it is no word.
fn node_text(given: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = if let Ok(name) = given.cast::<PyString>() {
        name.to_string_lossy().into_owned()
    } else if given.is_instance_of::<PyValue>() || given.is_instance_of::<PyNode>() {
        let name: String = given.getattr("name")?.extract()?;
        if name.is_empty() {
            return Err(PyValueError::new_err(
                "this value has no name, and a plan speaks of nodes by theirs; `value.named(\"..\")` gives it one",
            ));
        }
        name
    } else if let Ok(place) = given.cast::<PyPlace>() {
        place.getattr("name")?.extract()?
    } else {
        return Err(PyTypeError::new_err(
            "a step is said by its name, or by a value that has one",
        ));
    };
    Ok(quoted(&name))
}

fn quoted(name: &str) -> String {
    const WORDS: [&str; 9] = [
        "if", "else", "inf", "nan", "true", "false", "index", "for", "at",
    ];
    let mut letters = name.chars();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let word = first && letters.all(|c| c.is_ascii_alphanumeric() || "_'.".contains(c));
    let number = name
        .strip_prefix('%')
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric()));
    match (word && !WORDS.contains(&name)) || number {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// A loop as changes say it: `"i/8"`, a symbol, a pair of a dimension and a step, or a place that is one. A text may have an
/// annotation behind it, for changes that make loops.
fn loop_text(given: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_string_lossy();
        let known = |word: &str| {
            Annotation::ALL
                .iter()
                .any(|annotation| annotation.name() == word)
        };
        let (text, annotation) = match text.trim().rsplit_once(' ') {
            Some((name, word)) if known(word) => (name.trim().to_owned(), format!(" {word}")),
            _ => (text.trim().to_owned(), String::new()),
        };
        return Ok(match text.rsplit_once('/') {
            Some((dim, step)) if step.parse::<i64>().is_ok() => {
                format!("{}/{step}{annotation}", quoted(dim))
            }
            _ => format!("{}{annotation}", quoted(&text)),
        });
    }
    if given.is_instance_of::<PyPlace>() {
        return loop_text(&given.getattr("name")?);
    }
    if let Ok(pair) = given.cast::<PyTuple>()
        && pair.len() == 2
    {
        let step: i64 = pair.get_item(1)?.extract()?;
        return Ok(format!("{}/{step}", loop_text(&pair.get_item(0)?)?));
    }
    symbols::symbol_of(given).map(|symbol| quoted(&symbols::name_of(symbol)))
}

fn loop_list(given: &[Bound<'_, PyAny>]) -> PyResult<String> {
    let names: Vec<String> = given.iter().map(loop_text).collect::<PyResult<_>>()?;
    Ok(names.join(", "))
}

impl PyPlan {
    fn changed(&self, mutation: &Mutation) -> PyResult<PyPlan> {
        let changed = self.plan.mutate(mutation).map_err(errors::mutation)?;
        let mut plan = PyPlan::new(changed.plan.clone(), self.target.clone());
        plan.from = Some((self.number, changed));
        Ok(plan)
    }

    fn change(&self, text: &str) -> PyResult<PyPlan> {
        self.changed(&self.mutation(text)?)
    }
}

#[pymethods]
impl PyPlan {
    /// A change by its text: `plan.mutate("split C i 8")`. With `shared=True` it is made to every step that shares the
    /// loop, which then stays shared.
    #[pyo3(signature = (change, shared=false))]
    fn mutate(&self, change: &str, shared: bool) -> PyResult<PyPlan> {
        let mutation = self.mutation(change)?;
        if !shared {
            return self.changed(&mutation);
        }
        let (graph, schedule) = (self.plan.graph(), self.plan.schedule());
        let all = for_sharers(graph, schedule, &mutation).map_err(errors::mutation)?;
        let mut plan = self.plan.clone();
        for mutation in all {
            plan = plan.mutate(&mutation).map_err(errors::mutation)?.plan;
        }
        Ok(PyPlan::new(plan, self.target.clone()))
    }

    /// The changes that are accepted here, as texts, with parameters that are likely to be of use.
    fn legal(&self, py: Python<'_>) -> Vec<String> {
        let found = py.detach(|| self.plan.legal());
        found
            .iter()
            .map(|mutation| print_mutation(self.plan.graph(), mutation))
            .collect()
    }

    /// A loop becomes two, the inner of which runs `factor` times; what does not divide leaves a tail.
    fn split(
        &self,
        step: &Bound<'_, PyAny>,
        r#loop: &Bound<'_, PyAny>,
        factor: i64,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "split {} {} {factor}",
            node_text(step)?,
            loop_text(r#loop)?
        ))
    }

    /// A loop and the next one over its dimension become one.
    fn merge(&self, step: &Bound<'_, PyAny>, r#loop: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!(
            "merge {} {}",
            node_text(step)?,
            loop_text(r#loop)?
        ))
    }

    /// A loop and the one right inside it change places.
    fn swap(
        &self,
        step: &Bound<'_, PyAny>,
        outer: &Bound<'_, PyAny>,
        inner: &Bound<'_, PyAny>,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "swap {} {} {}",
            node_text(step)?,
            loop_text(outer)?,
            loop_text(inner)?
        ))
    }

    /// All loops of a step, in a new order.
    #[pyo3(signature = (step, *loops))]
    fn reorder(&self, step: &Bound<'_, PyAny>, loops: Vec<Bound<'_, PyAny>>) -> PyResult<PyPlan> {
        self.change(&format!(
            "reorder {} {}",
            node_text(step)?,
            loop_list(&loops)?
        ))
    }

    /// One more loop is shared with the step before.
    fn fuse(&self, step: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!("fuse {}", node_text(step)?))
    }

    /// One loop less is shared with the step before.
    fn unfuse(&self, step: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!("unfuse {}", node_text(step)?))
    }

    /// Another place in the order of the steps: right before or right after another one.
    #[pyo3(name = "move", signature = (step, *, before=None, after=None))]
    fn move_step(
        &self,
        step: &Bound<'_, PyAny>,
        before: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyPlan> {
        let (word, other) = match (before, after) {
            (Some(other), None) => ("before", other),
            (None, Some(other)) => ("after", other),
            _ => {
                return Err(PyTypeError::new_err(
                    "a step moves `before` another one or `after` it",
                ));
            }
        };
        self.change(&format!(
            "move {} {word} {}",
            node_text(step)?,
            node_text(other)?
        ))
    }

    /// A step is computed where it is read instead.
    fn inline(&self, step: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!("inline {}", node_text(step)?))
    }

    /// An inline node becomes a step, with these loops or those of its first reader.
    #[pyo3(signature = (node, *loops))]
    fn store(&self, node: &Bound<'_, PyAny>, loops: Vec<Bound<'_, PyAny>>) -> PyResult<PyPlan> {
        let node = node_text(node)?;
        self.change(&match loops.is_empty() {
            true => format!("store {node}"),
            false => format!("store {node}: {}", loop_list(&loops)?),
        })
    }

    /// How the rounds of a loop run: `serial`, `parallel`, `vectorize`, `unroll`, `block`, `thread`, `warp`, `tile` or
    /// `prefetch`.
    fn annotate(
        &self,
        step: &Bound<'_, PyAny>,
        r#loop: &Bound<'_, PyAny>,
        annotation: &str,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "annotate {} {} {annotation}",
            node_text(step)?,
            loop_text(r#loop)?
        ))
    }

    /// One more loop, over a dimension that the step does not have, inside so many of its loops.
    #[pyo3(signature = (step, r#loop, depth=0))]
    fn add(
        &self,
        step: &Bound<'_, PyAny>,
        r#loop: &Bound<'_, PyAny>,
        depth: usize,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "add {} {depth}: {}",
            node_text(step)?,
            loop_text(r#loop)?
        ))
    }

    /// A loop over a dimension that the step does not have is taken away.
    fn remove(&self, step: &Bound<'_, PyAny>, r#loop: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!(
            "remove {} {}",
            node_text(step)?,
            loop_text(r#loop)?
        ))
    }

    /// A step comes right before a reader and into its loops, down to the one named.
    fn compute(
        &self,
        step: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
        r#loop: &Bound<'_, PyAny>,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "compute {} at {} {}",
            node_text(step)?,
            node_text(at)?,
            loop_text(r#loop)?
        ))
    }

    /// The order in which a step's elements lie in memory, as that of loops over them; none: row-major.
    #[pyo3(signature = (step, *order))]
    fn layout(&self, step: &Bound<'_, PyAny>, order: Vec<Bound<'_, PyAny>>) -> PyResult<PyPlan> {
        let step = node_text(step)?;
        self.change(&match order.is_empty() {
            true => format!("layout {step}"),
            false => format!("layout {step} [{}]", loop_list(&order)?),
        })
    }

    /// A step reads a copy of an array, which becomes a step of its own.
    #[pyo3(signature = (array, step, name))]
    fn copy(
        &self,
        array: &Bound<'_, PyAny>,
        step: &Bound<'_, PyAny>,
        name: &str,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "copy {} for {} as {}",
            node_text(array)?,
            node_text(step)?,
            quoted(name)
        ))
    }

    /// Who reads a copy reads what it is a copy of.
    fn uncopy(&self, copy: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!("uncopy {}", node_text(copy)?))
    }

    /// A view of a step that may leave its input reads an array with the values outside in it.
    #[pyo3(signature = (view, step, name))]
    fn pad(
        &self,
        view: &Bound<'_, PyAny>,
        step: &Bound<'_, PyAny>,
        name: &str,
    ) -> PyResult<PyPlan> {
        self.change(&format!(
            "pad {} for {} as {}",
            node_text(view)?,
            node_text(step)?,
            quoted(name)
        ))
    }

    /// A reduction in two stages: the first keeps so many lanes, or blocks of so many elements.
    #[pyo3(signature = (step, dim, *, lanes=None, blocks=None, name))]
    fn stage(
        &self,
        step: &Bound<'_, PyAny>,
        dim: &Bound<'_, PyAny>,
        lanes: Option<i64>,
        blocks: Option<i64>,
        name: &str,
    ) -> PyResult<PyPlan> {
        let (word, count) = match (lanes, blocks) {
            (Some(count), None) => ("lanes", count),
            (None, Some(count)) => ("blocks", count),
            _ => {
                return Err(PyTypeError::new_err(
                    "a first stage keeps `lanes` or `blocks`",
                ));
            }
        };
        let (step, dim) = (node_text(step)?, loop_text(dim)?);
        self.change(&format!(
            "stage {step} {dim} {word} {count} as {}",
            quoted(name)
        ))
    }

    /// A step is handed to another backend.
    fn delegate(&self, step: &Bound<'_, PyAny>, backend: &str) -> PyResult<PyPlan> {
        self.change(&format!(
            "delegate {} {}",
            node_text(step)?,
            quoted(backend)
        ))
    }

    /// A step belongs to the program's own backend again.
    fn undelegate(&self, step: &Bound<'_, PyAny>) -> PyResult<PyPlan> {
        self.change(&format!("undelegate {}", node_text(step)?))
    }

    /// As many shared loops as can be, by `reorder` and `fuse` alone.
    fn maximise_reuse(&self, py: Python<'_>) -> PyPlan {
        PyPlan::new(
            py.detach(|| maximise_reuse(&self.plan)),
            self.target.clone(),
        )
    }

    /// The innermost loop of every step written out where that is short.
    fn unroll_inner(&self, py: Python<'_>) -> PyPlan {
        PyPlan::new(py.detach(|| unroll_inner(&self.plan)), self.target.clone())
    }
}

/// The words that changes begin with; each is a method of `Plan`.
#[pyfunction]
fn mutations() -> Vec<&'static str> {
    MUTATIONS.to_vec()
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(mutations, module)?)
}
