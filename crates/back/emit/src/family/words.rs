//! Words that nothing in a text may be called.

use loopwright_ops::DType;

/// C11's keywords, the names this dialect's own text uses, and macros of the headers it includes.
const WORDS: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "asm",
    "typeof",
    "bool",
    "true",
    "false",
    "nullptr",
    "alignas",
    "alignof",
    "constexpr",
    "thread_local",
    "static_assert",
    "item",
    "rt",
    "args",
    "main",
    "linux",
    "unix",
    "NULL",
];

/// Whether `word` means something already.
pub(crate) fn is_reserved(word: &str) -> bool {
    WORDS.contains(&word)
        || word.starts_with("lw_")
        || word.starts_with("__")
        || word.starts_with('_') && word[1..].starts_with(|c: char| c.is_ascii_uppercase())
        || word.ends_with("_t")
        || ["_MAX", "_MIN", "_C", "_WIDTH"]
            .iter()
            .any(|end| word.ends_with(end))
        || is_type(word)
}

/// Whether `word` names a narrow float or a vector, or the unaligned form of one.
fn is_type(word: &str) -> bool {
    let word = word.strip_suffix("_u").unwrap_or(word);
    let (dtype, lanes) = match word.split_once('x') {
        Some((dtype, lanes)) => (dtype, lanes),
        None => (word, "1"),
    };
    dtype.parse::<DType>().is_ok() && lanes.bytes().all(|byte| byte.is_ascii_digit())
}
