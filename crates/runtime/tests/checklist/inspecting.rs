//! Looking inside.

use crate::support::*;
use loopwright_runtime::{BatchProgram, CodeOptions, LinkOptions, Mode, Modes, Merge};

everywhere! {
    fn probe_streaming_itself(place) {
        let device = place.device();
        let code = compile(&device, "add", "state g: f32[i=8]\ninput g.merge: f32[i]\nupdate g = g + g.merge[7 - i]");
        let r = link(&device.stream().expect("s").context(), &code);
        write(r.context(), "g", &[1., 2., 3., 4., 5., 6., 7., 8.]);
        match r.context().merge_from("g", r.context(), Merge::Streaming) {
            Err(e) => { println!("refused {e}"); return; }
            Ok(done) => println!("{done}"),
        }
        r.schedule(&[]).expect("scheduled");
        assert_eq!(read(r.context(), "g"), [9.; 8]);
    }

    fn probe_inline_across_write(place) {
        let device = place.device();
        for texts in [
            vec![
                ("make", "input x: f32[i=4]\noutput h = x + 1\noutput k = x"),
                ("bump", "state x: f32[i=4]\nupdate x = x + 10"),
                ("use", "input h: f32[i=4]\noutput y = h * 1"),
            ],
            vec![
                ("make", "state x: f32[i=4]\noutput h = x + 1\nupdate x = x + 10"),
                ("use", "input h: f32[i=4]\noutput y = h * 1"),
            ],
        ] {
            let graphs: Vec<_> = texts.iter().map(|(_, text)| program(text)).collect();
            let run = |modes: Modes| {
                let programs: Vec<BatchProgram<'_>> = texts.iter().zip(&graphs).enumerate()
                    .map(|(at, ((name, _), graph))| BatchProgram { name, graph, options: CodeOptions { modes: if at == 0 { modes.clone() } else { Modes::new() }, ..CodeOptions::default() } })
                    .collect();
                let batch = match device.compile_batch(&programs, |_| true) { Ok(b) => b, Err(e) => { println!("refused: {e}"); return None } };
                let context = device.stream().expect("a stream").context();
                let (context, routines) = context.link_batch(&batch, &LinkOptions::default()).expect("linked");
                write(&context, "x", &[1., 2., 3., 4.]);
                for routine in routines.iter().flatten() { routine.schedule(&[]).expect("scheduled"); }
                Some(read(&context, "y"))
            };
            let stored = run(Modes::new());
            let inlined = run(Modes::new().set("h", Mode::Virtual));
            println!("{stored:?} {inlined:?}");
            assert!(inlined.is_none() || inlined == stored);
        }
    }

    fn probe_unused_static(place) {
        let device = place.device();
        let r = link(&device.stream().expect("s").context(), &compile(&device, "u", "static b in 0 .. 4\ninput x: f32[i=4]\noutput y = x + f32(b) * 0"));
        println!("{:?}", r.statics().collect::<Vec<_>>());
        let r = link(&device.stream().expect("s").context(), &compile(&device, "u", "static b in 0 .. 4\ninput x: f32[i=4]\noutput y = x"));
        println!("{:?}", r.statics().collect::<Vec<_>>());
    }
}
