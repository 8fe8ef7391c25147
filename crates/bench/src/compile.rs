//! The `compile` suite: how fast a graph becomes a kernel, and how fast what `cc` makes of the default
//! schedule runs beside loop_tool.

use crate::peer::{Environment, Peer};
use crate::report::{Report, Row};
use crate::sample::{median, seconds};
use crate::{BenchError, Options};
use loopwright::backend::{Backend, Bound, CompileOptions, Compiler, Stages, Target, backends};
use loopwright::graph::{Array, Graph, parse};
use loopwright::kernel::passes::Pipeline;
use loopwright::text::Source;
use std::collections::BTreeMap;

/// A machine that is the same everywhere, so that compile times and instruction counts compare.
const TARGET: Target = Target {
    vector_bytes: 64,
    vector_registers: 32,
    threads: 1,
    l1_bytes: 32 << 10,
    l2_bytes: 1 << 20,
};

/// A program of the suite.
struct Work {
    name: String,
    /// How a peer is asked for the same.
    request: String,
    text: String,
    flops: f64,
}

fn matmul(n: u32) -> Work {
    Work {
        name: format!("matmul {n}"),
        request: format!("matmul {n}"),
        text: format!(
            "loopwright program 1\n\
             input A: f32[i={n}, k={n}]\n\
             input B: f32[k, j={n}]\n\
             output C = sum[k](A * B)\n"
        ),
        flops: 2.0 * f64::from(n).powi(3),
    }
}

fn conv(channels: u32, out: u32) -> Work {
    let size = out + 2;
    let (c, o) = (f64::from(channels), f64::from(out));
    Work {
        name: format!("conv 3x3, {channels} channels, {out}x{out}"),
        request: format!("conv {channels} {out} 3"),
        text: format!(
            "loopwright program 1\n\
             dim y = {out}, x = {out}\n\
             input W: f32[o={channels}, c={channels}, ky=3, kx=3]\n\
             input X: f32[c, iy={size}, ix={size}]\n\
             Y[o, y, x] = sum[c, ky, kx](W * X[c, y + ky, x + kx])\n\
             output Y\n"
        ),
        flops: 2.0 * c * c * 9.0 * o * o,
    }
}

/// The text of an MNIST-class convolutional network, forward.
const NETWORK: &str = include_str!("../../../examples/programs/mnist_cnn.lw");

fn parsed(name: &str, text: &str) -> Result<Graph, BenchError> {
    let source = Source::new(name, text);
    parse(&source).map_err(|error| BenchError::Ours {
        work: name.to_owned(),
        reason: error.render(&source),
    })
}

fn ours(work: &str, error: impl ToString) -> BenchError {
    BenchError::Ours {
        work: work.to_owned(),
        reason: error.to_string(),
    }
}

/// Takes `matmul` or `network` from graph to optimised kernel, `rounds` times; the instruction counts
/// that the project tracks are counted over this.
pub fn graph_to_kernel(work: &str, rounds: usize) -> Result<(), BenchError> {
    let text = match work {
        "matmul" => matmul(512).text,
        "network" => NETWORK.to_owned(),
        other => return Err(ours(other, "this suite has only `matmul` and `network`")),
    };
    let graph = parsed(work, &text)?;
    let pipeline = Pipeline::standard();
    for _ in 0..rounds {
        Stages::new(&graph, None, &TARGET, &pipeline).map_err(|error| ours(work, error))?;
    }
    Ok(())
}

