//! The terminal. It is as it was before once the screen is dropped, also after a panic.

use crate::draw::{View, draw};
use ratatui::DefaultTerminal;
use std::io;

/// The terminal while frames are drawn on it.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes over the terminal. From here on a panic gives it back before it tells what happened.
    pub(crate) fn open() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        Ok(Self { terminal })
    }

    /// Draws a frame.
    pub(crate) fn show(&mut self, view: &View<'_>) -> io::Result<()> {
        self.terminal
            .draw(|frame| draw(view, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = ratatui::try_restore();
    }
}
