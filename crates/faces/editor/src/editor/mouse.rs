//! What the mouse does.

use super::{Editor, Mode};
use crate::view::Layout;
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// A line of the tree that is being dragged, and the line it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Drag {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Editor {
    /// Does what the mouse does on a screen with this layout.
    pub(crate) fn mouse(&mut self, event: MouseEvent, layout: &Layout) {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollDown => self.wheel(at, 1, layout),
            MouseEventKind::ScrollUp => self.wheel(at, -1, layout),
            MouseEventKind::Down(MouseButton::Left) => self.press(at, layout),
            MouseEventKind::Drag(MouseButton::Left) => {
                let over = self.row_at(at, layout);
                if let (Some(drag), Some(over)) = (&mut self.drag, over) {
                    drag.to = over;
                }
            }
            MouseEventKind::Up(MouseButton::Left) => {
                if let Some(Drag { from, to }) = self.drag.take()
                    && from != to
                    && self.mode == Mode::Tree
                {
                    self.drop_onto(from, to);
                }
            }
            _ => {}
        }
    }

    fn row_at(&self, at: Position, layout: &Layout) -> Option<usize> {
        let tree = layout.tree?;
        let row = self.tree_scroll + line_in(tree, at)?;
        (row < self.scene.rows.len()).then_some(row)
    }

    fn press(&mut self, at: Position, layout: &Layout) {
        match &mut self.mode {
            Mode::Menu(menu) => {
                let Some(list) = layout.menu else { return };
                if let Some(line) = line_in(list.lines, at) {
                    let choice = menu.choose(list.first + line);
                    self.chosen(choice);
                }
            }
            Mode::Help(_) => self.mode = Mode::Tree,
            Mode::Tree => {
                if let Some(tab) = layout.tab_at(at) {
                    return self.show(tab);
                }
                if let Some(row) = self.row_at(at, layout) {
                    self.go_to_row(row);
                    self.drag = Some(Drag { from: row, to: row });
                }
            }
            Mode::Prompt(_) | Mode::ConfirmQuit | Mode::ConfirmOverwrite(_) => {}
        }
    }

    fn wheel(&mut self, at: Position, by: isize, layout: &Layout) {
        match &mut self.mode {
            Mode::Menu(menu) => menu.step(by),
            Mode::Help(from) => *from = from.saturating_add_signed(3 * by),
            _ if layout.pane.is_some_and(|pane| pane.contains(at)) => self.scroll_pane(3 * by),
            _ => self.tree_scroll = self.tree_scroll.saturating_add_signed(3 * by),
        }
    }
}

/// Which line of an area a position is on.
fn line_in(area: Rect, at: Position) -> Option<usize> {
    area.contains(at).then(|| usize::from(at.y - area.y))
}
