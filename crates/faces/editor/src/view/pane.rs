//! The pane beside the tree: code, kernel, schedule, estimate.

use super::{highlight, theme};
use crate::editor::{Busy, Editor};
use crate::pane::Tab;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Where the names of the tabs stand.
pub(super) fn tabs(head: Rect) -> Vec<(Rect, Tab)> {
    let mut x = head.x;
    let mut found = Vec::new();
    for tab in Tab::ALL {
        let width = tab.name().len() as u16 + 4;
        let left = head.right().saturating_sub(x);
        found.push((Rect::new(x, head.y, width.min(left), 1), tab));
        x = (x + width).min(head.right());
    }
    found
}

pub(super) fn draw(
    editor: &Editor,
    head: Rect,
    tabs: &[(Rect, Tab)],
    lines: Rect,
    frame: &mut Frame<'_>,
) {
    for ((area, tab), number) in tabs.iter().zip(1..) {
        let style = match *tab == editor.tab {
            true => theme::TITLE_STRONG,
            false => theme::FAINT,
        };
        let name = format!(" {number} {} ", tab.name());
        frame.render_widget(Span::styled(name, style), *area);
    }
    let (text, fresh) = editor.pane_text();
    let state = match (fresh, editor.busy()) {
        (_, Some(Busy::Compiling)) => "compiling… ",
        (false, _) if text.is_empty() => "",
        (false, _) => "of the plan before ",
        (true, _) => "",
    };
    frame.render_widget(Line::styled(state, theme::WARNING).right_aligned(), head);
    let shown = text.lines().skip(editor.pane_scroll);
    for (line, y) in shown.zip(lines.y..lines.bottom()) {
        let area = Rect {
            y,
            height: 1,
            x: lines.x + 1,
            width: lines.width.saturating_sub(1),
        };
        let line = match fresh {
            true => highlight::line(line),
            false => Line::styled(line, theme::FAINT),
        };
        frame.render_widget(line, area);
    }
}
