//! The examples are as short as the book says.

/// Lines that are neither blank nor comments.
fn lines(source: &str) -> usize {
    let lines = source.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

#[test]
fn a_loop_backend_takes_at_most_fifteen_lines() {
    let lines = lines(include_str!("../src/bin/walk.rs"));
    assert!(lines <= 15, "walk.rs has {lines} lines");
}

#[test]
fn a_kernel_backend_takes_at_most_sixty_lines() {
    let lines = lines(include_str!("../src/bin/tiny_cc.rs"));
    assert!(lines <= 60, "tiny_cc.rs has {lines} lines");
}

#[test]
fn blank_lines_and_comments_do_not_count() {
    assert_eq!(lines("//! A page\n\nuse a;\n    // why\nfn b() {}\n"), 2);
}
