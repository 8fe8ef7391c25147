//! Looking at the loops of tensors and functions, and shaping them.

use loopwright_cc as _;
use loopwright_graph::parse;
use loopwright_interp as _;
use loopwright_tensor::{DType, Session, Tensor, TensorError, Variable, jit};
use loopwright_text::Source;
use loopwright_x86 as _;

/// Runs a test on the interpreter, whose schedules are the same on every machine.
fn on_interp(test: impl FnOnce() -> Result<(), TensorError>) -> Result<(), TensorError> {
    let session = Session::new("interp").expect("the interpreter works everywhere");
    session.scope(test)
}

fn operands() -> (Tensor, Tensor) {
    let a = Tensor::numbered([5, 3]).named(["i", "k"]);
    let b = Tensor::numbered([3, 4]).named(["k", "j"]);
    (a.cast(DType::F32), b.cast(DType::F32))
}

fn layer((a, b): &(Tensor, Tensor)) -> Tensor {
    let sums = (a * b).sum("k").label("sums");
    (sums - 20.0).relu().label("layer")
}

fn message<T>(outcome: Result<T, TensorError>) -> String {
    match outcome {
        Ok(_) => panic!("it went well"),
        Err(error) => error.kind().to_string(),
    }
}

#[test]
fn labels_and_names_of_axes_are_those_of_the_loops() -> Result<(), TensorError> {
    on_interp(|| {
        let function = jit("layer", layer);
        let loops = function.loops(&operands())?;
        assert_eq!(
            loops.schedule(),
            "loopwright schedule 1\nsums: i, j, k\nlayer: i, j\n"
        );
        assert_eq!(loops.to_string(), loops.tree());
        assert!(
            loops.graph().contains("input a0: f32[i, k]"),
            "{}",
            loops.graph()
        );
        assert!(loops.kernel().contains("kernel @"), "{}", loops.kernel());
        assert!(!loops.code().is_empty());
        // Looking traces and compiles, and the call that follows does not.
        assert_eq!(function.reports().len(), 1);
        function.call(&operands())?;
        assert_eq!(function.reports().len(), 1);
        Ok(())
    })
}

#[test]
fn names_that_meet_others_are_told_apart() -> Result<(), TensorError> {
    on_interp(|| {
        // Labels that parameters and results could have are left out; `i` is an axis; `twice` stands twice.
        let x = Tensor::from([1.0f32, 2.0]).named(["i"]);
        let y = (x.exp().label("twice") + 1.0).label("i") * x.log().label("twice");
        let y = y.sum("i").label("x0").label("no word") + 1.0;
        let graph = y.loops()?.graph();
        for name in ["twice = exp(x0)", "twice_2 = log(x0)", "i_2 = ", "y0 = "] {
            assert!(graph.contains(name), "{name} in\n{graph}");
        }
        assert!(!graph.contains("word"), "{graph}");
        Ok(())
    })
}

#[test]
fn a_label_changes_no_value_and_no_gradient() -> Result<(), TensorError> {
    let x = Tensor::from([0.5f64, -1.5]);
    let gradient = |label: bool| {
        let inner = x.sin();
        let inner = if label { inner.label("inner") } else { inner };
        let [dx] = (inner.square() * &x).sum(..).gradients([&x]);
        dx.to_vec::<f64>()
    };
    assert_eq!(gradient(true)?, gradient(false)?);
    Ok(())
}

#[test]
fn a_schedule_is_set_changed_and_taken_back() -> Result<(), TensorError> {
    for device in ["interp", "x86", "cc"] {
        let Ok(session) = Session::new(device) else {
            continue;
        };
        session.scope(|| {
            let function = jit("layer", layer);
            let expected = layer(&operands()).to_vec::<f32>()?;
            let made = function.loops(&operands())?;
            let held = function.call(&operands())?;
            let rows = "loopwright schedule 1\nsums: i, k, j\nlayer: i, j\n";
            let set = made.set_schedule(rows)?;
            assert_eq!(set.schedule(), rows);
            assert_eq!(function.loops(&operands())?.schedule(), rows);
            assert_eq!(function.call(&operands())?.to_vec::<f32>()?, expected);
            // What was computed before stays.
            assert_eq!(held.to_vec::<f32>()?, expected);
            let split = set.mutate("split sums i 2")?;
            assert!(split.tree().contains("for i/2 {"), "{split}");
            assert_eq!(function.call(&operands())?.to_vec::<f32>()?, expected);
            // A tuned file has a line about the device.
            let text = "loopwright schedule 1\ndevice \"some\"\nsums: j, i, k\nlayer: i, j\n";
            made.set_schedule(text)?;
            assert_eq!(function.call(&operands())?.to_vec::<f32>()?, expected);
            let back = split.reset_schedule();
            assert_eq!(back.schedule(), made.schedule());
            assert_eq!(function.call(&operands())?.to_vec::<f32>()?, expected);
            assert_eq!(function.reports().len(), 1);
            Ok(())
        })?;
    }
    Ok(())
}

