//! Tensors print as aligned boxes; a virtual tensor prints by recomputation; scalars and curves plot in the terminal.

use crate::Checked;
use loopwright_formats::chart::TerminalOptions;
use loopwright_tensor::{Session, Tensor, TensorError, jit};

#[test]
fn tensors_print_as_aligned_boxes() {
    let table = Tensor::from([[1.0f32, -0.25], [10.5, f32::NAN]]).named(["row", "column"]);
    assert_eq!(
        table.to_string(),
        "\
f32[row 2, column 2]
┌──────────────┐
│  1.00  -0.25 │
│ 10.50    nan │
└──────────────┘"
    );
    assert_eq!(
        Tensor::numbered([2, 2, 2]).to_string(),
        "\
i64[2, 2, 2]
[0]       [1]
┌──────┐  ┌──────┐
│ 0  1 │  │ 4  5 │
│ 2  3 │  │ 6  7 │
└──────┘  └──────┘"
    );
    // A tensor that cannot be prints the reason.
    let wrong = (&table + Tensor::from([1.0f32; 3]).named(["row"])).to_string();
    assert!(
        wrong.contains("axis `row` has size 2 in one and 3 in the other"),
        "{wrong}"
    );
}

#[test]
fn a_virtual_tensor_prints_by_recomputation() -> Checked {
    let session = Session::new("interp").expect("it works everywhere");
    session.scope(|| {
        let x = Tensor::from([1.0f32, 2.0, 3.0]);
        let squares = x.square().label("squares");
        let sum = squares.sum(..);
        // Computed where it is read: it is no step, and has no memory.
        let loops = sum.loops()?;
        assert!(
            !loops.schedule().contains("squares"),
            "{}",
            loops.schedule()
        );
        assert!(loops.graph().contains("squares"), "{}", loops.graph());
        assert_eq!(sum.item()?, 14.0);
        let before = session.compilations().compiled;
        assert_eq!(
            squares.to_string(),
            "\
f32[3]
┌───────────────┐
│ 1.0  4.0  9.0 │
└───────────────┘"
        );
        // A program of its own.
        assert_eq!(session.compilations().compiled, before + 1);
        Ok(())
    })
}

#[test]
fn scalars_and_curves_plot_in_the_terminal() -> Result<(), TensorError> {
    // A scalar in every step of something compiled.
    let halve = jit("halve", |x: &Tensor| x * 0.5);
    let mut x = Tensor::scalar(64.0f32);
    let mut seen = Vec::new();
    for _ in 0..8 {
        x = halve.call(&x)?;
        seen.push(x.item()? as f32);
    }
    let curve = Tensor::from(seen).named(["step"]);
    assert_eq!(curve.sparkline(8)?, "█▄▃▂▁▁▁▁");
    let chart = curve.plot("loss")?;
    let options = TerminalOptions {
        width: 30,
        height: 4,
        ascii: true,
        ..TerminalOptions::default()
    };
    assert_eq!(
        chart.terminal(&options),
        "\
loss
   |*
20 + **
   |   ******
 0 +         *****************
   ++-----------------+-------
    0                 5
               step"
    );
    assert!(chart.svg().starts_with("<svg"));
    // A curve for each row, and nothing for more axes.
    assert!(
        Tensor::numbered([2, 5])
            .plot("rows")?
            .terminal(&options)
            .contains("rows")
    );
    let error = Tensor::numbered([2, 2, 2])
        .plot("boxes")
        .expect_err("there are too many axes");
    assert_eq!(
        error.kind().to_string(),
        "`plot` of [2, 2, 2]: a curve has one axis, and several curves have two"
    );
    Ok(())
}
