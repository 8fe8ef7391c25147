//! How things look. Colours are of the terminal's own sixteen where they mean something, so that they suit
//! its background; without colours, marks and weights say the same.

use ratatui::style::{Color, Modifier, Style};

pub(super) const FAINT: Style = Style::new().fg(Color::DarkGray);
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const TITLE: Style = Style::new().fg(Color::White).bg(Color::Indexed(236));
pub(super) const TITLE_STRONG: Style = Style::new()
    .fg(Color::Black)
    .bg(Color::Cyan)
    .add_modifier(Modifier::BOLD);
pub(super) const KEYWORD: Style = Style::new().fg(Color::Blue);
pub(super) const LOOP: Style = Style::new().fg(Color::Cyan);
pub(super) const STEP: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const ANNOTATION: Style = Style::new().fg(Color::Magenta);
pub(super) const DELEGATE: Style = Style::new().fg(Color::Yellow);
pub(super) const NUMBER: Style = Style::new().fg(Color::Green);
pub(super) const CURSOR: Style = Style::new().bg(Color::Indexed(238));
pub(super) const TARGET: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const WARNING: Style = Style::new().fg(Color::Yellow);
pub(super) const REFUSAL: Style = Style::new().fg(Color::Red);
pub(super) const WRONG: Style = Style::new()
    .fg(Color::Red)
    .add_modifier(Modifier::UNDERLINED);
pub(super) const KEY: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);

/// The colour of a share of the cost.
pub(super) const fn share(share: f64) -> Style {
    match share {
        _ if share >= 0.5 => Style::new().fg(Color::Red),
        _ if share >= 0.2 => Style::new().fg(Color::Yellow),
        _ => Style::new().fg(Color::Green),
    }
}
