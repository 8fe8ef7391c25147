//! The lines that two texts do not have in common, with a few lines around them.

/// Lines shown around a change.
const AROUND: usize = 2;

/// The largest table of line pairs that is filled in. Beyond it, which takes thousands of changed lines on both sides, all of
/// them are said to be replaced.
const LARGEST_TABLE: usize = 4_000_000;

/// A line of the common text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line<'a> {
    Kept(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The changes from `old` to `new`: lines that begin with a blank, `-` or `+`, and before each group of them one with the
/// number of its first line in the new text.
pub(super) fn unified(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = align(&old, &new);
    let is_near = |at: usize| {
        let around = &lines[at.saturating_sub(AROUND)..lines.len().min(at + AROUND + 1)];
        around.iter().any(|line| !matches!(line, Line::Kept(_)))
    };
    let mut shown = Vec::new();
    let (mut number, mut inside) = (1, false);
    for (at, line) in lines.iter().enumerate() {
        let near = is_near(at);
        if near && !inside {
            shown.push(format!("@@ line {number}"));
        }
        inside = near;
        if near {
            shown.push(match line {
                Line::Kept(text) => format!(" {text}"),
                Line::Old(text) => format!("-{text}"),
                Line::New(text) => format!("+{text}"),
            });
        }
        number += usize::from(!matches!(line, Line::Old(_)));
    }
    shown
}

/// Both texts as one, with as many lines kept as can be.
fn align<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let (old_middle, tail) = old_rest.split_at(old_rest.len() - end);
    let new_middle = &new_rest[..new_rest.len() - end];

    let mut lines: Vec<Line<'a>> = old[..start].iter().map(|line| Line::Kept(line)).collect();
    lines.extend(middle(old_middle, new_middle));
    lines.extend(tail.iter().map(|line| Line::Kept(line)));
    lines
}

/// The longest common subsequence of lines, by the usual table.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    let all = |old: &[&'a str], new: &[&'a str]| {
        let old: Vec<Line<'a>> = old.iter().map(|line| Line::Old(line)).collect();
        let new: Vec<Line<'a>> = new.iter().map(|line| Line::New(line)).collect();
        [old, new].concat()
    };
    if old.is_empty() || new.is_empty() || (old.len() + 1) * width > LARGEST_TABLE {
        return all(old, new);
    }
    // `longest[i * width + j]`: lines that old[i..] and new[j..] have in common.
    let mut longest = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = match old[i] == new[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let mut lines = Vec::with_capacity(old.len() + new.len());
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push(Line::Kept(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines.extend(all(&old[i..], &new[j..]));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_its_neighbours() {
        let old = "1\n2\n3\n4\n5\n6\n7\n";
        let new = "1\n2\n3\nfour\n5\n6\n7\n";
        let expected = ["@@ line 2", " 2", " 3", "-4", "+four", " 5", " 6"];
        assert_eq!(unified(old, new), expected);
    }

    #[test]
    fn changes_far_apart_are_groups_of_their_own() {
        let old = "a\n1\n2\n3\n4\n5\n6\nz\n";
        let new = "1\n2\n3\n4\n5\n6\nz\nend\n";
        let expected = [
            "@@ line 1",
            "-a",
            " 1",
            " 2",
            "@@ line 6",
            " 6",
            " z",
            "+end",
        ];
        assert_eq!(unified(old, new), expected);
    }

    #[test]
    fn equal_texts_have_no_changes_and_empty_ones_are_texts() {
        assert!(unified("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(unified("", "a\n"), ["@@ line 1", "+a"]);
        assert_eq!(unified("a\n", ""), ["@@ line 1", "-a"]);
    }

    #[test]
    fn what_stayed_between_changes_is_kept() {
        let shown = unified("a\nkeep\nb\n", "x\nkeep\ny\n");
        assert_eq!(shown, ["@@ line 1", "-a", "+x", " keep", "-b", "+y"]);
    }
}
