//! Which candidates are worth measuring.
//!
//! The search keeps the plans that were measured, best first, and a frontier of plans that were not. New ones
//! come from the good ones by a few mutations: single ones that are legal, or new tiles for a whole step
//! ([`crate::agent`] is all it needs for that). The model says what each is worth, corrected by how far it was
//! off for the parent; mostly the best of the frontier is measured next, sometimes any of it, because models
//! are wrong. No plan is proposed twice. With the same seed and the same answers it goes the same way.

use crate::agent::Session;
use crate::moves::{pack, retile};
use crate::predict::Predict;
use crate::random::Generator;
use loopwright_graph::Binding;
use loopwright_looptree::{Annotation, Edit, Mutation, Plan, Target, reassociated};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Plans that were not measured and are kept.
const FRONTIER: usize = 96;

/// New plans that are looked at before each proposal.
const FRESH: usize = 12;

/// The same before the first.
const FIRST: usize = 64;

/// Plans that others are made from.
const PARENTS: usize = 6;

/// Attempts at a new plan before the space counts as searched.
const ATTEMPTS: usize = 200;

/// A plan to measure.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The plan.
    pub plan: Plan,
    /// Its schedule's text.
    pub text: String,
    /// The mutations that lead to it from the start.
    pub path: Vec<String>,
    /// What the model takes its time to be, as a share of the start's.
    pub predicted: f64,
}

struct Known {
    plan: Plan,
    path: Vec<String>,
    /// Its time, as a share of the start's.
    relative: f64,
    /// What the model says of it, in seconds.
    model: f64,
}

/// What a search looks for, and where.
#[derive(Clone)]
pub struct SearchOptions {
    /// The sizes.
    pub binding: Arc<Binding>,
    /// What says which plans are worth measuring.
    pub model: Arc<dyn Predict>,
    /// The machine.
    pub target: Target,
    /// Whether floats must be folded in the program's order.
    pub strict: bool,
    /// What its choices hang on.
    pub seed: u64,
}

/// A search over the plans of one program.
pub struct Search {
    options: SearchOptions,
    generator: Generator,
    seen: FxHashSet<String>,
    known: Vec<Known>,
    frontier: Vec<Candidate>,
}

impl Search {
    /// A search that begins at a plan, which counts as measured.
    pub fn new(start: Plan, options: SearchOptions) -> Search {
        let mut search = Search {
            generator: Generator::new(options.seed),
            options,
            seen: FxHashSet::default(),
            known: Vec::new(),
            frontier: Vec::new(),
        };
        search.seen.insert(start.to_string());
        search.add(start, Vec::new(), 1.0);
        search
    }

    fn add(&mut self, plan: Plan, path: Vec<String>, relative: f64) {
        let model = self.options.model.seconds(&plan, &self.options.binding);
        let known = Known {
            model: model.filter(|seconds| *seconds > 0.0).unwrap_or(1.0),
            plan,
            path,
            relative,
        };
        let at = self
            .known
            .partition_point(|other| other.relative <= relative);
        self.known.insert(at, known);
    }

    /// The next plan to measure; `None` where nothing new is found.
    pub fn propose(&mut self) -> Option<Candidate> {
        let fresh = if self.known.len() == 1 { FIRST } else { FRESH };
        let mut found = 0;
        for _ in 0..ATTEMPTS {
            if found >= fresh {
                break;
            }
            if let Some(candidate) = self.offspring() {
                found += 1;
                self.frontier.push(candidate);
            }
        }
        self.frontier
            .sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
        // Some of the worse ones stay: the model may be wrong about them.
        while self.frontier.len() > FRONTIER {
            let half = FRONTIER / 2;
            let at = half + self.generator.below((self.frontier.len() - half) as u64) as usize;
            self.frontier.remove(at);
        }
        if self.frontier.is_empty() {
            return None;
        }
        let any = self.generator.chance(25);
        let at = match any {
            true => self.generator.below(self.frontier.len() as u64) as usize,
            false => 0,
        };
        Some(self.frontier.remove(at))
    }

    /// What measuring a candidate came to: its time as a share of the start's, or `None` where it does not
    /// count.
    pub fn learn(&mut self, candidate: Candidate, relative: Option<f64>) {
        self.seen.insert(candidate.text);
        if let Some(relative) = relative.filter(|relative| relative.is_finite()) {
            self.add(candidate.plan, candidate.path, relative);
        }
    }

    /// Has a plan never proposed.
    pub fn avoid(&mut self, text: &str) {
        self.seen.insert(text.to_owned());
        self.frontier.retain(|candidate| candidate.text != text);
    }

