//! From one stream's memory to another's, on one device and on two.

use super::bench::{Bench, Stop, ensure, given, link, write};
use loopwright_runtime::{Device, Merge};

const NEXT: &str = "input x: i64[i=5]\noutput y = x + 1\n";

/// What a stream wrote is copied to another one of the same device.
pub(super) fn copies_between_streams(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    copies(bench, &device, &device)
}

/// What a device wrote is copied to another one.
pub(super) fn copies_between_devices(bench: &Bench<'_>) -> Result<(), Stop> {
    let [from, to] = bench.two_devices()?;
    copies(bench, &from, &to)?;
    copies(bench, &to, &from)
}

fn copies(bench: &Bench<'_>, source: &Device, target: &Device) -> Result<(), Stop> {
    let code = bench.compile(source, "next", NEXT)?;
    let from = link(&source.stream()?.context(), &code)?;
    let to = link(&target.stream()?.context(), &code)?;
    for round in 0..3 {
        let x = [1, 2, 3, 4, 5].map(|x| x * (round + 1));
        write(from.context(), "x", &x)?;
        from.schedule(&[])?;
        for name in ["x", "y"] {
            let copied = to.context().copy_from(name, from.context())?;
            ensure(copied, || format!("`{name}` is not copied"))?;
        }
        given(to.context(), "x", &x)?;
        bench.computed(to.context(), "y", &x.map(|x| x + 1))?;
        // The other way round, so that both have been read and written.
        to.schedule(&[])?;
        from.context().copy_from("y", to.context())?;
        bench.computed(from.context(), "y", &x.map(|x| x + 1))?;
    }
    let copied = to.context().copy_from("absent", from.context())?;
    ensure(!copied, || {
        "something that is not there is copied".to_owned()
    })
}

/// A routine combines the value that another context had of a node, wherever that is.
pub(super) fn merges_by_copy(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    merges(bench, &device, &device)?;
    match bench.two_devices() {
        Ok([a, b]) => merges(bench, &a, &b),
        Err(Stop::NotApplicable(_)) => Ok(()),
        Err(stop) => Err(stop),
    }
}

fn merges(bench: &Bench<'_>, target: &Device, source: &Device) -> Result<(), Stop> {
    let text = "state g: i64[i=4]\ninput g.merge: i64[i]\nupdate g = g + g.merge\n";
    let code = bench.compile(target, "add", text)?;
    ensure(code.merge_node() == Some("g"), || {
        "the program merges `g`".to_owned()
    })?;
    let mine = link(&target.stream()?.context(), &code)?;
    mine.context().zero("g")?;
    for factor in [1, 10, 100] {
        let theirs = link(&source.stream()?.context(), &code)?;
        write(theirs.context(), "g", &[1, 2, 3, 4].map(|g| g * factor))?;
        mine.context()
            .merge_from("g", theirs.context(), Merge::Copy)?;
        // The source is free again: the routine does not see this.
        write(theirs.context(), "g", &[-1; 4])?;
        mine.schedule(&[])?;
        given(theirs.context(), "g", &[-1; 4])?;
    }
    bench.computed(mine.context(), "g", &[111, 222, 333, 444])
}
