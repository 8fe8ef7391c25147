//! Matrix products whose sizes are not known when they are compiled, beside those that are compiled for their sizes.

use crate::BenchError;
use crate::exchange::compare;
use crate::field::Ours;
use crate::race::{Limits, Racer, race};
use crate::report::{Measured, Row};
use crate::side::Side;
use crate::work::Work;
use loopwright::backend::Backend;
use std::collections::BTreeMap;

/// A tenth slower at most.
const LEAST_RATIO: f64 = 1.0 / 1.1;

pub(super) fn rows(
    backend: &Backend,
    limits: &Limits,
    wanted: &dyn Fn(&str) -> bool,
    say: &dyn Fn(&str),
    measured: &mut Measured,
) {
    for size in [128, 256, 512, 1024, 2048] {
        let symbolic = Work::symbolic_matmul(size);
        if wanted(&symbolic.name) {
            say(&symbolic.name);
            let row = row(&symbolic, &Work::matmul(size), backend, limits);
            measured.take(&symbolic.name, row.map(|row| [row]));
        }
    }
}

fn row(
    symbolic: &Work,
    specialised: &Work,
    backend: &Backend,
    limits: &Limits,
) -> Result<Row, BenchError> {
    let graph = symbolic.graph()?;
    let inputs = symbolic.inputs(&graph)?;
    let mut own = Side::new(symbolic, &graph, &inputs, backend)?;
    let mut other = Side::new(specialised, &specialised.graph()?, &inputs, backend)?;
    let sides: &mut [&mut dyn Racer] = &mut [&mut own, &mut other];
    let medians = race(sides, limits)?;
    let name = "specialised";
    compare(
        &symbolic.name,
        name,
        &inputs,
        &own.results()?,
        &other.results()?,
    )?;
    let counted = symbolic.counted;
    let row = Row::new(
        symbolic.name.clone(),
        counted.unit(),
        counted.figure(medians[0]),
        BTreeMap::from([(name.to_owned(), counted.figure(medians[1]))]),
        Some(LEAST_RATIO),
    );
    Ok(row.beside_the_list())
}
