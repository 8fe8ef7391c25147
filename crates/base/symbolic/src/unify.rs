//! Solving the sizes of a whole program.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::error::{Error, default_name};
use crate::expr::{Cmp, Expr, Symbol};
use crate::isolate::{Root, isolate, isolate_root};
use crate::range::Bounds;

/// `lhs == rhs`, and where in the program that was stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation<O> {
    /// The left side.
    pub lhs: Expr,
    /// The right side.
    pub rhs: Expr,
    /// Where it comes from: a node, a source position, a user's option.
    pub origin: O,
}

impl<O> Equation<O> {
    /// States that `lhs == rhs`.
    pub fn new(lhs: Expr, rhs: Expr, origin: O) -> Equation<O> {
        Equation { lhs, rhs, origin }
    }
}

/// What the equations say about the symbols.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Solution {
    values: BTreeMap<Symbol, Expr>,
    residual: Vec<Residual>,
}

/// An equation that could neither be solved for a symbol nor be shown to hold: it stays as a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// The position of the equation among those given.
    pub equation: usize,
    /// Its left side, with everything known put in.
    pub lhs: Expr,
    /// Its right side, with everything known put in.
    pub rhs: Expr,
}

impl Solution {
    /// The value of `symbol`: a number, or an expression over symbols that stay open. `None` if the
    /// symbol itself stays open.
    pub fn get(&self, symbol: Symbol) -> Option<&Expr> {
        self.values.get(&symbol)
    }

    /// All solved symbols with their values. No solved symbol occurs in any value.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, &Expr)> {
        self.values.iter().map(|(symbol, value)| (*symbol, value))
    }

    /// Puts the solved values into `expr`.
    pub fn apply(&self, expr: &Expr) -> Result<Expr, Error> {
        expr.substitute(&|symbol| self.values.get(&symbol).cloned())
    }

    /// The equations that are still conditions on open symbols, in the order given.
    pub fn residual(&self) -> &[Residual] {
        &self.residual
    }
}

/// A value, and the equation it follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim<O> {
    /// The value.
    pub value: Expr,
    /// The origin of the equation that decided it.
    pub origin: O,
}

/// Why a set of equations has no solution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction<O> {
    /// Two equations give the same thing different values.
    Conflict {
        /// A symbol where one can be named, otherwise one side of the second equation.
        subject: Expr,
        /// What it was known to be.
        first: Claim<O>,
        /// What the second equation makes of it.
        second: Claim<O>,
        /// The other equations that took part in either, in the order given.
        through: Vec<O>,
    },
    /// An equation leaves a symbol a value that is not an integer.
    Indivisible {
        /// The symbol.
        symbol: Symbol,
        /// What it is multiplied by.
        coefficient: i64,
        /// What the product would have to be.
        value: i64,
        /// The equation that was to give the symbol its value.
        origin: O,
        /// The other equations that took part, in the order given.
        through: Vec<O>,
    },
    /// Putting known values into an equation does not fit in 64 bits, divides by zero, or exceeds
    /// the limits on expressions.
    Arithmetic {
        /// What happened.
        error: Error,
        /// The equation.
        origin: O,
        /// The other equations that took part, in the order given.
        through: Vec<O>,
    },
}

impl<O> Contradiction<O> {
    /// The origins of all equations that take part, the deciding ones first.
    pub fn origins(&self) -> Vec<&O> {
        let (deciding, through) = match self {
            Contradiction::Conflict {
                first,
                second,
                through,
                ..
            } => (vec![&first.origin, &second.origin], through),
            Contradiction::Indivisible {
                origin, through, ..
            }
            | Contradiction::Arithmetic {
                origin, through, ..
            } => (vec![origin], through),
        };
        deciding.into_iter().chain(through).collect()
    }

