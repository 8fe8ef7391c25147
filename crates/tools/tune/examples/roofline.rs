//! Prints the ceilings of this machine.

use loopwright_tune::roofline::Roofline;

fn main() {
    let start = std::time::Instant::now();
    let ceilings = Roofline::measure();
    println!(
        "{:.1} GFLOP/s, copy {:.1} GB/s, read {:.1} GB/s, in {:.0} ms",
        ceilings.flops_per_second / 1e9,
        ceilings.copy_bytes_per_second / 1e9,
        ceilings.read_bytes_per_second / 1e9,
        start.elapsed().as_secs_f64() * 1e3,
    );
}
