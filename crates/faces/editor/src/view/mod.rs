//! Draws the state on a screen.

mod bottom;
mod highlight;
mod overlay;
mod pane;
mod theme;
mod tree;

use crate::editor::{Editor, Mode, Side};
use crate::pane::Tab;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// Columns from which on tree and code stand side by side.
const BOTH: u16 = 100;

/// The least screen that anything can be shown on.
const LEAST: (u16, u16) = (24, 8);

/// Where the parts of the screen are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Layout {
    title: Rect,
    tree_head: Option<Rect>,
    /// The lines of the tree.
    pub(crate) tree: Option<Rect>,
    pane_head: Option<Rect>,
    tabs: Vec<(Rect, Tab)>,
    /// The lines of the pane.
    pub(crate) pane: Option<Rect>,
    /// Everything between the title and the status.
    body: Rect,
    status: Rect,
    message: Rect,
    hints: Rect,
    /// The list that is to be chosen from.
    pub(crate) menu: Option<List>,
}

/// Where a list is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct List {
    pub(crate) frame: Rect,
    /// Its lines.
    pub(crate) lines: Rect,
    /// The number of the first line that is shown.
    pub(crate) first: usize,
}

impl Layout {
    /// Where everything goes on a screen of this size; `None` where there is no room.
    pub(crate) fn new(screen: Rect, editor: &Editor) -> Option<Layout> {
        if screen.width < LEAST.0 || screen.height < LEAST.1 {
            return None;
        }
        let (x, width) = (screen.x, screen.width);
        let line = |y: u16, height: u16| Rect::new(x, y, width, height);
        let most = screen.height - 5;
        let message_height = bottom::message_height(editor, width).min(most);
        let hints = line(screen.bottom() - 1, 1);
        let message = line(hints.y - message_height, message_height);
        let status = line(message.y - 1, 1);
        let title = line(screen.y, 1);
        let body = line(title.bottom(), status.y - title.bottom());
        let split = |area: Rect| {
            let head = Rect { height: 1, ..area };
            let lines = Rect::new(area.x, area.y + 1, area.width, area.height - 1);
            (Some(head), Some(lines))
        };
        let ((tree_head, tree), (pane_head, pane)) = match (width >= BOTH, editor.side) {
            (true, _) => {
                let left = width * 9 / 20;
                let right = Rect::new(x + left + 1, body.y, width - left - 1, body.height);
                let left = Rect::new(x, body.y, left, body.height);
                (split(left), split(right))
            }
            (false, Side::Tree) => (split(body), (None, None)),
            (false, Side::Pane) => ((None, None), split(body)),
        };
        let tabs = pane_head.map_or_else(Vec::new, pane::tabs);
        Some(Layout {
            title,
            tree_head,
            tree,
            pane_head,
            tabs,
            pane,
            body,
            status,
            message,
            hints,
            menu: match &editor.mode {
                Mode::Menu(menu) => Some(overlay::place(menu, body)),
                _ => None,
            },
        })
    }

    /// The tab whose name is at a position.
    pub(crate) fn tab_at(&self, at: Position) -> Option<Tab> {
        let found = self.tabs.iter().find(|(area, _)| area.contains(at));
        found.map(|(_, tab)| *tab)
    }
}

/// Prepares the state for a screen of this size, and says where everything goes.
pub(crate) fn prepare(screen: Rect, editor: &mut Editor) -> Option<Layout> {
    let layout = Layout::new(screen, editor)?;
    let height = |area: Option<Rect>| area.map_or(0, |area| usize::from(area.height));
    let both = layout.tree.is_some() && layout.pane.is_some();
    editor.fit(both, height(layout.tree), height(layout.pane));
    if let Mode::Help(from) = &mut editor.mode {
        *from = (*from).min(overlay::last_help_line(layout.body));
    }
    Some(layout)
}

/// Draws the state.
pub(crate) fn draw(editor: &Editor, layout: Option<&Layout>, frame: &mut Frame<'_>) {
    let Some(layout) = layout else {
        let (columns, rows) = LEAST;
        let text = format!("the editor needs {columns}×{rows} letters");
        frame.render_widget(Line::raw(text), frame.area());
        return;
    };
    title(editor, layout.title, frame);
    if let (Some(head), Some(lines)) = (layout.tree_head, layout.tree) {
        tree::draw(editor, head, lines, frame);
    }
    if let (Some(head), Some(lines)) = (layout.pane_head, layout.pane) {
        pane::draw(editor, head, &layout.tabs, lines, frame);
        if layout.tree.is_some() {
            for y in head.y..lines.bottom() {
                let border = Rect::new(head.x - 1, y, 1, 1);
                frame.render_widget(Span::styled("│", theme::FAINT), border);
            }
        }
    }
    bottom::draw(editor, layout.status, layout.message, layout.hints, frame);
    match &editor.mode {
        Mode::Help(from) => overlay::help(*from, layout.body, frame),
        Mode::Menu(menu) => {
            if let Some(list) = layout.menu {
                overlay::menu(menu, list, frame);
            }
        }
        Mode::Tree | Mode::Prompt(_) | Mode::ConfirmQuit | Mode::ConfirmOverwrite(_) => {}
    }
}

/// The program, the device, the sizes; at the right the file and how far one can go back.
fn title(editor: &Editor, area: Rect, frame: &mut Frame<'_>) {
    let setting = &editor.setting;
    let graph = editor.plan().program();
    let sizes: Vec<String> = graph
        .integers()
        .map(|(symbol, name, _)| format!("{name}={}", setting.binding.value(symbol)))
        .collect();
    let left = Line::from(vec![
        Span::styled(format!(" {} ", setting.program), theme::TITLE_STRONG),
        Span::raw(format!(" {}  {}", setting.device, sizes.join(" "))),
    ]);
    let (undo, redo) = editor.reach();
    let state = if editor.is_saved() { "" } else { "● " };
    let mut right = format!("{state}{}", editor.file().display());
    if undo + redo > 0 {
        right += &format!("  {undo}↶ {redo}↷");
    }
    right.push(' ');
    frame.render_widget(left.style(theme::TITLE), area);
    let right = Line::raw(right).style(theme::TITLE);
    let width = (right.width() as u16).min(area.width / 2);
    let place = Rect {
        x: area.right() - width,
        width,
        ..area
    };
    frame.render_widget(right, place);
}

#[cfg(test)]
mod tests;
