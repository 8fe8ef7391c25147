//! Layouts of blocks in blocks, most of which do not divide what is around them: what is written is read back.

use loopwright_graph::parse;
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Module, validate};
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::{KernelParam, Lowered, lower};
use loopwright_text::Source;

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 33) as usize % bound
    }

    /// Places of one or two dimensions as loops over them would be, each with falling steps and 1 last.
    fn order(&mut self, dims: &[&'static str]) -> Vec<(&'static str, usize)> {
        let mut open: Vec<(&str, Vec<usize>)> = Vec::new();
        for dim in dims {
            let mut steps = vec![1];
            let mut step = 1;
            for _ in 0..self.below(4) {
                step = match self.below(3) {
                    0 => step * 2,
                    _ => step + 1 + self.below(7),
                };
                steps.push(step);
            }
            open.push((*dim, steps));
        }
        let mut order = Vec::new();
        while !open.is_empty() {
            let at = self.below(open.len());
            let (dim, steps) = &mut open[at];
            order.extend(steps.pop().map(|step| (*dim, step)));
            if steps.is_empty() {
                open.remove(at);
            }
        }
        order
    }

    /// Loops over `i` and `j`, after some that are there already; the last one now and then in lanes or written out.
    fn loops(&mut self, shared: &[(&'static str, usize)]) -> String {
        let mut loops = shared.to_vec();
        for (dim, step) in self.order(&["i", "j"]) {
            let mut around = shared.iter().rev().filter(|outer| outer.0 == dim);
            if around.next().is_none_or(|outer| step < outer.1) {
                loops.push((dim, step));
            }
        }
        let mut how = ["", "", " unroll", ""][self.below(4)];
        if self.below(3) == 0 {
            // Lanes of a block of their own.
            let (dim, _) = loops.pop().expect("there is a last loop");
            let lanes = [2, 4, 8][self.below(3)];
            loops.retain(|(other, step)| *other != dim || *step > lanes);
            loops.extend([(dim, lanes), (dim, 1)]);
            how = " vectorize";
        }
        text(&loops) + how
    }
}

fn text(order: &[(&'static str, usize)]) -> String {
    let name = |(dim, step): &(&str, usize)| match step {
        1 => (*dim).to_owned(),
        step => format!("{dim}/{step}"),
    };
    order.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The kernel, or `None` if the schedule is none for the program.
fn lowered(program: &str, steps: &str) -> Option<Lowered> {
    let program = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", program.as_str()))
        .expect("the program is right")
        .with_stores();
    let text = format!("loopwright schedule 1\n{steps}");
    let schedule = parse_schedule(&Source::new("program.schedule", text.as_str()), &graph).ok()?;
    let plan = Plan::new(graph, schedule).ok()?;
    lower(&plan, "program").ok()
}

fn run(module: &Module, lowered: &Lowered, x: &[f32]) -> Vec<f32> {
    let bytes = |x: &[f32]| x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let input = bytes(x);
    let mut result = bytes(&vec![f32::NAN; x.len()]);
    let elements = lowered.scratch.iter().map(|scratch| {
        let elements = scratch.elements.as_const().expect("sizes are known");
        bytes(&vec![f32::NAN; elements as usize])
    });
    let mut scratch: Vec<Vec<u8>> = elements.collect();
    let mut free = scratch.iter_mut();
    let mut output = Some(&mut result);
    let mut args: Vec<Argument<'_>> = lowered
        .params
        .iter()
        .map(|param| match param {
            KernelParam::Parameter(_) => Argument::Read(&input),
            KernelParam::Output(_) => Argument::Write(output.take().expect("there is one output")),
            KernelParam::Scratch(_) => Argument::Write(free.next().expect("each has its number")),
            other => panic!("the program has no parameter {other:?}"),
        })
        .collect();
    interpret(module, "program", &mut args, Grid::default())
        .unwrap_or_else(|error| panic!("{error}\n{module}"));
    drop(args);
    let result = result.chunks(4);
    result
        .map(|at| f32::from_le_bytes([at[0], at[1], at[2], at[3]]))
        .collect()
}

/// Writes an array under `layout` and `loops`, reads it back under those of `reader`, and checks every element.
/// Returns whether there is such a schedule.
fn written_and_read([m, n]: [usize; 2], mirrored: bool, steps: &str) -> bool {
    let read = match mirrored {
        true => format!("h[i, {} - j]", n - 1),
        false => "h[i, j]".to_owned(),
    };
    let program = format!("input x: f32[i={m}, j={n}]\nh = x + 1\ny[i, j] = {read}\noutput y\n");
    let Some(lowered) = lowered(&program, steps) else {
        return false;
    };
    validate(&lowered.module).unwrap_or_else(|e| panic!("{e}\n{}", lowered.module));
    let x: Vec<f32> = (0..m * n).map(|at| at as f32).collect();
    let want = (0..m * n).map(|at| match mirrored {
        true => x[at / n * n + n - 1 - at % n] + 1.0,
        false => x[at] + 1.0,
    });
    let want: Vec<f32> = want.collect();
    let mut optimised = lowered.module.clone();
    Pipeline::standard().run(&mut optimised, &mut |_, _| ());
    for module in [&lowered.module, &optimised] {
        let got = run(module, &lowered, &x);
        assert_eq!(got, want, "{m}x{n}, mirrored: {mirrored}\n{steps}{module}");
    }
    true
}

#[test]
fn pieces_that_do_not_divide_begin_anew_in_each_larger_one() {
    for layout in [
        "j/16, i/5, j/8, j/5, i, j",
        "j/8, j/5, i, j",
        "j/9, j/6, j/2, i, j",
        "i/4, j/24, j/16, i/3, j/3, i, j",
    ] {
        for steps in [
            format!("h: layout=[{layout}], i, j\ny: i, j\n"),
            format!("h: layout=[{layout}], i/4, j/8, i, j vectorize\ny: j/5, i, j unroll\n"),
            format!("h: layout=[{layout}], i/4, j/16, j/5, i, j\ny: share=2, i/4, j/16, i, j\n"),
            format!(
                "h: layout=[{layout}], j/20, j/5, i, j\ny: share=1, j/20, i, j/4, j vectorize\n"
            ),
        ] {
            let found = written_and_read([6, 32], false, &steps);
            assert!(found, "a schedule of the program:\n{steps}");
            let found = written_and_read([7, 37], false, &steps);
            assert!(found, "a schedule of the program:\n{steps}");
        }
    }
}

#[test]
fn random_layouts_are_read_back_as_they_were_written() {
    let mut rng = Rng(0);
    let mut checked = 0;
    for _ in 0..2500 {
        let sizes = [1 + rng.below(20), 1 + rng.below(40)];
        let mirrored = rng.below(3) == 0;
        let layout = text(&rng.order(&["i", "j"]));
        let mut shared = rng.order(if mirrored { &["i"] } else { &["i", "j"] });
        shared.truncate(rng.below(3));
        let written = rng.loops(&shared);
        let read = rng.loops(&shared);
        let share = shared.len();
        let steps = format!("h: layout=[{layout}], {written}\ny: share={share}, {read}\n");
        checked += usize::from(written_and_read(sizes, mirrored, &steps));
    }
    assert!(checked > 1500, "most are schedules: {checked} of 2500");
}
