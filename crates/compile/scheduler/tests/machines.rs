//! Programs are scheduled for any machine: whatever its caches, registers and threads are, the loops are a nest.

use loopwright_graph::parse;
use loopwright_looptree::{MatrixUnit, Plan, Target};
use loopwright_scheduler::{Effort, Order, schedule_with};
use loopwright_text::Source;

/// A product of three matrices.
const CHAIN: &str = "input a: f32[i=1024, k=1024]\ninput b: f32[k, j=1024]\ninput c: f32[j, l=1024]\n\
                     output y = sum[j](sum[k](a * b) * c)\n";

/// `softmax(x @ w) @ w.T`.
const SOFTMAX: &str = "input x: f32[i=1024, k=1024]\ninput w: f32[k, j=1024]\n\
                       scores = sum[k](x * w)\nraised = exp(scores - max[j](scores))\n\
                       weights = raised / sum[j](raised)\n\
                       turned[j, l] = w[l, j]\ndim l = 1024\noutput y = sum[j](weights * turned)\n";

/// The scores of many classes, and the logarithm of the sum of their exponentials.
const CLASSES: &str = "input x: f32[i=512, k=256]\ninput w: f32[k, c=1000]\n\
                       scores = sum[k](x * w)\nmost = max[c](scores)\n\
                       output loss = log(sum[c](exp(scores - most))) + most\n";

/// Attention over more positions than a block of rows has.
const ATTENTION: &str = "input q: f32[h=4, s=513, d=64]\ninput key: f32[h, t=513, d]\ninput v: f32[h, t, e=64]\n\
                         scores = sum[d](q * key) * 0.125\nweights = exp(scores - max[t](scores))\n\
                         output y = sum[t](weights / sum[t](weights) * v)\n";

fn plan_with(program: &str, machine: &Target, effort: Effort) -> Plan {
    let text = format!("loopwright program 1\n{program}");
    let graph = parse(&Source::new("program.lw", text.as_str())).expect("the program is right");
    let explained = schedule_with(graph.with_stores(), machine, Order::Free, effort);
    let explained = explained.unwrap_or_else(|error| panic!("{machine:?}: {error}\n{program}"));
    explained.plan
}

/// Machines with vectors, tiles and threads of all kinds.
fn machines() -> Vec<Target> {
    let mut machines = Vec::new();
    for l1 in [1, 8, 16, 24, 32, 48, 64, 80, 96, 128] {
        for (vector_bytes, vector_registers) in
            [(0, 0), (16, 0), (16, 16), (32, 16), (64, 0), (64, 32)]
        {
            for (threads, l2) in [(1, 1024), (2, 128), (16, 2048), (128, 4096)] {
                machines.push(Target {
                    vector_bytes,
                    vector_registers,
                    threads,
                    l1_bytes: l1 << 10,
                    l2_bytes: l2 << 10,
                    ..Target::SCALAR
                });
            }
        }
    }
    machines
}

#[test]
fn products_of_products_are_scheduled_for_every_first_level_cache() {
    for machine in machines() {
        for program in [CHAIN, SOFTMAX, CLASSES, ATTENTION] {
            plan_with(program, &machine, Effort::Full);
        }
    }
}

/// Blocks of rows that are as long as the register tile are the tile's loop, which is not there twice.
#[test]
fn a_block_of_rows_as_long_as_a_tile_is_the_loop_of_the_tile() {
    let machine = Target {
        vector_bytes: 64,
        vector_registers: 32,
        ..Target::SCALAR
    };
    let plan = plan_with(CHAIN, &machine, Effort::Full).to_string();
    let line = plan.lines().find(|line| line.starts_with("%4: "));
    let line = line.unwrap_or_else(|| panic!("the first product is a step of\n{plan}"));
    assert_eq!(line.matches("i/").count(), 1, "{plan}");
    assert!(line.starts_with("%4: i/"), "{plan}");
}

#[test]
fn sums_of_millions_of_rows_are_put_in_parts_that_a_stage_can_have() {
    let machine = Target {
        vector_bytes: 64,
        vector_registers: 32,
        threads: 2,
        ..Target::SCALAR
    };
    for rows in [1i64 << 21, 2_097_185, 1 << 22, 4_194_301, 1 << 33] {
        let program = format!("input x: f32[i={rows}, j=8]\noutput y = sum[i](x)\n");
        let plan = plan_with(&program, &machine, Effort::Full).to_string();
        assert!(plan.contains("stage block"), "{plan}");
    }
}

