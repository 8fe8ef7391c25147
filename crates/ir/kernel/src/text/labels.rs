//! How values, functions, structs and fields are written by name.

use crate::ir::{Function, Value};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// The labels of a function's values, without their `%`.
pub(crate) struct Labels<'a> {
    function: &'a Function,
    /// How many values have each name.
    uses: FxHashMap<&'a str, u32>,
}

impl<'a> Labels<'a> {
    pub(crate) fn new(function: &'a Function) -> Labels<'a> {
        let mut uses = FxHashMap::default();
        for info in &function.values {
            *uses.entry(info.name.as_str()).or_insert(0) += 1;
        }
        Labels { function, uses }
    }

    /// Writes `%label`.
    pub(crate) fn write(&self, out: &mut String, value: Value) {
        let name = match self.function.values.get(value) {
            Some(info) => info.name.as_str(),
            None => "",
        };
        let alone = self.uses.get(name) == Some(&1);
        write_label(out, name, alone, value);
    }
}

/// One value's `%label`, for messages; without the table that a whole function is printed with.
pub(crate) fn value_label(function: &Function, value: Value) -> String {
    let name = match function.values.get(value) {
        Some(info) => info.name.as_str(),
        None => "",
    };
    let same = function.values.iter().filter(|info| info.name == name);
    let mut out = String::new();
    write_label(&mut out, name, same.count() == 1, value);
    out
}

fn write_label(out: &mut String, name: &str, alone: bool, value: Value) {
    out.push('%');
    // Infallible: writing to a string.
    let _ = if name.is_empty() {
        write!(out, "{}", value.0)
    } else if alone && name_of_label(name) == name {
        write_name(out, name);
        Ok(())
    } else if is_identifier(name) {
        write!(out, "{name}'{}", value.0)
    } else {
        write!(out, "{}", quoted(&format!("{name}'{}", value.0)))
    };
}

/// The name of the value that has this label.
pub(crate) fn name_of_label(label: &str) -> &str {
    let name = label.trim_end_matches(|c: char| c.is_ascii_digit());
    if name.len() == label.len() {
        return label;
    }
    match name.strip_suffix('\'') {
        Some(name) => name,
        None if name.is_empty() => "",
        None => label,
    }
}

/// Writes a name bare where the lexer reads it as one, in quotes otherwise.
pub(crate) fn write_name(out: &mut String, name: &str) {
    if is_identifier(name) {
        out.push_str(name);
    } else {
        out.push_str(&quoted(name));
    }
}

/// Writes a struct's name as a type: in quotes also where a built-in type has it.
pub(crate) fn write_struct_name(out: &mut String, name: &str) {
    if is_identifier(name) && !is_builtin_type(name) {
        out.push_str(name);
    } else {
        out.push_str(&quoted(name));
    }
}

/// Whether a word in the place of a type is no struct's name.
pub(crate) fn is_builtin_type(name: &str) -> bool {
    matches!(name, "ptr" | "array" | "tile") || element_type(name).is_some()
}

/// The dtype and lanes of `f32` or `f32x16`.
pub(crate) fn element_type(name: &str) -> Option<(DType, u32)> {
    if let Ok(dtype) = name.parse() {
        return Some((dtype, 1));
    }
    let (dtype, lanes) = name.rsplit_once('x')?;
    let plain = lanes.bytes().all(|b| b.is_ascii_digit()) && !lanes.starts_with('0');
    match (dtype.parse(), lanes.parse()) {
        (Ok(dtype), Ok(lanes)) if plain && lanes > 1 => Some((dtype, lanes)),
        _ => None,
    }
}

/// Whether the lexer reads the name as one token wherever it stands.
fn is_identifier(name: &str) -> bool {
    let bytes = name.as_bytes();
    let starts = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    bytes.first().is_some_and(|b| starts(*b))
        && bytes.iter().enumerate().all(|(at, b)| {
            starts(*b)
                || b.is_ascii_digit()
                || *b == b'\''
                || (*b == b'.' && bytes.get(at + 1).is_some_and(|next| starts(*next)))
        })
}

/// The name in quotes, with the escapes that the lexer knows.
fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('"');
    for c in name.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{FunctionKind, Type};

    #[test]
    fn labels_are_distinct_and_give_the_name_back() {
        let mut function = Function::new("f", FunctionKind::Device);
        let names = [
            "", "a", "b", "b", "", "7", "b'3", "a'x", "'4", "x y", "a.b", "a.", "é", "q\"\\\n",
            "b'",
        ];
        for name in names {
            function.value(Type::INDEX, name);
        }
        let labels = Labels::new(&function);
        let mut seen = std::collections::HashSet::new();
        for (index, name) in names.iter().enumerate() {
            let mut written = String::new();
            labels.write(&mut written, Value(index as u32));
            assert_eq!(written, value_label(&function, Value(index as u32)));
            assert!(seen.insert(written.clone()), "two values are {written}");
            let source = loopwright_text::Source::new("label", format!(", {written}"));
            let tokens = loopwright_text::lex(&source).expect("a label can be read");
            let label = match (&tokens[1].0, &tokens[2].0) {
                (loopwright_text::Token::Sigil('%', label), _) => label.clone(),
                (loopwright_text::Token::Percent, loopwright_text::Token::Text(label)) => {
                    label.clone()
                }
                other => panic!("{written} is read as {other:?}"),
            };
            assert_eq!(name_of_label(&label), *name, "{written}");
        }
    }

    #[test]
    fn types_are_told_from_names_of_structs() {
        assert_eq!(element_type("f32x16"), Some((DType::F32, 16)));
        assert_eq!(element_type("f8e4m3x4"), Some((DType::F8E4M3, 4)));
        for name in ["f32x1", "f32x", "f32x08", "x4", "f33x4", "f32x+4"] {
            assert_eq!(element_type(name), None, "{name}");
        }
    }
}