    /// A new plan from one of the good ones.
    fn offspring(&mut self) -> Option<Candidate> {
        let most = self.known.len().min(PARENTS);
        // The best most often, the others each less.
        let mut at = 0;
        while at + 1 < most && self.generator.chance(45) {
            at += 1;
        }
        let parent = &self.known[at];
        let options = &self.options;
        let (relative, model) = (parent.relative, parent.model);
        let mut session = Session::predicted(
            parent.plan.clone(),
            Arc::clone(&options.binding),
            Arc::clone(&options.model),
        );
        let mut path = parent.path.clone();
        let generator = &mut self.generator;
        let kind = generator.below(100);
        if kind < 60 {
            let (binding, target) = (&options.binding, &options.target);
            retile(&mut session, binding, target, options.strict, generator);
        }
        if (50..70).contains(&kind) {
            pack(&mut session, generator);
        }
        if kind >= 70 {
            for _ in 0..1 + generator.below(3) {
                let legal = session.actions();
                let legal: Vec<Mutation> = legal.into_iter().filter(worthwhile).collect();
                let action = generator.pick(&legal)?;
                // The list of legal ones is right, or the mutation is refused: either way nothing is lost.
                let _ = session.apply(action);
            }
        }
        if options.strict && reassociates(session.plan()) {
            return None;
        }
        let text = session.plan().to_string();
        if !self.seen.insert(text.clone()) {
            return None;
        }
        path.extend(session.path().map(str::to_owned));
        let seconds = options.model.seconds(session.plan(), &options.binding)?;
        Some(Candidate {
            plan: session.plan().clone(),
            text,
            path,
            predicted: relative * seconds / model,
        })
    }
}

/// Delegation is a person's choice, not a search's, and so far no backend has a grid or a matrix unit.
fn worthwhile(mutation: &Mutation) -> bool {
    match mutation {
        Mutation::Delegate { .. } | Mutation::Undelegate { .. } => false,
        Mutation::Annotate { annotation, .. } => !matches!(
            annotation,
            Annotation::Block | Annotation::Thread | Annotation::Warp | Annotation::Tile
        ),
        _ => true,
    }
}

/// Whether floats are folded in another order than the program's, which strict mode does not take.
fn reassociates(plan: &Plan) -> bool {
    let staged = |edit: &Edit| matches!(edit, Edit::Stage { .. });
    plan.schedule().edits.iter().any(staged)
        || !reassociated(plan.graph(), plan.schedule()).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::CostModel;
    use loopwright_graph::parse;
    use loopwright_looptree::parse_schedule;
    use loopwright_text::Source;

    const MACHINE: Target = Target {
        vector_bytes: 32,
        vector_registers: 16,
        threads: 1,
        ..Target::SCALAR
    };

    fn search(seed: u64, strict: bool) -> Search {
        let text = "loopwright program 1\ninput A: f32[i=256, k=256]\ninput B: f32[k, j=256]\n\
                    C = sum[k](A * B)\noutput D = max(C, 0)\n";
        let graph = parse(&Source::new("p.lw", text))
            .expect("a program")
            .with_stores();
        let schedule = Source::new("s", "loopwright schedule 1\nC: i, j, k\nD: i, j\n");
        let schedule = parse_schedule(&schedule, &graph).expect("a schedule");
        let binding = Arc::new(graph.bind(&[]).expect("sizes"));
        let plan = Plan::new(graph, schedule).expect("it fits");
        let options = SearchOptions {
            binding,
            model: Arc::new(CostModel::new(MACHINE)),
            target: MACHINE,
            strict,
            seed,
        };
        Search::new(plan, options)
    }

    /// Proposals when the model is always right.
    fn proposals(search: &mut Search, count: usize) -> Vec<(String, f64)> {
        let mut found = Vec::new();
        while found.len() < count {
            let candidate = search.propose().expect("there are many plans");
            found.push((candidate.text.clone(), candidate.predicted));
            let relative = candidate.predicted;
            search.learn(candidate, Some(relative));
        }
        found
    }

    #[test]
    fn a_seed_decides_and_no_plan_comes_twice() {
        let first = proposals(&mut search(1, false), 40);
        assert_eq!(first, proposals(&mut search(1, false), 40));
        assert_ne!(first, proposals(&mut search(2, false), 40));
        let texts: FxHashSet<&String> = first.iter().map(|(text, _)| text).collect();
        assert_eq!(texts.len(), 40, "each is new");
    }

    #[test]
    fn the_predicted_cost_falls() {
        let found = proposals(&mut search(3, false), 40);
        let best = found
            .iter()
            .map(|(_, predicted)| *predicted)
            .fold(1.0, f64::min);
        assert!(
            best < 0.2,
            "a tile is far better than no tile, and the best is {best} of the start"
        );
        let vectors = found.iter().filter(|(text, _)| text.contains("vectorize"));
        assert!(vectors.count() > 5, "moves make vectors");
    }

    #[test]
    fn strict_searches_keep_the_order_of_sums() {
        let mut search = search(4, true);
        for _ in 0..30 {
            let candidate = search.propose().expect("there are many plans");
            assert!(!reassociates(&candidate.plan), "{}", candidate.text);
            let relative = candidate.predicted;
            search.learn(candidate, Some(relative));
        }
    }

    #[test]
    fn what_is_avoided_is_not_proposed() {
        let first = search(5, false).propose().expect("a plan").text;
        let mut again = search(5, false);
        again.avoid(&first);
        for (text, _) in proposals(&mut again, 30) {
            assert_ne!(text, first);
        }
    }
}
