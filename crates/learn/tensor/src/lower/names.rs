//! What things are called in the graph of a program, and so in its loops and schedules.

use super::Lowering;
use loopwright_graph::{DimId, GraphError, NodeId};
use loopwright_symbolic::Expr;

pub(crate) fn input_name(at: usize) -> String {
    format!("x{at}")
}

pub(crate) fn variable_name(at: usize) -> String {
    format!("v{at}")
}

pub(crate) fn argument_name(at: usize) -> String {
    format!("a{at}")
}

pub(crate) fn output_name(at: usize) -> String {
    format!("y{at}")
}

/// What the open size at a place is called.
pub(crate) fn size_name(at: usize) -> String {
    format!("n{at}")
}

impl Lowering<'_> {
    /// A dimension, called as an axis if that has a name.
    pub(super) fn new_dim(&mut self, name: Option<&str>, size: Expr) -> Result<DimId, GraphError> {
        let name = match name.filter(|name| is_own_name(name) && self.is_free(name)) {
            Some(name) => name.to_owned(),
            None => self.numbered("d", self.builder_dims()),
        };
        let dim = self.builder.dim(&name)?;
        self.builder.set_size(dim, size, "the tensor's shape");
        Ok(dim)
    }

    /// Calls the node that a tensor is by its label, if it has no name of its own yet.
    pub(super) fn label(&mut self, node: NodeId, label: &str) -> Result<(), GraphError> {
        if !self.builder.node(node).name.is_empty() || !is_own_name(label) {
            return Ok(());
        }
        let name = match self.is_free(label) {
            true => label.to_owned(),
            false => self.numbered(&format!("{label}_"), 2),
        };
        self.builder.name(node, &name)
    }

    /// Whether nothing has a name yet.
    fn is_free(&self, name: &str) -> bool {
        self.builder.find_dim(name).is_none()
            && self.builder.find(name).is_none()
            && self.builder.find_size(name).is_none()
    }

    /// The first name with a number, from one on, that nothing has yet.
    fn numbered(&self, start: &str, from: usize) -> String {
        let mut names = (from..).map(|number| format!("{start}{number}"));
        names
            .find(|name| self.is_free(name))
            .expect("there are more numbers than names")
    }

    /// A result that has no label is called as it is given back.
    pub(super) fn label_result(&mut self, node: NodeId, name: &str) -> Result<(), GraphError> {
        match self.builder.node(node).name.is_empty() && self.is_free(name) {
            true => self.builder.name(node, name),
            false => Ok(()),
        }
    }
}

/// Whether an axis or a tensor can be called so in the graph: a word that is not like those of parameters,
/// results, sizes and axes without a name, which are a letter and a number.
fn is_own_name(name: &str) -> bool {
    let mut letters = name.chars();
    let is_letter = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    let rest = letters.as_str();
    let is_word = rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_numbered = !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
    is_letter && is_word && !is_numbered
}
