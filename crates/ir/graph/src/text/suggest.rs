//! What somebody may have meant.

/// The candidate closest to a misspelt name, if one is close enough to be worth showing.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Long text is not a slip of the finger, and comparing it costs its square.
    if name.len() > 64 {
        return None;
    }
    let allowed = match name.chars().count() {
        0..=2 => 2,
        3..=5 => 4,
        _ => 6,
    };
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len() <= 64)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < 2 * candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap neighbours) from one name to the other, in halves: a change
/// of case counts as half of one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).map(|j| j * 2).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i * 2];
        for j in 1..=b.len() {
            let replace = if a[i - 1] == b[j - 1] {
                0
            } else if a[i - 1].eq_ignore_ascii_case(&b[j - 1]) {
                1
            } else {
                2
            };
            let mut best = (rows[i - 1][j - 1] + replace)
                .min(rows[i - 1][j] + 2)
                .min(row[j - 1] + 2);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 2);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_close() {
        let names = ["tokens", "table", "softmax", "M"];
        assert_eq!(nearest("toknes", names), Some("tokens"));
        assert_eq!(nearest("tabel", names), Some("table"));
        assert_eq!(nearest("m", names), Some("M"));
        assert_eq!(nearest("weights", names), None);
        assert_eq!(nearest("x", names), None);
    }
}
