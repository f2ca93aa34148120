//! One frame as text, and the picture behind it: for scripts, and where there is no terminal.

use crate::app::Source;
use crate::choice::Choice;
use crate::draw::{Origin, View, draw};
use crate::feed::{Follower, Known, read};
use crate::picture::Picture;
use crate::player::Player;
use crate::theme::Theme;
use murmurate_node::api::AskError;
use murmurate_node::events::unix_s;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Duration;
use tokio::time::timeout;

/// Time for all events of a daemon together.
const EVENTS_WAIT: Duration = Duration::from_secs(1);

/// A pause in the events that is as long as this says that all from before were sent.
const EVENTS_PAUSE: Duration = Duration::from_millis(150);

/// A picture with the moment at which it was true.
#[derive(Clone, Debug)]
pub struct Still {
    /// All that is known.
    pub picture: Picture,
    origin: Origin,
    now: f64,
}

impl Still {
    /// Asks a daemon once, or plays a recording to its end.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub async fn of(source: Source) -> Result<Self, AskError> {
        match source {
            Source::Live(target) => {
                let mut connection = target.connect().await?;
                let answers = read(&mut connection, &mut Known::default()).await?;
                let mut picture = Picture::default();
                let now = unix_s();
                picture.answered(answers, now);
                let mut follower = Follower::open(&target, 0).await?;
                let events = async {
                    while let Ok(Some(entries)) = timeout(EVENTS_PAUSE, follower.next()).await {
                        picture.happened(entries);
                    }
                };
                // Those that came in time are shown.
                let _ = timeout(EVENTS_WAIT, events).await;
                let target = target.to_string();
                let origin = Origin::Live {
                    target,
                    paused: false,
                };
                Ok(Self {
                    picture,
                    origin,
                    now,
                })
            }
            Source::Recorded(recording) => {
                let mut player = Player::new(recording);
                player.finish();
                let moment = player.moment();
                Ok(Self {
                    picture: player.picture(),
                    origin: Origin::Recorded(moment),
                    now: moment.unix_s,
                })
            }
        }
    }

    /// The frame of a terminal of this many columns and rows, without colours.
    pub fn text(&self, (columns, rows): (u16, u16)) -> String {
        let view = View {
            picture: &self.picture,
            choice: &Choice::default(),
            origin: &self.origin,
            theme: Theme::new(false),
            now: self.now,
        };
        frame(&view, (columns, rows))
    }
}

fn frame(view: &View<'_>, (columns, rows): (u16, u16)) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    draw(view, area, &mut buffer);
    lines(&buffer)
}

pub(crate) fn lines(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y| {
        let cells = (0..area.width).map(|x| buffer[(x, y)].symbol());
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    (0..area.height).map(line).collect()
}
