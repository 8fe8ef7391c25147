//! Where arrays are, and what is in them.

use super::bench::{Bench, Stop, ensure, given, link, read, refused, write};
use loopwright_graph::Array;
use loopwright_ops::{DType, Scalar};

/// What is written is read back, bit by bit, at every dtype; and a kernel sees the same.
pub(super) fn values_come_back(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let stream = device.stream()?;
    for dtype in bench.backend.capabilities().dtypes {
        // Three bytes first, so that the array in question starts behind padding.
        let text = format!("input before: bool[k=3]\ninput x: {dtype}[i=7, j=3]\noutput y = x\n");
        let routine = link(&stream.context(), &bench.compile(&device, "copy", &text)?)?;
        let few = if dtype == DType::Bool { 2 } else { 16 };
        let values: Vec<Scalar> = (0..21)
            .map(|at| Scalar::from_i64(dtype, at % few))
            .collect();
        let array = Array::from_scalars(dtype, &[7, 3], &values)
            .map_err(|error| Stop::Failed(error.to_string()))?;
        let bytes = array.bytes().to_vec();
        let uploaded = routine.context().upload("x", array)?;
        ensure(uploaded, || "the context has no `x`".to_owned())?;
        routine.context().zero("before")?;
        routine.run(&[])?;
        for name in ["x", "y"] {
            let back = routine.context().read(name)?;
            let same = back.is_some_and(|back| back.bytes() == bytes);
            let compared = name == "x" || bench.computes;
            ensure(same || !compared, || {
                format!("`{name}` of {dtype} is not what was written")
            })?;
        }
    }
    Ok(())
}

/// Fresh memory is zero, and an array can be made zero again.
pub(super) fn zeroed_arrays_are_zero(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "input x: i64[i=100]\nstate n: i64[i]\nupdate n = n + x\n";
    for _ in 0..2 {
        let routine = bench.routine(&device, "add", text)?;
        let context = routine.context();
        given(context, "n", &[0; 100])?;
        // Memory that is given back is not zero any more.
        write(context, "x", &[7; 100])?;
        write(context, "n", &[5; 100])?;
        routine.run(&[])?;
        bench.computed(context, "n", &[12; 100])?;
        context.zero("n")?;
        given(context, "n", &[0; 100])?;
        write(context, "n", &[9; 100])?;
    }
    Ok(())
}

/// A kernel writes its own arrays and nothing beside them, in a pool with others of odd lengths.
pub(super) fn neighbours_are_left_alone(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "input a: bool[i=5]\nstate x: i64[j=13]\ninput b: bool[k=3]\ninput c: bool[l=67]\n\
                output y = x + 1\nupdate x = x + 2\noutput all = sum[i](i64(a)) + sum[k](i64(b)) + sum[l](i64(c))\n";
    let routine = bench.routine(&device, "between", text)?;
    let context = routine.context();
    let around = [("a", 5), ("b", 3), ("c", 67)];
    let ones = |count: usize| {
        Array::from_scalars(DType::Bool, &[count], &vec![Scalar::bool(true); count])
            .map_err(|error| Stop::Failed(error.to_string()))
    };
    for (name, count) in around {
        context.upload(name, ones(count)?)?;
    }
    write(context, "x", &[40; 13])?;
    routine.run(&[])?;
    for (name, count) in around {
        given(context, name, &vec![1; count])?;
    }
    bench.computed(context, "x", &[42; 13])?;
    bench.computed(context, "y", &[41; 13])?;
    bench.computed(context, "all", &[75])
}

/// A leading slice is a view of its array in both directions, at any offset.
pub(super) fn slices_are_views(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "input x: i64[r=4, i=7]\noutput total = sum[r, i](x)\n";
    let whole = bench.routine(&device, "whole", text)?;
    let values: Vec<i64> = (0..28).collect();
    write(whole.context(), "x", &values)?;
    let step = "state row: i64[i=7]\nupdate row = row * 2 + 1\n";
    let step = bench.compile(&device, "step", step)?;
    let used = device.memory().used;
    let row = whole.context().slice("row", "x", 2)?;
    given(&row, "row", &values[14..21])?;
    let routine = link(&row, &step)?;
    ensure(device.memory().used == used, || {
        "a slice takes memory of its own".to_owned()
    })?;
    routine.schedule(&[])?;
    whole.schedule(&[])?;
    let mut expected = values;
    for value in &mut expected[14..21] {
        *value = *value * 2 + 1;
    }
    bench.computed(whole.context(), "x", &expected)?;
    bench.computed(whole.context(), "total", &[expected.iter().sum()])
}

/// Scratch memory is there for every run, whatever the one before left in it, and takes no more the
/// second time.
pub(super) fn scratch_is_reused(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "input x: i64[i=3000]\nrun = cumsum[i](x)\nback = cumsum[i](run[2999 - i])\n\
                output y = back[2999 - i] - run\n";
    let routine = bench.routine(&device, "twice", text)?;
    let reference = |x: &[i64]| -> Vec<i64> {
        let sums = |values: &mut dyn Iterator<Item = i64>| -> Vec<i64> {
            let sum = |sum: &mut i64, value: i64| {
                *sum += value;
                Some(*sum)
            };
            values.scan(0, sum).collect()
        };
        let run = sums(&mut x.iter().copied());
        let back = sums(&mut run.iter().rev().copied());
        let back = back.iter().rev().zip(&run);
        back.map(|(back, run)| back - run).collect()
    };
    let mut used = None;
    for round in 1..4 {
        let x: Vec<i64> = (0..3000).map(|at| at % 7 * round).collect();
        write(routine.context(), "x", &x)?;
        routine.run(&[])?;
        bench.computed(routine.context(), "y", &reference(&x))?;
        let now = device.memory().used;
        let before = *used.get_or_insert(now);
        ensure(now == before, || {
            format!("{before} bytes are used after the first run, and {now} after run {round}")
        })?;
    }
    Ok(())
}

