//! Conway's game of life on a torus: a glider gun's worth of loops in four lines of tensors.
//!
//! It shows integers, `roll`, and a function that is called again and again on what it gave.
//!
//! ```console
//! $ cargo run --release --example life [GENERATIONS]
//! ```
//!
//! It plays in the terminal; where the output is no terminal, it prints the first and the last board.

use loopwright::chart::{HeatMap, TerminalOptions};
use loopwright::prelude::*;
use loopwright::tensor::random::{Key, bernoulli};
use std::error::Error;
use std::io::IsTerminal;
use std::thread::sleep;
use std::time::Duration;

const ROWS: usize = 44;
const COLUMNS: usize = 76;

fn main() -> Result<(), Box<dyn Error>> {
    let generations = std::env::args()
        .nth(1)
        .map_or(Ok(300), |count| count.parse())?;
    let live = jit("generation", generation);
    let mut board = bernoulli(&Key::new(42), [ROWS, COLUMNS], 0.3);
    let plays = std::io::stdout().is_terminal();
    for at in 0..=generations {
        if plays || at == 0 || at == generations {
            let alive = board.cast(DType::F32).sum(..).item()?;
            println!("{}", show(&board)?);
            println!("generation {at:>4}, {alive} alive");
        }
        if plays && at < generations {
            sleep(Duration::from_millis(30));
            // Back to the first line of the board: a cell of the terminal shows two rows.
            print!("\x1b[{}A", ROWS / 2 + 1);
        }
        board = live.call(&board)?;
    }
    Ok(())
}

/// The next generation of a board of bools.
fn generation(board: &Tensor) -> Tensor {
    let cells = board.cast(DType::U8);
    // Sums of three in a row, and of three such sums; the cell itself is not its own neighbour.
    let three = |x: &Tensor, axis: i32| x + x.roll(1, axis) + x.roll(-1, axis);
    let neighbours = three(&three(&cells, 0), 1) - &cells;
    let born = neighbours.eq(3);
    born | (board & neighbours.eq(2))
}

fn show(board: &Tensor) -> Result<String, Box<dyn Error>> {
    let options = TerminalOptions::for_stdout().width(COLUMNS).height(ROWS);
    let cells = board.cast(DType::U8).array()?;
    Ok(HeatMap::new(&cells)
        .range(0.0, 1.0)
        .flipped()
        .terminal(&options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board of `#` and `.`.
    fn board(rows: [&str; 6]) -> Tensor {
        let cells: Vec<bool> = rows
            .iter()
            .flat_map(|row| row.chars().map(|c| c == '#'))
            .collect();
        let cells: Vec<u8> = cells.into_iter().map(u8::from).collect();
        Tensor::new(&cells, [6, rows[0].len()]).cast(DType::Bool)
    }

    fn same(a: &Tensor, b: &Tensor) -> Result<bool, TensorError> {
        Ok(a.eq(b).all(..).item()? == 1.0)
    }

    #[test]
    fn a_blinker_blinks_and_a_block_stays() -> Result<(), TensorError> {
        let before = board([
            "..........",
            ".#........",
            ".#...##...",
            ".#...##...",
            "..........",
            "..........",
        ]);
        let after = board([
            "..........",
            "..........",
            "###..##...",
            ".....##...",
            "..........",
            "..........",
        ]);
        assert!(same(&generation(&before), &after)?);
        assert!(same(&generation(&after), &before)?);
        Ok(())
    }

    #[test]
    fn a_glider_moves_by_one_in_four_generations_also_over_the_rim() -> Result<(), TensorError> {
        let first = board([
            ".#......", "..#.....", "###.....", "........", "........", "........",
        ]);
        let live = jit("generation", generation);
        let mut now = first.clone();
        // Around the torus and back: 24 is how far both 6 and 8 take to come round.
        for moved in 1..=24 {
            for _ in 0..4 {
                now = live.call(&now)?;
            }
            let wanted = first.roll(moved, 0).roll(moved, 1);
            assert!(same(&now, &wanted)?, "after {moved} moves");
        }
        assert!(same(&now, &first)?);
        Ok(())
    }
}
