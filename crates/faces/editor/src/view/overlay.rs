//! What is shown over the tree: lists and the help page.

use super::{List, theme};
use crate::keys::{MOUSE, SECTIONS, keys_text};
use crate::menu::Menu;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

/// Where a list goes within an area.
pub(super) fn place(menu: &Menu, within: Rect) -> List {
    let shown = menu.shown();
    let text = |item: &crate::menu::Item| item.text.chars().count() + item.note.chars().count() + 6;
    let width = shown.iter().map(|item| text(item)).max().unwrap_or(0);
    let width = width.max(menu.title.chars().count() + 4).max(44);
    let width = (width as u16).min(within.width);
    // The frame, and the line with the letters that narrow the list.
    let height = (shown.len() as u16)
        .saturating_add(3)
        .max(4)
        .min(within.height);
    let frame = Rect::new(
        within.x + (within.width - width) / 2,
        within.y + (within.height - height) / 2,
        width,
        height,
    );
    let lines = Rect::new(
        frame.x + 1,
        frame.y + 2,
        frame.width.saturating_sub(2),
        frame.height.saturating_sub(3),
    );
    let room = usize::from(lines.height).max(1);
    let first = (menu.marked() + 1).saturating_sub(room);
    List {
        frame,
        lines,
        first,
    }
}

pub(super) fn menu(menu: &Menu, list: List, frame: &mut Frame<'_>) {
    frame.render_widget(Clear, list.frame);
    let title = Span::styled(format!(" {} ", menu.title), theme::STRONG);
    let mut block = Block::bordered()
        .border_style(theme::FAINT)
        .title_top(title);
    if menu.elsewhere() > 0 {
        let text = match menu.is_everywhere() {
            true => " Tab: only here ".to_owned(),
            false => format!(" Tab: {} more elsewhere ", menu.elsewhere()),
        };
        block = block.title_bottom(Line::styled(text, theme::FAINT).right_aligned());
    }
    frame.render_widget(block, list.frame);
    let filter = Rect {
        y: list.frame.y + 1,
        height: 1,
        ..list.lines
    };
    let typed = menu.filter.text();
    let line = match typed.is_empty() {
        true => Line::styled(" type to narrow the list", theme::FAINT),
        false => Line::from(vec![Span::styled(" / ", theme::KEY), Span::raw(typed)]),
    };
    frame.render_widget(line, filter);
    let shown = menu.shown();
    let items = shown.iter().enumerate().skip(list.first);
    for ((number, item), y) in items.zip(list.lines.y..list.lines.bottom()) {
        let area = Rect {
            y,
            height: 1,
            ..list.lines
        };
        let marked = number == menu.marked();
        if marked {
            frame.buffer_mut().set_style(area, theme::CURSOR);
        }
        let line = Line::from(vec![
            Span::styled(if marked { "▸ " } else { "  " }, theme::KEY),
            Span::raw(item.text.as_str()),
            Span::styled(format!("  {}", item.note), theme::FAINT),
        ]);
        frame.render_widget(line, area);
    }
}

/// The lines of the help page.
fn help_lines() -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let entry = |keys: String, help: &'static str| {
        Line::from(vec![
            Span::styled(format!(" {keys:<10} "), theme::KEY),
            Span::raw(help),
        ])
    };
    for section in SECTIONS {
        lines.push(Line::styled(format!(" {}", section.title), theme::STRONG));
        let bindings = section.bindings.iter();
        lines.extend(bindings.map(|binding| entry(keys_text(binding), binding.help)));
        lines.push(Line::default());
    }
    lines.push(Line::styled(" Mouse", theme::STRONG));
    let gestures = MOUSE.iter();
    lines.extend(gestures.map(|(gesture, help)| entry((*gesture).to_owned(), help)));
    lines.push(Line::default());
    lines.push(Line::raw(
        " A loop that several steps share is changed for all of them, except with `:`.",
    ));
    lines
}

/// The line that the help page begins with where its end is shown.
pub(super) fn last_help_line(area: Rect) -> usize {
    let room = usize::from(area.height.saturating_sub(2));
    help_lines().len().saturating_sub(room)
}

pub(super) fn help(from: usize, area: Rect, frame: &mut Frame<'_>) {
    frame.render_widget(Clear, area);
    let block = Block::bordered()
        .border_style(theme::FAINT)
        .title_top(Span::styled(" keys ", theme::STRONG));
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let lines = help_lines().into_iter().skip(from);
    for (line, y) in lines.zip(inside.y..inside.bottom()) {
        let area = Rect {
            y,
            height: 1,
            ..inside
        };
        frame.render_widget(line, area);
    }
}
