//! Who takes part: our backend, other backends of ours, peers.

use crate::exchange::{Exchange, compare};
use crate::peer::{self, Environment, PeerError, Prepared};
use crate::race::{Limits, Racer, race};
use crate::side::Side;
use crate::work::Work;
use crate::{Against, BenchError, Options, Results};
use loopwright::backend::{Backend, backends};
use loopwright::graph::Array;
use std::collections::BTreeMap;
use std::num::NonZero;

/// All who take part in a suite.
pub(crate) struct Field {
    ours: Backend,
    /// Other backends of ours, which can be peers, too.
    pub(crate) rivals: Vec<Backend>,
    peers: Vec<Environment>,
    /// Peers that were not asked for by name and cannot run here, and why.
    missing: BTreeMap<String, String>,
    threads: NonZero<usize>,
}

/// How long one side took, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The first run, compilation included.
    pub(crate) first: f64,
    /// A run in the middle of all.
    pub(crate) median: f64,
}

/// Our side of a race.
pub(crate) trait Ours: Racer {
    /// How long the first run took, in seconds, compilation included.
    fn first(&self) -> f64;

    /// Runs once more from the given states; every output and updated state.
    fn results(&mut self) -> Result<Results, BenchError>;
}

/// One piece of work, by all who can do it.
pub(crate) struct Outcome {
    pub(crate) ours: Times,
    pub(crate) others: BTreeMap<String, Times>,
    /// Peers that did not do it, and why.
    pub(crate) left_out: BTreeMap<String, String>,
    /// The versions of the peers that say theirs.
    pub(crate) versions: BTreeMap<String, String>,
}

/// How long peers compiled one piece of work.
pub(crate) struct CompileTimes {
    pub(crate) seconds: BTreeMap<String, f64>,
    /// Peers that did not do it, and why.
    pub(crate) left_out: BTreeMap<String, String>,
}

impl Outcome {
    /// Every other side's figure, made of its times.
    pub(crate) fn others(&self, figure: impl Fn(&Times) -> f64) -> BTreeMap<String, f64> {
        let others = self.others.iter();
        others
            .map(|(name, times)| (name.clone(), figure(times)))
            .collect()
    }
}

impl Field {
    /// Our side alone.
    pub(crate) fn alone(options: &Options) -> Result<Field, BenchError> {
        Ok(Field {
            ours: device(&options.device)?,
            rivals: Vec::new(),
            peers: Vec::new(),
            missing: BTreeMap::new(),
            threads: options.threads,
        })
    }

    /// Makes what is missing of the peers' environments; `say` hears about it. Where no peers are named, those are
    /// taken of `known` that can be had.
    pub(crate) fn new(
        options: &Options,
        known: &[&str],
        say: &dyn Fn(&str),
    ) -> Result<Field, BenchError> {
        let mut field = Field::alone(options)?;
        let prepare = |peer: &str| Environment::prepare(peer, &options.environments, say);
        match &options.against {
            Against::All => {
                for peer in known {
                    match prepare(peer) {
                        Ok(environment) => field.peers.push(environment),
                        Err(PeerError::Environment { reason, .. }) => {
                            // Installers say at the end why they gave up.
                            let why = reason.lines().last().unwrap_or_default();
                            let why = format!("cannot be installed: {why}");
                            field.missing.insert((*peer).to_owned(), why);
                        }
                        Err(other) => return Err(other.into()),
                    }
                }
            }
            Against::Named(names) => {
                // Before environments are made for the others, which takes long.
                let ours = |name: &str| backends().iter().any(|backend| backend.name() == name);
                for peer in names.iter().filter(|peer| !ours(peer)) {
                    peer::check_known(peer)?;
                }
                for peer in names {
                    if ours(peer) {
                        field.rivals.push(device(peer)?);
                        continue;
                    }
                    field.peers.push(prepare(peer)?);
                }
            }
        }
        Ok(field)
    }

    /// The backend that runs our side.
    pub(crate) fn ours(&self) -> &Backend {
        &self.ours
    }