/// Runs the suite; `say` hears about progress.
pub fn compile_suite(options: &Options, say: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let wanted = |name: &str| {
        let only = options.only.as_deref();
        only.is_none_or(|only| name.contains(only))
    };
    let mut rows = Vec::new();
    // The bars are the project's own: 1 ms, and what loop_tool states for such a network, 13 ms.
    for (name, text, goal) in [
        ("graph to kernel: matmul 512", matmul(512).text, 1.0),
        (
            "graph to kernel: MNIST-class network",
            NETWORK.to_owned(),
            13.0,
        ),
    ] {
        if wanted(name) {
            say(name);
            rows.push(compile_row(name, &text, goal, options.samples)?);
        }
    }
    let device = device(&options.device)?;
    let mut peers = Vec::new();
    let mut rivals = Vec::new();
    for peer in &options.against {
        // Another backend of ours is a peer, too.
        if backends().iter().any(|backend| backend.name() == peer) {
            rivals.push(self::device(peer)?);
            continue;
        }
        let environment = Environment::prepare(peer, &options.environments, say)?;
        peers.push(environment.start()?);
    }
    let works = [64, 128, 256, 512]
        .map(matmul)
        .into_iter()
        .chain([conv(64, 56)]);
    for work in works.filter(|work| wanted(&work.name)) {
        say(&work.name);
        rows.extend(speed_rows(
            &work,
            &device,
            &rivals,
            &mut peers,
            options.samples,
        )?);
    }
    Ok(Report::new(rows))
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

fn compile_row(name: &str, text: &str, goal: f64, samples: usize) -> Result<Row, BenchError> {
    let graph = parsed(name, text)?;
    let pipeline = Pipeline::standard();
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples.max(3) {
        let (time, stages) = seconds(|| Stages::new(&graph, None, &TARGET, &pipeline));
        stages.map_err(|error| ours(name, error))?;
        times.push(time * 1e3);
    }
    let median = median(&mut times);
    Ok(Row::new(name, "ms", median, BTreeMap::new(), Some(goal)))
}

/// A piece of work on a backend of ours, ready to run, and how long its first run took, in seconds,
/// compilation included.
struct Side {
    bound: Bound<'static>,
    first: f64,
}

impl Side {
    fn new(work: &Work, backend: &Backend) -> Result<Side, BenchError> {
        let fail = |error: &dyn ToString| ours(&work.name, error.to_string());
        let graph = parsed(&work.name, &work.text)?;
        // No cache on disk: the first run compiles.
        let compiler = Compiler::new(backend.clone(), CompileOptions::default());
        let (first, bound) = seconds(|| -> Result<_, BenchError> {
            let program = compiler.compile(&graph, None).map_err(|e| fail(&e))?;
            let mut bound = program.bind(&[]).map_err(|e| fail(&e))?;
            for node in graph.parameters() {
                let shape = bound.binding().shape(&graph, node);
                let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
                let values: Vec<f64> = (0..shape.iter().product())
                    .map(|at: usize| ((at * 37) % 101) as f64 / 101.0 - 0.5)
                    .collect();
                let parts = graph.node(node);
                let array = Array::from_f64(parts.dtype, &shape, &values).map_err(|e| fail(&e))?;
                bound.give(&parts.name, array).map_err(|e| fail(&e))?;
            }
            bound.run().map_err(|e| fail(&e))?;
            Ok(bound)
        });
        Ok(Side {
            bound: bound?,
            first,
        })
    }

    fn time(&mut self, work: &Work) -> Result<f64, BenchError> {
        let (time, result) = seconds(|| self.bound.run());
        result.map_err(|error| ours(&work.name, error))?;
        Ok(time)
    }
}

/// Our speed beside the peers', and the first run of each, compilation included.
fn speed_rows(
    work: &Work,
    device: &Backend,
    rivals: &[Backend],
    peers: &mut [Peer],
    samples: usize,
) -> Result<[Row; 2], BenchError> {
    let mut own = Side::new(work, device)?;
    let mut firsts = BTreeMap::new();
    let mut sides = Vec::with_capacity(rivals.len());
    for rival in rivals {
        let side = Side::new(work, rival)?;
        firsts.insert(rival.name().to_owned(), side.first * 1e3);
        sides.push(side);
    }
    for peer in peers.iter_mut() {
        firsts.insert(peer.name().to_owned(), peer.prepare(&work.request)? * 1e3);
    }
    let mut mine = Vec::with_capacity(samples);
    let mut rival_times: Vec<Vec<f64>> = rivals.iter().map(|_| Vec::new()).collect();
    let mut peer_times: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..samples.max(3) {
        mine.push(own.time(work)?);
        for (side, times) in sides.iter_mut().zip(&mut rival_times) {
            times.push(side.time(work)?);
        }
        for (peer, times) in peers.iter_mut().zip(&mut peer_times) {
            times.push(peer.time()?);
        }
    }
    let rate = |time: f64| work.flops / time / 1e9;
    let mut speeds = BTreeMap::new();
    for (rival, times) in rivals.iter().zip(&mut rival_times) {
        speeds.insert(rival.name().to_owned(), rate(median(times)));
    }
    for (peer, times) in peers.iter_mut().zip(&mut peer_times) {
        let error = peer.check()?;
        if error > 1e-3 {
            let reason = format!("{} computes something else", peer.name());
            return Err(ours(&work.name, reason));
        }
        speeds.insert(peer.name().to_owned(), rate(median(times)));
    }
    // Twice as fast as others; no more than a tenth slower than our own.
    let goal = match (peers.is_empty(), rivals.is_empty()) {
        (true, true) => None,
        (true, false) => Some(1.0 / 1.1),
        (false, _) => Some(2.0),
    };
    Ok([
        Row::new(
            format!("{}: first run", work.name),
            "ms",
            own.first * 1e3,
            firsts,
            None,
        ),
        Row::new(
            work.name.clone(),
            "GFLOP/s",
            rate(median(&mut mine)),
            speeds,
            goal,
        ),
    ])
}
