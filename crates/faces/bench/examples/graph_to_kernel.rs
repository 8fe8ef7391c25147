//! Takes a program from graph to kernel a number of times, for counting instructions:
//! `graph_to_kernel matmul|network ROUNDS`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let work = arguments.next().unwrap_or_else(|| "matmul".to_owned());
    let rounds = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    loopwright_bench::graph_to_kernel(&work, rounds)?;
    Ok(())
}