    /// The names of the peers, rivals not among them.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &'static str> {
        self.peers.iter().map(Environment::name)
    }

    /// Measures a piece of work in turn. A peer that does not have it is left out; one whose results differ from
    /// ours is an error. A peer that fails is left out, too. Only peers that are `wanted` take part.
    pub(crate) fn race(
        &self,
        work: &Work,
        limits: &Limits,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Outcome, BenchError> {
        let graph = work.graph()?;
        let inputs = work.inputs(&graph)?;
        let mut own = Side::new(work, &graph, &inputs, &self.ours)?;
        self.race_with(&mut own, work, &inputs, limits, wanted)
    }

    /// The same with our side in another form.
    pub(crate) fn race_with(
        &self,
        own: &mut dyn Ours,
        work: &Work,
        inputs: &[(String, Array)],
        limits: &Limits,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Outcome, BenchError> {
        let graph = work.graph()?;
        let exchange = Exchange::new(inputs)?;
        let mut rivals = Vec::with_capacity(self.rivals.len());
        for rival in &self.rivals {
            rivals.push(Side::new(work, &graph, inputs, rival)?);
        }
        let mut left_out = self.missing.clone();
        left_out.retain(|peer, _| wanted(peer));
        let mut peers = Vec::with_capacity(self.peers.len());
        let mut versions = BTreeMap::new();
        for environment in self.peers.iter().filter(|peer| wanted(peer.name())) {
            let name = environment.name();
            match self.prepare(environment, work, &exchange) {
                Ok((Prepared::Ready { first }, peer)) => {
                    let version = peer.version().map(str::to_owned);
                    versions.extend(version.map(|version| (name.to_owned(), version)));
                    peers.push((first, peer));
                }
                Ok((Prepared::Cannot(why), _)) => {
                    left_out.insert(name.to_owned(), why);
                }
                // What one peer stumbles over is no reason to lose everything else that was measured.
                Err(error) => {
                    left_out.insert(name.to_owned(), brief(&error));
                }
            }
        }

        let (ours, mut others) = loop {
            let mut firsts = vec![own.first()];
            let mut sides: Vec<&mut dyn Racer> = vec![&mut *own];
            for rival in &mut rivals {
                firsts.push(rival.first());
                sides.push(rival);
            }
            for (first, peer) in &mut peers {
                firsts.push(*first);
                sides.push(peer);
            }
            let medians = match race(&mut sides, limits) {
                Ok(medians) => medians,
                // The same for a peer that ends while it is measured: the others race again.
                Err(BenchError::Peer(PeerError::Failed { peer, reason })) => {
                    peers.retain(|(_, other)| other.name() != peer);
                    let error = PeerError::Failed {
                        peer: peer.clone(),
                        reason,
                    };
                    left_out.insert(peer, brief(&error));
                    continue;
                }
                Err(other) => return Err(other),
            };
            let names: Vec<String> = sides.iter().map(|side| side.name().to_owned()).collect();
            let times = firsts.into_iter().zip(medians);
            let mut times = times.map(|(first, median)| Times { first, median });
            let ours = times.next().expect("our side is the first of the race");
            let others: BTreeMap<String, Times> = names.into_iter().skip(1).zip(times).collect();
            break (ours, others);
        };

        let expected = own.results()?;
        for rival in &mut rivals {
            let results = rival.results()?;
            compare(&work.name, rival.name(), inputs, &expected, &results)?;
        }
        for (_, peer) in &mut peers {
            let written = peer.write_results().map_err(BenchError::from);
            let results = match written.and_then(|()| exchange.results(&expected)) {
                Ok(results) => results,
                Err(error) => {
                    others.remove(peer.name());
                    left_out.insert(peer.name().to_owned(), brief(&error));
                    continue;
                }
            };
            compare(&work.name, peer.name(), inputs, &expected, &results)?;
        }
        Ok(Outcome {
            ours,
            others,
            left_out,
            versions,
        })
    }

    /// How long each of these peers compiled a piece of work: its first run, less a later one.
    pub(crate) fn compile_times(
        &self,
        work: &Work,
        wanted: &[&str],
    ) -> Result<CompileTimes, BenchError> {
        let graph = work.graph()?;
        let exchange = Exchange::new(&work.inputs(&graph)?)?;
        let mut left_out = self.missing.clone();
        left_out.retain(|peer, _| wanted.contains(&peer.as_str()));
        let mut times = BTreeMap::new();
        for environment in &self.peers {
            let name = environment.name();
            if !wanted.contains(&name) {
                continue;
            }
            let measured = self.prepare(environment, work, &exchange);
            let measured = measured.and_then(|(prepared, mut peer)| match prepared {
                Prepared::Ready { first } => {
                    // The second run may still compile, for what it has seen of the first.
                    peer.time(1)?;
                    Ok(Ok((first - peer.time(1)?).max(0.0)))
                }
                Prepared::Cannot(why) => Ok(Err(why)),
            });
            match measured {
                Ok(Ok(seconds)) => drop(times.insert(name.to_owned(), seconds)),
                Ok(Err(why)) => drop(left_out.insert(name.to_owned(), why)),
                Err(error) => drop(left_out.insert(name.to_owned(), brief(&error))),
            }
        }
        Ok(CompileTimes {
            seconds: times,
            left_out,
        })
    }

    /// A process for each piece of work, since what ran before leaves traces: loop_tool's relu(x²+1) was measured
    /// at 3.3 GB/s alone and at 0.7 after the rows before it.
    fn prepare(
        &self,
        environment: &Environment,
        work: &Work,
        exchange: &Exchange,
    ) -> Result<(Prepared, peer::Peer), PeerError> {
        let mut peer = environment.start(self.threads)?;
        let prepared = peer.prepare(work.request, exchange.folder())?;
        Ok((prepared, peer))
    }
}

/// The first line of what went wrong; some peers go on for pages.
fn brief(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

fn device(name: &str) -> Result<Backend, BenchError> {
    let known = backends();
    let found = known.iter().find(|backend| backend.name() == name);
    let found = found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|backend| backend.name()).collect();
        BenchError::Device(
            name.to_owned(),
            format!("there are only [{}]", names.join(", ")),
        )
    })?;
    found
        .availability()
        .map_err(|why| BenchError::Device(name.to_owned(), why.to_string()))?;
    Ok(found.clone())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A peer in the shell that ends when it is asked this.
    fn peer_that_ends_at(request: &str) -> String {
        format!(
            r#"#!/bin/sh
echo '{{"version": "1"}}'
while read -r word rest; do
    test "$word" = "{request}" && exit 3
    echo '{{"first": 0.1, "seconds": 0.1}}'
done
"#
        )
    }

    #[test]
    fn a_peer_that_ends_at_any_moment_is_left_out_and_the_row_stays() {
        for request in ["prepare", "time", "result", "never"] {
            let folder = tempfile::tempdir().expect("a folder");
            peer::pretend("numpy", folder.path(), &peer_that_ends_at(request));
            let options = Options {
                device: "interp".to_owned(),
                against: Against::Named(vec!["numpy".to_owned()]),
                only: None,
                samples: 3,
                threads: NonZero::<usize>::MIN,
                environments: folder.path().to_owned(),
            };
            let field = Field::new(&options, &[], &|_| ()).expect("it is there");
            let limits = Limits {
                samples: 3,
                seconds: 0.0,
                burst: 0.0,
                rest: None,
            };
            let outcome = field.race(&Work::matmul(4), &limits, |_| true);
            let outcome = outcome.unwrap_or_else(|error| panic!("{request}: {error}"));
            assert!(outcome.ours.median > 0.0);
            assert!(outcome.others.is_empty(), "{request}");
            let why = &outcome.left_out["numpy"];
            let wanted = match request {
                // It has not written what it says.
                "never" => "cannot read `C`",
                _ => "peer `numpy` failed: it ",
            };
            assert!(why.starts_with(wanted), "{request}: {why}");
        }
    }
}
