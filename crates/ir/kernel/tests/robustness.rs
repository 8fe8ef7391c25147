//! Damaged texts: whatever is done to a text, reading it gives a module or an error that can be
//! shown, and a module that was read prints and reads back the same.

use loopwright_kernel::{parse, print};
use loopwright_text::Source;
use std::path::Path;

const ROUNDS: u32 = 50_000;

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// The modules of all filetests.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut folders = vec![root];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be listed") {
            let path = entry.expect("the folder can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(path).expect("a filetest can be read");
                // What follows the mark on its line is a comment.
                texts.extend(text.split("# ---").map(|part| format!("#{part}")));
            }
        }
    }
    // The order of a listing is the file system's.
    texts.sort();
    texts
}

/// The text cut into words, signs and white space.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut start = 0;
    let kind = |c: char| {
        (
            c.is_alphanumeric() || c == '_' || c == '%',
            c.is_whitespace(),
        )
    };
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| last != kind(c)) {
            tokens.push(&text[start..at]);
            start = at;
        }
        last = Some(kind(c));
    }
    tokens.push(&text[start..]);
    tokens
}

fn damage(text: &str, other: &str, random: &mut Random) -> String {
    match random.below(6) {
        0 => {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => text.chars().take(random.below(text.len())).collect(),
        2 => {
            let mut tokens = tokens(text);
            let (a, b) = (random.below(tokens.len()), random.below(tokens.len()));
            tokens.swap(a, b);
            tokens.concat()
        }
        3 => {
            let mut kept = tokens(text);
            let others = tokens(other);
            let at = random.below(kept.len());
            kept[at] = others[random.below(others.len())];
            kept.concat()
        }
        4 if !text.is_empty() => {
            let mut lines: Vec<&str> = text.lines().collect();
            let at = random.below(lines.len());
            if random.below(2) == 0 {
                lines.remove(at);
            } else {
                lines.insert(at, lines[random.below(lines.len())]);
            }
            lines.join("\n")
        }
        _ => {
            let signs = [
                "<", ">", ">>", "{", "}", "(", "[", "%", "@", "'9", "\"", "-", ":", "é", ";",
            ];
            let at = random.below(text.len());
            let at = (0..=at)
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0);
            let (before, after) = text.split_at(at);
            format!("{before}{}{after}", signs[random.below(signs.len())])
        }
    }
}

#[test]
fn damaged_texts_are_refused_or_read() {
    let texts = texts();
    let mut random = Random(2);
    let mut read = 0;
    for round in 0..ROUNDS {
        let (one, two) = (random.below(texts.len()), random.below(texts.len()));
        let mut text = damage(&texts[one], &texts[two], &mut random);
        if random.below(4) == 0 {
            text = damage(&text, &texts[two], &mut random);
        }
        let source = Source::new("damaged", text);
        match parse(&source) {
            Err(error) => assert!(error.render(&source).starts_with("error: ")),
            Ok(module) => {
                read += 1;
                let printed = print(&module);
                let again = parse(&Source::new("printed", printed.clone()));
                assert!(
                    again.as_ref() == Ok(&module),
                    "round {round} prints what is read as something else:\n{printed}\n{again:?}"
                );
            }
        }
    }
    assert!(
        read > ROUNDS / 100,
        "only {read} of the texts could be read"
    );
}

#[test]
fn deep_nesting_is_refused() {
    let open = "if %b {\n".repeat(100_000);
    let pointers = "ptr<global, ".repeat(100_000);
    for text in [
        format!("loopwright kernel 1\nkernel @k(%b: bool) {{\n{open}"),
        format!("loopwright kernel 1\nkernel @k(%b: {pointers}"),
    ] {
        let error = parse(&Source::new("deep", text)).expect_err("too deep");
        assert!(error.message.contains("levels deep"), "{}", error.message);
    }
}

#[test]
fn long_chains_are_read() {
    let mut text = String::from("loopwright kernel 1\nstruct S0 { a: f32 }\n");
    for i in 1..20_000 {
        text += &format!("struct S{i} {{ a: S{} }}\n", i - 1);
    }
    for i in 0..20_000 {
        text += &format!("device fn @f{i}() {{ call @f{}() }}\n", i + 1);
    }
    text += "device fn @f20000() { }\n";
    let module = parse(&Source::new("long", text)).expect("the text is valid");
    assert_eq!(module.functions.len(), 20_001);
}
