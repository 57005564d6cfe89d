//! The model as cells. Pure: the same model and the same size always give the same screen, and nothing is asked of anybody.
//! Only what is in sight is looked at, so that ten thousand tasks cost no more than fifty.

mod frame;
mod graph;
mod lists;
mod log;
mod over;
mod run;
mod runs;
mod table;

use ratatui::Frame;
use ratatui::layout::Rect;

use super::model::{Model, Pane, Screen};

pub(super) use frame::tab_at;
pub(super) use graph::step_at;
pub(super) use table::scroll;

/// Rows at the bottom of a narrow run for why a task is as it is.
const DETAIL: u16 = 8;

/// Draws all of it.
pub(super) fn view(model: &Model, frame: &mut Frame<'_>) {
    let areas = Areas::new(model, frame.area());
    frame::header(model, frame, areas.header);
    match model.screen {
        Screen::Runs => runs::draw(model, frame, &areas),
        Screen::Run => run::draw(model, frame, &areas),
        Screen::Log => log::draw(model, frame, &areas),
        Screen::Nodes => lists::nodes(model, frame, &areas),
        Screen::Pools => lists::pools(model, frame, &areas),
        Screen::Limits => lists::limits(model, frame, &areas),
    }
    frame::footer(model, frame, areas.footer);
    if model.has_help {
        over::help(model, frame);
    }
    if let Some(asked) = &model.asked {
        over::question(model, frame, asked);
    }
    if model.look.is_ascii {
        // What steps, people and other commands say may hold anything.
        for cell in &mut frame.buffer_mut().content {
            if !cell.symbol().is_ascii() {
                let plain = model.look.plain(cell.symbol());
                cell.set_symbol(plain);
            }
        }
    }
}

/// Where everything stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Areas {
    header: Rect,
    /// Above the main part: what the screen is about.
    head: Rect,
    pub(super) main: Rect,
    /// Beside the main part or below it; empty where there is no room.
    side: Rect,
    footer: Rect,
}

impl Areas {
    pub(super) fn new(model: &Model, all: Rect) -> Self {
        let row =
            |y: u16, height: u16| Rect { x: all.x, y: all.y + y, width: all.width, height }.intersection(all);
        let (header, footer) = (row(0, 1), row(all.height.saturating_sub(1), 1));
        let head_rows = match model.screen {
            Screen::Run => 2,
            Screen::Log => 1,
            Screen::Runs | Screen::Nodes | Screen::Pools | Screen::Limits => 0,
        };
        let head = row(1, head_rows);
        let body = row(1 + head_rows, all.height.saturating_sub(2 + head_rows));
        let (main, side) = match (model.screen, model.is_wide()) {
            (Screen::Log | Screen::Limits, _) | (Screen::Runs, false) => (body, Rect::ZERO),
            (Screen::Runs | Screen::Run | Screen::Nodes | Screen::Pools, true) => {
                let width = u16::try_from(u32::from(body.width) * 3 / 5).unwrap_or(body.width);
                let side = Rect { x: body.x + width + 1, width: body.width - width - 1, ..body };
                (Rect { width, ..body }, side)
            }
            (Screen::Run | Screen::Nodes | Screen::Pools, false) => {
                let height = if body.height >= 2 * DETAIL { DETAIL } else { body.height / 3 };
                let main = Rect { height: body.height - height, ..body };
                (main, Rect { y: main.bottom(), height, ..body })
            }
        };
        Self { header, head, main, side, footer }
    }

    /// Of the main part without its first line.
    pub(super) fn rows(&self) -> Rect {
        Rect { y: self.main.y + 1, height: self.main.height.saturating_sub(1), ..self.main }
            .intersection(self.main)
    }
}

/// Rows that a screenful holds.
pub(super) fn page(model: &Model) -> usize {
    let areas = Areas::new(model, Rect::new(0, 0, model.size.0, model.size.1));
    let is_bare = model.screen == Screen::Log
        || model.screen == Screen::Run && model.run.as_ref().is_some_and(|opened| opened.pane == Pane::Graph);
    usize::from(if is_bare { areas.main.height } else { areas.rows().height }).max(1)
}