    /// The explanation, with symbols named by `names` and origins described by `describe`.
    pub fn display<'a>(
        &'a self,
        names: &'a dyn Fn(Symbol) -> String,
        describe: &'a dyn Fn(&O) -> String,
    ) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            let through = match self {
                Contradiction::Conflict {
                    subject,
                    first,
                    second,
                    through,
                } => {
                    write!(
                        f,
                        "`{}` is {} according to {}, but {} according to {}",
                        subject.display(names),
                        first.value.display(names),
                        describe(&first.origin),
                        second.value.display(names),
                        describe(&second.origin),
                    )?;
                    through
                }
                Contradiction::Indivisible {
                    symbol,
                    coefficient,
                    value,
                    origin,
                    through,
                } => {
                    let name = names(*symbol);
                    write!(
                        f,
                        "`{name}` has no integer value: {} requires `{name}*{coefficient} == {value}`",
                        describe(origin),
                    )?;
                    through
                }
                Contradiction::Arithmetic {
                    error,
                    origin,
                    through,
                } => {
                    write!(
                        f,
                        "{} cannot hold: {}",
                        describe(origin),
                        error.display(names)
                    )?;
                    through
                }
            };
            for (i, origin) in through.iter().enumerate() {
                write!(
                    f,
                    "{}{}",
                    if i == 0 { " (given " } else { ", " },
                    describe(origin)
                )?;
            }
            f.write_str(if through.is_empty() { "" } else { ")" })
        })
    }
}

impl<O: fmt::Display> fmt::Display for Contradiction<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}",
            self.display(&default_name, &|origin| origin.to_string())
        )
    }
}

impl<O: fmt::Debug + fmt::Display> std::error::Error for Contradiction<O> {}

/// Solves `equations` for the symbols in them.
///
/// Numbers come first: an equation with one unknown left decides it. Then each equation that is still
/// open gives one of its symbols in terms of the others: a symbol that is one side of the equation
/// by itself (the left one, if both are), otherwise the one made last among those that divide exactly.
/// What cannot be solved, such as `x / 2 == 4`, is kept in [`Solution::residual`] and checked as soon as
/// its symbols are known.
pub fn unify<O: Clone>(equations: &[Equation<O>]) -> Result<Solution, Contradiction<O>> {
    unify_keeping(equations, &|_| false)
}

/// Like [`unify`], but a symbol for which `keep` holds (a parameter of the program, say) is only
/// expressed by others when nothing else in the equation can be: `a == N` gives `a = N` either way
/// round.
pub fn unify_keeping<O: Clone>(
    equations: &[Equation<O>],
    keep: &dyn Fn(Symbol) -> bool,
) -> Result<Solution, Contradiction<O>> {
    Solver::new(equations, keep).solve()
}

/// A solved symbol.
struct Solved {
    /// Over symbols that were open when it was found. Those solved since are put in on demand
    /// ([`Solver::flatten`]), so that a chain of `n` sizes costs `n` substitutions and not `n * n`.
    value: Expr,
    /// The equation that was solved for it.
    equation: usize,
}

/// An equation that is still open.
struct Open {
    lhs: Expr,
    rhs: Expr,
    /// The symbols of both sides.
    symbols: BTreeSet<Symbol>,
}

struct Solver<'a, O> {
    equations: &'a [Equation<O>],
    keep: &'a dyn Fn(Symbol) -> bool,
    solved: BTreeMap<Symbol, Solved>,
    /// By position; `None` once an equation is solved or holds.
    open: Vec<Option<Open>>,
    /// The equations each symbol occurs in.
    occurrences: BTreeMap<Symbol, Vec<usize>>,
    /// Equations to look at because something in them has become known.
    changed: VecDeque<usize>,
    /// Equations with several unknowns that have not been tried since they changed.
    untried: BTreeSet<usize>,
}

