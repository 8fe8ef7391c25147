//! What is shown beside the tree.

/// A place of the tree, as texts of the pane know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sought<'a> {
    /// A loop over this dimension, behind `nth` others over it.
    Loop { dim: &'a str, nth: usize },
    /// The step of this name.
    Step(&'a str),
}

/// A tab of the pane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tab {
    /// What the device's compiler is given.
    Code,
    /// The kernel after all passes.
    Kernel,
    /// The schedule, as it would be saved.
    Schedule,
    /// What the cost model says about each step.
    Estimate,
}

impl Tab {
    pub(crate) const ALL: [Tab; 4] = [Tab::Code, Tab::Kernel, Tab::Schedule, Tab::Estimate];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Tab::Code => "code",
            Tab::Kernel => "kernel",
            Tab::Schedule => "schedule",
            Tab::Estimate => "estimate",
        }
    }

    /// The line of its text that is about a place of the tree: the `nth` loop over a dimension, counted as the tree has them,
    /// or where a step's result is first written. Loops that the lowering has unrolled have none of their own; then it is
    /// the one before.
    pub(crate) fn line_of(self, text: &str, place: Sought<'_>) -> Option<usize> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        // Copies of a loop or a step have its name with a number behind it: `k_1`, `k'12`.
        let names = |line: &str, name: &str| {
            line.match_indices(name).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let behind = line[at + name.len()..].chars().next();
                !before.is_some_and(is_word) && behind.is_none_or(|c| !is_word(c) || c == '_')
            })
        };
        match place {
            Sought::Loop { dim, nth } => {
                let head = |line: &str| {
                    let line = line.trim_start();
                    line.starts_with("for ") && names(line, dim)
                };
                let lines = text.lines().enumerate();
                let lines: Vec<usize> = lines
                    .filter(|(_, line)| head(line))
                    .map(|(at, _)| at)
                    .collect();
                lines.get(nth).or(lines.last()).copied()
            }
            Sought::Step(name) => {
                let head = format!("{name}:");
                let written = |line: &str| {
                    let line = line.trim_start();
                    line.starts_with(&head) || line.contains("store") && names(line, name)
                };
                let mut lines = text.lines();
                let found = lines.position(written);
                // The first mention behind the signature, where the language has no word for it.
                let mentioned = || {
                    let mut lines = text.lines().enumerate();
                    let found = lines.find(|(_, line)| line.starts_with(' ') && names(line, name));
                    found.map(|(at, _)| at)
                };
                found.or_else(mentioned)
            }
        }
    }

    /// The tab to the right; after the last the first.
    pub(crate) fn next(self) -> Tab {
        let at = Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Tab::ALL[(at + 1) % Tab::ALL.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_loops_and_steps_are_found_in_code_and_kernels() {
        let code = "void program(float *C) {\n  for (int64_t i = 0; i < M; i++) {\n    for (int64_t k = 0; k < K; k++) {\n    \
                    }\n    C[i] = v;\n    for (int64_t k_1 = 0; k_1 < K; k_1++) {\n";
        let line = |text: &str, place| Tab::Code.line_of(text, place);
        assert_eq!(line(code, Sought::Loop { dim: "i", nth: 0 }), Some(1));
        assert_eq!(line(code, Sought::Loop { dim: "k", nth: 0 }), Some(2));
        assert_eq!(line(code, Sought::Loop { dim: "k", nth: 1 }), Some(5));
        assert_eq!(line(code, Sought::Loop { dim: "k", nth: 9 }), Some(5));
        assert_eq!(line(code, Sought::Loop { dim: "j", nth: 0 }), None);
        assert_eq!(line(code, Sought::Step("C")), Some(4));
        let kernel =
            "kernel @program(%C: ptr) {\n  for %i: i64 = %5 .. %M {\n    store %C[%i], %7\n";
        assert_eq!(line(kernel, Sought::Step("C")), Some(2));
        let schedule = "loopwright schedule 1\nD: i\nC: i, j\n";
        assert_eq!(line(schedule, Sought::Step("C")), Some(2));
    }
}
