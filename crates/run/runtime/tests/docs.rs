//! The listing of docs/runtime.md: compiled and run here, and the page has the same text.

use {loopwright_cc as _, loopwright_interp as _};

#[test]
fn the_listing_runs() -> Result<(), Box<dyn std::error::Error>> {
    // listing
    use loopwright_graph::{Graph, parse};
    use loopwright_runtime::{CodeOptions, LinkOptions, Merge, Runtime, RuntimeOptions};
    use loopwright_text::Source;

    fn program(text: &str) -> Result<Graph, String> {
        let source = Source::new("example.lw", format!("loopwright program 1\n{text}"));
        parse(&source).map_err(|error| error.render(&source))
    }

    // A runtime, and the best device there is.
    let runtime = Runtime::new(RuntimeOptions::default());
    let device = runtime.device("auto")?;

    // Code: compiled once, not tied to any memory.
    let row = program(
        "static at in 0 .. 4
         input x: f32[row=4, i=3]
         output g = x[at, i] * x[at, i]",
    )?;
    let add = program(
        "state g: f32[i=3]
         input g.merge: f32[i]
         update g = g + g.merge",
    )?;
    let row = device.compile("row", &row, &CodeOptions::default())?;
    let add = device.compile("add", &add, &CodeOptions::default())?;

    // Two streams, each with arrays of its own. Linking makes what the context lacks.
    let x = [1f32, 2., 3., 10., 20., 30., 0., 1., 0., 5., 5., 5.];
    let mut workers = Vec::new();
    for _ in 0..2 {
        let stream = device.stream()?;
        let square = stream.context().link(&row, &LinkOptions::default())?;
        square.context().write("x", &x)?;
        workers.push(square);
    }

    // `g` is in the first worker's context already, so `add` works on that very array.
    let merge = workers[0].context().link(&add, &LinkOptions::default())?;

    // Scheduling does not wait. `at` has its value from here on.
    workers[0].schedule(&[("at", 0)])?;
    workers[1].schedule(&[("at", 1)])?;

    // The second worker's `g` goes to the first stream's merge buffer when it is there.
    let first = workers[0].context();
    first.merge_from("g", workers[1].context(), Merge::Copy)?;
    merge.schedule(&[])?;

    // Reading waits.
    let g = first.read("g")?.ok_or("the context has no `g`")?;
    assert_eq!(g.to_f64(), [101., 404., 909.]);
    // end of listing
    Ok(())
}

#[test]
fn the_page_has_the_listing() {
    let here = include_str!("docs.rs");
    let listing = here
        .split_once("    // listing\n")
        .and_then(|(_, rest)| rest.split_once("    // end of listing\n"))
        .map(|(listing, _)| listing)
        .expect("the listing stands between its marks");
    let listing: String = listing
        .lines()
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)))
        .collect();
    let page = include_str!("../../../../docs/runtime.md");
    let shown = page
        .split_once("```rust\n")
        .and_then(|(_, rest)| rest.split_once("```\n"))
        .map(|(shown, _)| shown)
        .expect("the page has a listing");
    assert_eq!(
        shown, listing,
        "docs/runtime.md and tests/docs.rs show the same"
    );
}