/// The same constants are on a device once, whoever has them.
pub(super) fn constants_are_shared(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let table = "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]";
    let texts = [
        format!("const a: i64[i] = {table}\ninput at: i64[j=3]\noutput y = a[at]\n"),
        format!("const b: i64[k] = {table}\ninput at: i64[j=3]\noutput y = b[at]\n"),
    ];
    let mut routines = Vec::new();
    let mut used = Vec::new();
    for text in &texts {
        let routine = bench.routine(&device, "look", text)?;
        write(routine.context(), "at", &[0, 11, 4])?;
        routine.run(&[])?;
        bench.computed(routine.context(), "y", &[2, 37, 11])?;
        routines.push(routine);
        used.push(device.memory().used);
    }
    drop(routines);
    used.push(device.memory().used);
    let [one, two, none] = used[..] else {
        unreachable!("there are two programs")
    };
    let constants = 12 * 8;
    ensure(two == 2 * one - constants && none == constants, || {
        format!(
            "{one} bytes with one program, {two} with two, {none} with none; {constants} are constants"
        )
    })
}

/// All memory comes back when nobody has it any more, also what work in flight uses.
pub(super) fn memory_is_given_back(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let stream = device.stream()?;
    let text = "size N = 200\ninput x: i64[i=N]\noutput y = x + 1\n";
    let code = bench.compile(&device, "next", text)?;
    let used = |expected: usize, when: &str| {
        let used = device.memory().used;
        ensure(used == expected, || {
            format!("{used} bytes are used {when}, and not {expected}")
        })
    };
    used(0, "before anything is linked")?;
    let routine = link(&stream.context(), &code)?;
    write(routine.context(), "x", &[1; 200])?;
    for _ in 0..20 {
        routine.schedule(&[])?;
    }
    let context = routine.context().clone();
    drop(routine);
    stream.wait()?;
    bench.computed(&context, "y", &[2; 200])?;
    drop(context);
    used(0, "when the last context is gone")?;
    ensure(
        device.memory().peak > 0 && device.memory().pools == 0,
        || format!("memory is counted wrongly: {:?}", device.memory()),
    )
}

/// What a plan says is what linking takes.
pub(super) fn the_plan_is_what_is_used(bench: &Bench<'_>) -> Result<(), Stop> {
    let text = "size N = 5\nconst w: i64[k] = [1, 2, 3]\ninput x: i64[i=N, k]\nstate n: i64[i]\n\
                s = sum[k](x * w)\noutput y = cumsum[i](s) + n\nupdate n = s\n";
    for size in [5, 1, 400] {
        let device = bench.device()?;
        let code = bench.compile(&device, "plan", text)?;
        let sizes = [("N", size)];
        let plan = code.plan(&sizes, bench.options().pool_cap)?;
        let options = loopwright_runtime::LinkOptions {
            sizes: &sizes,
            ..loopwright_runtime::LinkOptions::default()
        };
        let routine = device.stream()?.context().link(&code, &options)?;
        let (planned, used) = (plan.bytes(), device.memory().used);
        ensure(planned == used, || {
            format!("{planned} bytes are planned at N = {size}, and {used} are used")
        })?;
        for node in routine.context().nodes() {
            let planned = plan.entries.iter().find(|entry| entry.name == node.name);
            let same = planned.is_some_and(|planned| {
                planned.bytes == node.bytes && planned.loc.offset == node.loc.offset
            });
            ensure(same, || {
                format!("`{}` does not lie where it was planned", node.name)
            })?;
        }
    }
    Ok(())
}

/// A host array is used where it lies if the device says that it can, and is refused by name if not.
pub(super) fn host_arrays_are_adopted_or_refused(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let context = device.stream()?.context();
    let values: Vec<Scalar> = (1..=6).map(Scalar::i64).collect();
    let array = Array::from_scalars(DType::I64, &[6], &values)
        .map_err(|error| Stop::Failed(error.to_string()))?;
    let adopted = context.with_host("x", array);
    if !device.limits().host_memory {
        let message = refused(adopted, "a host array on a device with memory of its own")?;
        let named = message.contains(device.name()) && message.contains("`x`");
        return ensure(named, || {
            format!("the refusal names neither device nor array: {message}")
        });
    }
    let context = adopted?;
    let code = bench.compile(&device, "next", "state x: i64[i=6]\nupdate x = x * 10\n")?;
    let used = device.memory().used;
    let routine = link(&context, &code)?;
    ensure(device.memory().used == used, || {
        "a host array takes memory of the device".to_owned()
    })?;
    given(routine.context(), "x", &[1, 2, 3, 4, 5, 6])?;
    routine.run(&[])?;
    bench.computed(routine.context(), "x", &[10, 20, 30, 40, 50, 60])?;
    read(&context, "x").map(drop)
}