impl<'a, O: Clone> Solver<'a, O> {
    fn new(equations: &'a [Equation<O>], keep: &'a dyn Fn(Symbol) -> bool) -> Self {
        let mut solver = Solver {
            equations,
            keep,
            solved: BTreeMap::new(),
            open: Vec::with_capacity(equations.len()),
            occurrences: BTreeMap::new(),
            changed: (0..equations.len()).collect(),
            untried: BTreeSet::new(),
        };
        for (equation, Equation { lhs, rhs, .. }) in equations.iter().enumerate() {
            let open = solver.opened(equation, lhs.clone(), rhs.clone());
            solver.open.push(Some(open));
        }
        solver
    }

    /// The two sides of an equation with their symbols, which are noted as occurring in it.
    fn opened(&mut self, equation: usize, lhs: Expr, rhs: Expr) -> Open {
        let mut symbols = lhs.symbols();
        rhs.collect_symbols(&mut symbols);
        for symbol in &symbols {
            self.occurrences.entry(*symbol).or_default().push(equation);
        }
        Open { lhs, rhs, symbols }
    }

    fn solve(mut self) -> Result<Solution, Contradiction<O>> {
        // Numbers first; one symbol in terms of others only when no equation has a single unknown.
        loop {
            if let Some(equation) = self.changed.pop_front() {
                self.refresh(equation)?;
                match &self.open[equation] {
                    Some(open) if open.symbols.len() > 1 => drop(self.untried.insert(equation)),
                    Some(_) => self.settle(equation)?,
                    None => {}
                }
            } else if let Some(equation) = self.untried.pop_first() {
                self.settle(equation)?;
            } else {
                break;
            }
        }
        let symbols: Vec<Symbol> = self.solved.keys().copied().collect();
        for symbol in symbols {
            self.flatten(symbol)?;
        }
        let values = self
            .solved
            .into_iter()
            .map(|(symbol, solved)| (symbol, solved.value));
        let open = self.open.into_iter().enumerate();
        let residual = open.filter_map(|(equation, open)| {
            let Open { lhs, rhs, .. } = open?;
            Some(Residual { equation, lhs, rhs })
        });
        Ok(Solution {
            values: values.collect(),
            residual: residual.collect(),
        })
    }

    /// Solves an open equation for one of its symbols, discharges it because it always holds, leaves it
    /// open, or finds that it cannot hold.
    fn settle(&mut self, equation: usize) -> Result<(), Contradiction<O>> {
        let Some(open) = &self.open[equation] else {
            return Ok(());
        };
        match self.solution_of(open) {
            Ok(Some((symbol, value))) => {
                self.open[equation] = None;
                self.solved.insert(symbol, Solved { value, equation });
                for other in self.occurrences.get(&symbol).into_iter().flatten() {
                    if self.open[*other].is_some() {
                        self.changed.push_back(*other);
                        self.untried.remove(other);
                    }
                }
                Ok(())
            }
            Ok(None) => {
                let equal = Expr::compare(Cmp::Eq, &open.lhs, &open.rhs)
                    .map_err(|error| self.arithmetic(equation, error))?
                    .simplify(&Bounds::new());
                match equal.as_const() {
                    None => Ok(()),
                    Some(0) => Err(self.refuted(equation)),
                    Some(_) => {
                        self.open[equation] = None;
                        Ok(())
                    }
                }
            }
            Err(error) => Err(self.arithmetic(equation, error)),
        }
    }

