//! Transfers and merge buffers.

use crate::support::*;
use loopwright_graph::Array;
use loopwright_ops::{DType, Scalar};
use loopwright_runtime::{Device, LinkOptions, Merge, RuntimeError, RuntimeOptions};
use std::num::NonZero;

const ADD: &str = "
size N = 4
state g: f32[i=N]
input g.merge: f32[i]
update g = g + g.merge
";

/// Two devices of one runtime.
fn two_devices(place: Place) -> [Device; 2] {
    let options = RuntimeOptions {
        devices: NonZero::new(2).expect("not zero"),
        ..place.options()
    };
    let runtime = place.runtime_with(options);
    [0, 1].map(|ordinal| {
        let name = format!("{}:{ordinal}", place.backend);
        runtime.device(&name).expect("available")
    })
}

/// A device with memory of its own cannot read another's in place, and says what to do instead.
fn refuses_to_stream<T>(device: &Device, merged: Result<T, RuntimeError>) {
    let told = message(merged);
    let start = format!("device `{}` cannot read `g` in place on ", device.name());
    assert!(
        told.starts_with(&start) && told.ends_with("; merge with a copy"),
        "{told}"
    );
}

everywhere! {
    fn line_28_host_round_trips_of_every_dtype(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        for dtype in DType::ALL {
            // Three elements first, so that the array in question starts behind padding.
            let text = format!("input before: u8[k=3]\ninput x: {dtype}[i=7, j=3]\noutput y = x");
            let code = compile(&device, "copy", &text);
            let routine = link(&stream.context(), &code);
            let node = routine.context().node("x").expect("it is there");
            assert_ne!(node.loc.offset, 0);
            let values: Vec<Scalar> = (0..21)
                .map(|at| Scalar::from_i64(dtype, at % if dtype == DType::Bool { 2 } else { 16 }))
                .collect();
            let array = Array::from_scalars(dtype, &[7, 3], &values).expect("an array");
            let bytes = array.bytes().to_vec();
            assert!(routine.context().upload("x", array).expect("uploaded"));
            let same = read_array(routine.context(), "x");
            assert_eq!(same.bytes(), bytes, "{dtype}");
            routine.context().zero("before").expect("zeroed");
            routine.schedule(&[]).expect("scheduled");
            assert_eq!(read_array(routine.context(), "y").bytes(), bytes, "{dtype}");
        }
    }

    fn line_29_a_node_that_is_not_there_is_nothing_done(place) {
        let device = place.device();
        let context = device.stream().expect("a stream").context();
        assert!(!context.write("x", &[1f32]).expect("nothing done"));
        assert!(!context.zero("x").expect("nothing done"));
        assert!(context.read("x").expect("nothing done").is_none());
        assert!(context.download("x").expect("nothing done").is_none());
        assert!(!context.copy_from("x", &context).expect("nothing done"));
        assert!(!context.merge_from("x", &context, Merge::Copy).expect("nothing done"));
    }

    fn line_28_values_that_do_not_fit_are_refused(place) {
        let device = place.device();
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "copy", "input x: f32[i=2, j=3]\noutput y = x"));
        assert_eq!(
            message(routine.context().write("x", &[1f32; 5])),
            "`x` is f32[2, 3], and the values given are f32[5]"
        );
        assert_eq!(
            message(routine.context().write("x", &[1i32; 6])),
            "`x` is f32[2, 3], and the values given are i32[6]"
        );
    }

    fn line_30_device_to_device(place) {
        let [a, b] = two_devices(place);
        assert_ne!(a.name(), b.name());
        let text = "input x: f32[i=4]\noutput y = x + 1";
        let code = compile(&a, "next", text);
        let from = link(&a.stream().expect("a stream").context(), &code);
        let to = link(&b.stream().expect("a stream").context(), &code);
        write(from.context(), "x", &[1., 2., 3., 4.]);
        from.schedule(&[]).expect("scheduled");
        assert!(to.context().copy_from("y", from.context()).expect("scheduled"));
        assert_eq!(read(to.context(), "y"), [2., 3., 4., 5.]);
        assert!(!to.context().copy_from("y", to.context()).expect("the same buffer"));
        assert!(!to.context().copy_from("absent", from.context()).expect("absent"));
        let fresh = link(&a.stream().expect("a stream").context(), &code);
        assert_eq!(
            message(to.context().copy_from("x", fresh.context())),
            "`x` is to be copied, and nothing has written it yet"
        );
        let other = place.device();
        let foreign = link(&other.stream().expect("a stream").context(), &compile(&other, "next", text));
        assert_eq!(
            message(to.context().copy_from("x", foreign.context())),
            "the source belongs to another runtime"
        );
    }

    fn line_31_merge_by_copy(place) {
        let [a, b] = two_devices(place);
        let code = compile(&a, "add", ADD);
        assert_eq!(code.merge_node(), Some("g"));
        let mine = link(&a.stream().expect("a stream").context(), &code);
        let theirs = link(&b.stream().expect("a stream").context(), &code);
        write(mine.context(), "g", &[1., 2., 3., 4.]);
        write(theirs.context(), "g", &[10., 20., 30., 40.]);
        let used = a.memory().used;
        for _ in 0..2 {
            assert!(mine.context().merge_from("g", theirs.context(), Merge::Copy).expect("scheduled"));
            mine.schedule(&[]).expect("scheduled");
        }
        assert_eq!(read(mine.context(), "g"), [21., 42., 63., 84.]);
        assert_eq!(read(theirs.context(), "g"), [10., 20., 30., 40.]);
        assert_eq!(a.memory().used, used + 16, "one buffer, used twice");
        // It grows, and the old one is freed.
        let larger = LinkOptions { sizes: &[("N", 1000)], ..LinkOptions::default() };
        let big = b.stream().expect("a stream").context().link(&code, &larger).expect("linked");
        write(big.context(), "g", &[1.; 1000]);
        let target = mine.context().stream().context().link(&code, &larger).expect("linked");
        write(target.context(), "g", &[2.; 1000]);
        target.context().merge_from("g", big.context(), Merge::Copy).expect("scheduled");
        target.schedule(&[]).expect("scheduled");
        assert_eq!(read(target.context(), "g"), [3.; 1000]);
        target.context().stream().wait().expect("all done");
        assert_eq!(a.memory().used, used + 4000 + 4000, "the small one is gone");
    }

    fn line_31_what_was_copied_is_the_value_of_then(place) {
        let [a, b] = two_devices(place);
        let code = compile(&a, "add", ADD);
        let mine = link(&a.stream().expect("a stream").context(), &code);
        write(mine.context(), "g", &[0.; 4]);
        let sources: Vec<_> = [&a, &b, &b]
            .map(|device| link(&device.stream().expect("a stream").context(), &code))
            .into();
        for (at, source) in sources.iter().enumerate() {
            let value = 10f32.powi(at as i32);
            write(source.context(), "g", &[value, 2. * value, 3. * value, 4. * value]);
            mine.context().merge_from("g", source.context(), Merge::Copy).expect("scheduled");
            // The source is free again: the routine does not see this.
            write(source.context(), "g", &[-1.; 4]);
            mine.schedule(&[]).expect("scheduled");
        }
        assert_eq!(read(mine.context(), "g"), [111., 222., 333., 444.]);
        for source in &sources {
            assert_eq!(read(source.context(), "g"), [-1.; 4]);
        }
    }

    fn line_32_a_stream_that_merges_from_itself(place) {
        // In place, the kernel would read and write the same memory under two names.
        let text = "state g: f32[i=8]\ninput g.merge: f32[i]\nupdate g = g + g.merge[7 - i]";
        let device = place.device();
        let code = compile(&device, "turn", text);
        let routine = link(&device.stream().expect("a stream").context(), &code);
        write(routine.context(), "g", &[1., 2., 3., 4., 5., 6., 7., 8.]);
        let in_place = routine.context().merge_from("g", routine.context(), Merge::Streaming);
        match place.shares_memory() {
            true => {
                in_place.expect("scheduled");
                assert_eq!(
                    message(routine.schedule(&[])),
                    "routine `turn` writes `g`, which it would merge in place; merge with a copy"
                );
            }
            false => refuses_to_stream(&device, in_place),
        }
        routine.context().merge_from("g", routine.context(), Merge::Copy).expect("scheduled");
        routine.schedule(&[]).expect("scheduled");
        assert_eq!(read(routine.context(), "g"), [9.; 8]);
    }

    fn line_32_merge_by_streaming_copies_nothing(place) {
        let [a, b] = two_devices(place);
        let code = compile(&a, "add", ADD);
        let mine = link(&a.stream().expect("a stream").context(), &code);
        let theirs = link(&b.stream().expect("a stream").context(), &code);
        write(mine.context(), "g", &[1., 2., 3., 4.]);
        write(theirs.context(), "g", &[10., 20., 30., 40.]);
        let used = a.memory().used;
        let merged = mine.context().merge_from("g", theirs.context(), Merge::Streaming);
        if !place.shares_memory() {
            return refuses_to_stream(&a, merged);
        }
        assert!(merged.expect("scheduled"));
        mine.schedule(&[]).expect("scheduled");
        // A write behind it waits until it has been read.
        write(theirs.context(), "g", &[0.; 4]);
        assert_eq!(read(mine.context(), "g"), [11., 22., 33., 44.]);
        assert_eq!(a.memory().used, used, "no buffer for it");
    }

    fn line_33_the_wrong_merge_node_is_refused(place) {
        let device = place.device();
        let add_g = compile(&device, "add g", ADD);
        let add_h = compile(&device, "add h", &ADD.replace(" g", " h"));
        let stream = device.stream().expect("a stream");
        let g = link(&stream.context(), &add_g);
        let both = link(g.context(), &add_h);
        write(both.context(), "g", &[1.; 4]);
        write(both.context(), "h", &[2.; 4]);
        let name = stream.name();
        assert_eq!(
            message(g.schedule(&[])),
            format!("`add g` merges `g`, and the merge buffer of stream `{name}` holds nothing")
        );
        both.context().merge_from("h", both.context(), Merge::Copy).expect("scheduled");
        assert_eq!(
            message(both.context().link(&add_g, &LinkOptions::default())),
            format!("`add g` merges `g`, and the merge buffer of stream `{name}` holds `h`, f32[4]")
        );
        assert_eq!(
            message(g.schedule(&[])),
            format!("`add g` merges `g`, and the merge buffer of stream `{name}` holds `h`, f32[4]")
        );
        both.schedule(&[]).expect("this is what it expects");
        assert_eq!(read(both.context(), "h"), [4.; 4]);
        let two = "input a.merge: f32[i=4]\ninput b.merge: f32[i]\noutput y = a.merge + b.merge";
        let two = device.compile("two", &program(two), &loopwright_runtime::CodeOptions::default());
        assert_eq!(
            message(two),
            "`two`: it merges `a` and `b`; a routine has one merge buffer, so merge them in two routines"
        );
    }

    fn line_34_a_copy_waits_for_the_writer_and_the_host_does_not(place) {
        let [a, b] = two_devices(place);
        let count = compile(&a, "count", "state n: i64[]\nupdate n = n + 1");
        let from = link(&a.stream().expect("a stream").context(), &count);
        let to = link(&b.stream().expect("a stream").context(), &count);
        from.context().zero("n").expect("zeroed");
        for round in 1..=50i64 {
            for _ in 0..3 {
                from.schedule(&[]).expect("scheduled");
            }
            assert!(to.context().copy_from("n", from.context()).expect("scheduled"));
            // Scheduled behind the copy, on the other stream: it must not overtake it.
            from.schedule(&[]).expect("scheduled");
            let copied = read(to.context(), "n");
            assert_eq!(copied, [(round * 4 - 1) as f64]);
        }
    }

    fn zero_copy_host_memory(place) {
        let device = place.device();
        let array = Array::from_f64(DType::F32, &[4], &[1., 2., 3., 4.]).expect("an array");
        let context = device.stream().expect("a stream").context();
        let context = context.with_host("x", array);
        if !place.shares_memory() {
            let told = format!("device `{}` cannot work in host memory; write `x` instead", device.name());
            assert_eq!(message(context), told);
            return;
        }
        let context = context.expect("host memory");
        let routine = link(&context, &compile(&device, "next", "input x: f32[i=4]\noutput y = x + 1"));
        routine.schedule(&[]).expect("it has been written");
        assert_eq!(read(routine.context(), "y"), [2., 3., 4., 5.]);
    }
}