/// What a device's own schedule looks like, as a text, fits the program that it was made for: `tune` and the
/// editor work on the program in a file, and what they find is set here.
#[test]
fn the_program_and_its_schedule_go_through_files() -> Result<(), TensorError> {
    for device in ["interp", "x86"] {
        let Ok(session) = Session::new(device) else {
            continue;
        };
        session.scope(|| {
            // A gather by a one-hot product is rewritten before it is scheduled.
            let table = Tensor::numbered([9, 40]).cast(DType::F32);
            let words = Tensor::from([3i64, 8, 3])
                .one_hot(9, DType::F32)
                .matmul(&table);
            let y = words.matmul(&table.t()).softmax(-1);
            let made = y.loops()?;
            let source = Source::new("program.lw", made.graph());
            let graph = parse(&source).map_err(|error| error.render(&source));
            assert_eq!(graph.expect("it is a program").to_string(), made.graph());
            let set = made.set_schedule(&made.schedule())?;
            assert_eq!(set.schedule(), made.schedule());
            assert_eq!(set.tree(), made.tree());
            Ok(())
        })?;
    }
    Ok(())
}

/// Words that mean something in the language, in C or in a schedule are names like others.
#[test]
fn axes_and_labels_may_have_any_name() -> Result<(), TensorError> {
    for device in ["interp", "x86", "cc"] {
        let Ok(session) = Session::new(device) else {
            continue;
        };
        session.scope(|| {
            let words = [
                "size",
                "for",
                "sum",
                "index",
                "int",
                "double",
                "exp",
                "share",
                "f32",
                "program",
                "größe",
                "é",
                "two words",
                "x0",
            ];
            for pair in words.windows(2) {
                let [first, second] = pair else { continue };
                let x = Tensor::numbered([3, 5])
                    .cast(DType::F32)
                    .named([first, second]);
                let label = |tensor: Tensor| tensor.label("while").label("const");
                let y = label((x.exp2() * x.rename(0, "other")).sum(*second)) + x.max(*second);
                let made = y.loops()?;
                let source = Source::new("program.lw", made.graph());
                let graph = parse(&source).map_err(|error| error.render(&source));
                assert_eq!(graph.expect("it is a program").to_string(), made.graph());
                made.set_schedule(&made.schedule())?;
                let plain = x.unnamed();
                let products = plain.exp2().unsqueeze(1) * &plain;
                let expected = products.sum(2) + plain.max(1).unsqueeze(1);
                assert_eq!(
                    y.to_vec::<f32>()?,
                    expected.to_vec::<f32>()?,
                    "{device} {first}"
                );
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_step_with_variables_takes_a_schedule_while_it_is_used() -> Result<(), TensorError> {
    on_interp(|| {
        let w = Variable::new(&Tensor::from([1.0f32, 2.0]).named(["i"]));
        let step = jit("step", {
            let w = w.clone();
            move |x: &Tensor| {
                let loss = (w.get() * x).square().sum("i").label("loss");
                let [dw] = loss.gradients([&w.get()]);
                w.set(&(w.get() - dw * 0.25))?;
                Ok::<_, TensorError>(loss)
            }
        });
        let x = Tensor::from([1.0f32, 1.0]).named(["i"]);
        step.call(&x)?;
        let loops = step.loops(&x)?;
        let changed = loops.mutate("annotate loss i unroll")?;
        assert!(
            changed.schedule().contains("loss: i unroll"),
            "{}",
            changed.schedule()
        );
        step.call(&x)?;
        // Every call takes half.
        assert_eq!(w.get().to_vec::<f32>()?, [0.25, 0.5]);
        Ok(())
    })
}

#[test]
fn mistakes_show_their_place() -> Result<(), TensorError> {
    on_interp(|| {
        let loops = jit("layer", layer).loops(&operands())?;
        assert_eq!(
            message(loops.set_schedule("loopwright schedule 1\nsum: i, j, k\n")),
            "the program has no node `sum`\n  --> schedule:2:1\n  |\n2 | sum: i, j, k\n  | ^^^\n  \
             = help: nodes without a name are written `%3`; `dump --stage graph` shows them"
        );
        assert_eq!(
            message(loops.set_schedule("loopwright schedule 1\nsums: i, j\nlayer: i, j\n")),
            "`sums` needs a last loop over `k` with step 1"
        );
        assert_eq!(
            message(loops.mutate("annotate sums k parallel")),
            "`annotate sums k parallel` is refused: the loop of `sums` over `k` cannot be parallel: each iteration needs the one before"
        );
        assert_eq!(
            message(loops.mutate("inline layer")),
            "`layer` cannot be inline: it is a result of the program, which has its memory"
        );
        // Nothing has changed.
        assert_eq!(
            loops.schedule(),
            jit("layer", layer).loops(&operands())?.schedule()
        );
        let known = Tensor::from([1.0f32]);
        assert_eq!(
            message(known.loops()),
            "`loops`: the value is there already, so nothing is computed; ask before it is, or for the loops of a `jit` function"
        );
        let traced = jit("outer", |x: &Tensor| {
            let inner = jit("inner", |x: &Tensor| x + 1.0);
            inner.loops(x)?;
            Ok::<_, TensorError>(x + 1.0)
        });
        assert!(
            message(traced.call(&known))
                .starts_with("the value of a tensor was asked for while `outer`")
        );
        Ok(())
    })
}
