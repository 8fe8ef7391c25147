//! Who takes part: our backend, other backends of ours, peers.

use crate::exchange::{Exchange, compare};
use crate::peer::Environment;
use crate::race::{Limits, Racer, race};
use crate::side::Side;
use crate::work::Work;
use crate::{BenchError, Options};
use loopwright::backend::{Backend, backends};
use std::collections::BTreeMap;
use std::num::NonZero;

/// All who take part in a suite.
pub(crate) struct Field {
    ours: Backend,
    /// Other backends of ours, which can be peers, too.
    pub(crate) rivals: Vec<Backend>,
    peers: Vec<Environment>,
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

/// One piece of work, by all who can do it.
pub(crate) struct Outcome {
    pub(crate) ours: Times,
    pub(crate) others: BTreeMap<String, Times>,
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
    /// Makes what is missing of the peers' environments; `say` hears about it.
    pub(crate) fn new(options: &Options, say: &dyn Fn(&str)) -> Result<Field, BenchError> {
        let mut field = Field {
            ours: device(&options.device)?,
            rivals: Vec::new(),
            peers: Vec::new(),
            threads: options.threads,
        };
        for peer in &options.against {
            if backends().iter().any(|backend| backend.name() == peer) {
                field.rivals.push(device(peer)?);
                continue;
            }
            let environment = Environment::prepare(peer, &options.environments, say)?;
            field.peers.push(environment);
        }
        Ok(field)
    }

    /// The names of the peers, rivals not among them.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &'static str> {
        self.peers.iter().map(Environment::name)
    }

    /// Measures a piece of work in turn. A peer that does not have it is left out; one whose results differ from
    /// ours is an error.
    pub(crate) fn race(&self, work: &Work, limits: &Limits) -> Result<Outcome, BenchError> {
        let graph = work.graph()?;
        let inputs = work.inputs(&graph)?;
        let exchange = Exchange::new(&inputs)?;
        let mut own = Side::new(work, &graph, &inputs, &self.ours)?;
        let mut rivals = Vec::with_capacity(self.rivals.len());
        for rival in &self.rivals {
            rivals.push(Side::new(work, &graph, &inputs, rival)?);
        }
        let mut peers = Vec::with_capacity(self.peers.len());
        for environment in &self.peers {
            // A process for each piece of work, since what ran before leaves traces: loop_tool's relu(x²+1) was
            // measured at 3.3 GB/s alone and at 0.7 after the rows before it.
            let mut peer = environment.start(self.threads)?;
            if let Some(first) = peer.prepare(work.request, exchange.folder())? {
                peers.push((first, peer));
            }
        }

        let mut firsts = vec![own.first];
        let mut sides: Vec<&mut dyn Racer> = vec![&mut own];
        for rival in &mut rivals {
            firsts.push(rival.first);
            sides.push(rival);
        }
        for (first, peer) in &mut peers {
            firsts.push(*first);
            sides.push(peer);
        }
        let medians = race(&mut sides, limits)?;
        let names: Vec<String> = sides.iter().map(|side| side.name().to_owned()).collect();
        let times = firsts.into_iter().zip(medians);
        let mut times = times.map(|(first, median)| Times { first, median });
        let ours = times.next().expect("our side is the first of the race");
        let others = names.into_iter().skip(1).zip(times).collect();

        let expected = own.results()?;
        for rival in &mut rivals {
            let results = rival.results()?;
            compare(&work.name, rival.name(), &inputs, &expected, &results)?;
        }
        for (_, peer) in &mut peers {
            peer.write_results()?;
            let results = exchange.results(&expected)?;
            compare(&work.name, peer.name(), &inputs, &expected, &results)?;
        }
        Ok(Outcome { ours, others })
    }
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