/// A matrix unit of any shape: few running tiles, short rows, none.
#[test]
fn products_in_matrix_units_of_any_shape_are_nests() {
    let program = "input a: bf16[i=128, k=256]\ninput b: bf16[k, j=128]\n\
                   output y = sum[k](f32(a) * f32(b))\n";
    let mut in_unit = 0;
    for rows in [0, 1, 8, 16] {
        for row_bytes in [0, 1, 2, 4, 32, 64] {
            for accumulators in [0, 1, 3, 4, 9] {
                let machine = Target {
                    vector_bytes: 64,
                    vector_registers: 32,
                    matrix_unit: Some(MatrixUnit {
                        rows,
                        row_bytes,
                        accumulators,
                    }),
                    ..Target::SCALAR
                };
                let plan = plan_with(program, &machine, Effort::Full).to_string();
                in_unit += usize::from(plan.contains(" tile"));
            }
        }
    }
    assert!(in_unit > 20, "the unit is used by {in_unit} machines");
}

/// A machine whose matrix unit has 16 rows of so many bytes.
fn with_unit(row_bytes: u32) -> Target {
    Target {
        vector_bytes: 64,
        vector_registers: 32,
        matrix_unit: Some(MatrixUnit {
            rows: 16,
            row_bytes,
            accumulators: 4,
        }),
        ..Target::SCALAR
    }
}

/// The unit takes two rows of `bf16` at a time, so that a tile has an even number of them.
#[test]
fn tiles_have_whole_groups_of_interleaved_rows() {
    let program = "input a: bf16[i=128, k=768]\ninput b: bf16[k, j=128]\n\
                   output y = sum[k](f32(a) * f32(b))\n";
    for (row_bytes, in_unit) in [(6, false), (12, true), (64, true)] {
        let plan = plan_with(program, &with_unit(row_bytes), Effort::Full).to_string();
        assert_eq!(
            plan.contains(" tile"),
            in_unit,
            "rows of {row_bytes} bytes:\n{plan}"
        );
    }
}

/// What the caller or the next iteration reads is stored, and no operand that only the unit sees.
#[test]
fn what_is_read_elsewhere_is_no_operand_of_a_matrix_unit() {
    let inputs = "input a: bf16[i=128, k=128]\ninput b: bf16[k, j=128]\nwide = f32(a)\n\
                  product = wide * f32(b)\noutput y = sum[k](product)\n";
    let delayed = "before[i, k] = previous[i, f32](wide, 0)\noutput z = before * 2\n";
    for (more, in_unit) in [
        ("", true),
        ("output wide\n", false),
        ("output product\n", false),
        (delayed, false),
    ] {
        let program = format!("{inputs}{more}");
        let plan = plan_with(&program, &with_unit(64), Effort::Full).to_string();
        assert_eq!(plan.contains(" tile"), in_unit, "{program}\n{plan}");
    }
}

#[test]
fn sizes_near_the_end_of_64_bits_do_not_overflow() {
    let program = "input a: f32[i=1073741824, k=1073741824]\ninput b: f32[k, j=1073741824]\n\
                   p = sum[k](a * b)\noutput y = max[j](p)\n";
    for machine in machines() {
        plan_with(program, &machine, Effort::Full);
    }
}

#[test]
fn less_effort_uses_less_of_the_machine() {
    let machine = Target {
        vector_bytes: 64,
        vector_registers: 32,
        threads: 8,
        ..Target::SCALAR
    };
    let full = plan_with(SOFTMAX, &machine, Effort::Full).to_string();
    assert!(full.contains("vectorize") && full.contains("parallel"));
    let scalar = plan_with(SOFTMAX, &machine, Effort::Scalar).to_string();
    assert!(!scalar.contains("vectorize") && !scalar.contains("parallel") && !scalar.contains('/'));
    let plain = plan_with(SOFTMAX, &machine, Effort::Plain).to_string();
    let steps = plain.lines().filter(|line| line.contains(": "));
    assert!(steps.clone().count() > 3, "{plain}");
    assert!(
        steps.clone().all(|line| line.contains("share=0")),
        "{plain}"
    );
    let order: Vec<Effort> = Effort::Full.plainer().collect();
    assert_eq!(order, [Effort::Scalar, Effort::Plain]);
    assert_eq!(Effort::Plain.plainer().count(), 0);
}