    /// A symbol of an open equation, and its value, if one can be had exactly.
    fn solution_of(&self, open: &Open) -> Result<Option<(Symbol, Expr)>, Error> {
        let (lhs, rhs) = (&open.lhs, &open.rhs);
        let sides = [(lhs.as_symbol(), rhs), (rhs.as_symbol(), lhs)];
        let mut difference = None;
        // Those to keep come last. A side that is a symbol comes first, then the symbol made last.
        for kept in [false, true] {
            for (symbol, value) in sides {
                if let Some(symbol) = symbol
                    && (self.keep)(symbol) == kept
                    && !value.contains(symbol)
                {
                    return Ok(Some((symbol, value.clone())));
                }
            }
            for symbol in open
                .symbols
                .iter()
                .rev()
                .filter(|symbol| (self.keep)(**symbol) == kept)
            {
                let difference = match &difference {
                    Some(difference) => difference,
                    None => &*difference.insert(lhs.sub(rhs)?),
                };
                // A symbolic coefficient might be zero, and then the equation says nothing.
                match isolate_root(difference, *symbol) {
                    Ok(Root { coefficient, value }) if coefficient.as_const().is_some() => {
                        return Ok(Some((*symbol, value)));
                    }
                    // That one cannot be solved for; another one may.
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(None)
    }

    /// Puts what has been solved since into an open equation.
    fn refresh(&mut self, equation: usize) -> Result<(), Contradiction<O>> {
        let Some(open) = &self.open[equation] else {
            return Ok(());
        };
        let known = open
            .symbols
            .iter()
            .filter(|symbol| self.solved.contains_key(symbol));
        let known: Vec<Symbol> = known.copied().collect();
        if known.is_empty() {
            return Ok(());
        }
        for symbol in known {
            self.flatten(symbol)?;
        }
        let Some(open) = &self.open[equation] else {
            return Ok(());
        };
        let values = |symbol: Symbol| Some(self.solved.get(&symbol)?.value.clone());
        let sides = open
            .lhs
            .substitute(&values)
            .and_then(|lhs| Ok((lhs, open.rhs.substitute(&values)?)));
        let (lhs, rhs) = sides.map_err(|error| self.arithmetic(equation, error))?;
        self.open[equation] = Some(self.opened(equation, lhs, rhs));
        Ok(())
    }

    /// Rids the value of a solved symbol of symbols solved since. A value only mentions symbols that
    /// were open when it was found, so this ends; it keeps a stack of its own because chains are long.
    fn flatten(&mut self, symbol: Symbol) -> Result<(), Contradiction<O>> {
        let mut stack = vec![symbol];
        while let Some(symbol) = stack.last().copied() {
            let Some(Solved { value, equation }) = self.solved.get(&symbol) else {
                stack.pop();
                continue;
            };
            let mentioned = value.symbols();
            let solved = mentioned
                .iter()
                .filter_map(|s| Some((*s, &self.solved.get(s)?.value)));
            let solved: Vec<(Symbol, &Expr)> = solved.collect();
            let pending = solved.len();
            let is_flat =
                |value: &Expr| !value.symbols().iter().any(|s| self.solved.contains_key(s));
            stack.extend(
                solved
                    .iter()
                    .filter(|(_, value)| !is_flat(value))
                    .map(|(s, _)| *s),
            );
            if stack.last() != Some(&symbol) {
                continue;
            }
            stack.pop();
            if pending == 0 {
                continue;
            }
            let values = |s: Symbol| Some(self.solved.get(&s)?.value.clone());
            let (flat, equation) = (value.substitute(&values), *equation);
            let value = flat.map_err(|error| self.arithmetic(equation, error))?;
            self.solved.insert(symbol, Solved { value, equation });
        }
        Ok(())
    }

    /// The origins of the equations that the values in `equation` rest on, in the order given.
    fn through(&self, equation: usize, except: &[usize]) -> Vec<O> {
        let (mut support, mut reached) = (BTreeSet::new(), vec![equation]);
        while let Some(equation) = reached.pop() {
            if support.insert(equation) {
                let Equation { lhs, rhs, .. } = &self.equations[equation];
                let mut symbols = lhs.symbols();
                rhs.collect_symbols(&mut symbols);
                let solved = symbols.iter().filter_map(|symbol| self.solved.get(symbol));
                reached.extend(solved.map(|solved| solved.equation));
            }
        }
        let rest = support.iter().filter(|equation| !except.contains(equation));
        rest.map(|equation| self.equations[*equation].origin.clone())
            .collect()
    }

    fn arithmetic(&self, equation: usize, error: Error) -> Contradiction<O> {
        Contradiction::Arithmetic {
            error,
            origin: self.equations[equation].origin.clone(),
            through: self.through(equation, &[equation]),
        }
    }

    /// Takes out an open equation that cannot hold, and explains why.
    fn refuted(&mut self, equation: usize) -> Contradiction<O> {
        let open = self.open[equation]
            .take()
            .expect("only an open equation is refuted");
        // The symbols as stated were put in a while ago; the explanation shows what is known now.
        let Equation { lhs, rhs, .. } = &self.equations[equation];
        for symbol in lhs.symbols().union(&rhs.symbols()) {
            if let Err(contradiction) = self.flatten(*symbol) {
                return contradiction;
            }
        }
        self.contradiction(equation, &open)
    }

    /// Explains why an open equation cannot hold.
    fn contradiction(&self, second: usize, open: &Open) -> Contradiction<O> {
        if let Some(indivisible) = self.indivisible(second, open) {
            return indivisible;
        }
        let origin = |equation: usize| self.equations[equation].origin.clone();
        let stated = &self.equations[second];
        // Best is a symbol of the equation as it was stated: what it was known to be, against what this
        // equation makes of it, given the values of all the others.
        let mut symbols: Vec<Symbol> = [stated.lhs.as_symbol(), stated.rhs.as_symbol()]
            .into_iter()
            .flatten()
            .collect();
        let mut all = stated.lhs.symbols();
        stated.rhs.collect_symbols(&mut all);
        symbols.extend(&all);
        for symbol in &symbols {
            let Some(solved) = self.solved.get(symbol) else {
                continue;
            };
            let others = |s: Symbol| {
                self.solved
                    .get(&s)
                    .filter(|_| s != *symbol)
                    .map(|solved| solved.value.clone())
            };
            let value = stated
                .lhs
                .substitute(&others)
                .and_then(|lhs| isolate(&lhs, &stated.rhs.substitute(&others)?, *symbol));
            if let Ok(value) = value
                && value != solved.value
            {
                let first = Claim {
                    value: solved.value.clone(),
                    origin: origin(solved.equation),
                };
                return Contradiction::Conflict {
                    subject: Expr::symbol(*symbol),
                    first,
                    second: Claim {
                        value,
                        origin: origin(second),
                    },
                    through: self.through(second, &[solved.equation, second]),
                };
            }
        }
        // One side against the other; of the equations the first side rests on, the last one given.
        let decided = |symbols: BTreeSet<Symbol>| {
            symbols
                .iter()
                .filter_map(|s| self.solved.get(s))
                .map(|solved| solved.equation)
                .max()
        };
        let first = decided(stated.lhs.symbols()).or_else(|| decided(stated.rhs.symbols()));
        let first = first.unwrap_or(second);
        Contradiction::Conflict {
            subject: stated.lhs.clone(),
            first: Claim {
                value: open.lhs.clone(),
                origin: origin(first),
            },
            second: Claim {
                value: open.rhs.clone(),
                origin: origin(second),
            },
            through: self.through(second, &[first, second]),
        }
    }

    /// The explanation for an equation in one unknown that has a solution, but no integer one.
    fn indivisible(&self, equation: usize, open: &Open) -> Option<Contradiction<O>> {
        let symbol = *open.symbols.first().filter(|_| open.symbols.len() == 1)?;
        match isolate(&open.lhs, &open.rhs, symbol) {
            Err(Error::Indivisible {
                coefficient, value, ..
            }) => Some(Contradiction::Indivisible {
                symbol,
                coefficient: coefficient.as_const()?,
                value: value.as_const()?,
                origin: self.equations[equation].origin.clone(),
                through: self.through(equation, &[equation]),
            }),
            _ => None,
        }
    }
}
