//! The loop of the view: waits for keys, news, signals and time, and draws.

use crate::choice::{Choice, Wish};
use crate::draw::{Origin, View, draw};
use crate::feed::{Known, read};
use crate::player::Player;
use crate::recording::Recording;
use crate::row::Row;
use crate::target::Target;
use crate::theme::Theme;
use crate::watched::Watched;
use crossterm::event::{Event, EventStream};
use futures::StreamExt;
use futures::future::select_all;
use murmurate_node::api::AskError;
use murmurate_node::events::unix_s;
use murmurate_node::local::{LocalView, ViewNews};
use ratatui::DefaultTerminal;
use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two frames without a key.
const FRAME: Duration = Duration::from_millis(100);

/// News of a local swarm that may wait to be shown.
const NEWS_CAPACITY: usize = 256;

/// Source of the view.
#[derive(Clone, Debug)]
pub enum Source {
    /// A daemon that runs.
    Live(Target),
    /// Event logs that were recorded.
    Recorded(Recording),
}

/// Why the view ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopError {
    /// The daemon does not answer the first question.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}; --once prints one frame as text")]
    Terminal(#[from] io::Error),
}

/// Shows a source on the terminal until the user quits. `pause` is the time between two questions.
///
/// # Errors
/// If the daemon does not answer the first question, or the terminal cannot be used.
pub async fn run(source: Source, pause: Duration) -> Result<(), TopError> {
    let mut shown = match source {
        Source::Live(target) => {
            // A wrong address is told at once, on the terminal as it is.
            read(&mut target.connect().await?, &mut Known::default()).await?;
            Shown::Live(Box::new(Watched::daemon(target, pause)))
        }
        Source::Recorded(recording) => Shown::Recorded(Box::new(Player::new(recording))),
    };
    let ends = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    let mut ends = ends
        .map(signal)
        .into_iter()
        .collect::<io::Result<Vec<_>>>()?;
    let ended = select_all(ends.iter_mut().map(|end| Box::pin(end.recv())));
    let mut app = App::open()?;
    tokio::select! {
        end = app.show(&mut shown, || false) => Ok(end?),
        _ = ended => Ok(()),
    }
}

#[derive(Debug)]
enum Shown {
    Live(Box<Watched>),
    Recorded(Box<Player>),
}

/// The view on the terminal, which is as it was before once this is dropped, also after a panic.
#[derive(Debug)]
struct App {
    terminal: DefaultTerminal,
    keys: EventStream,
    choice: Choice,
    theme: Theme,
}

impl App {
    /// Takes over the terminal. From here on a panic gives it back before it tells what happened.
    fn open() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            keys: EventStream::new(),
            choice: Choice::default(),
            theme: Theme::of_environment(),
        })
    }

    /// Shows it until the user quits, or until there is no more to show. `interrupt` takes Ctrl+C, and
    /// says whether the view stays.
    async fn show(&mut self, shown: &mut Shown, interrupt: impl Fn() -> bool) -> io::Result<()> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = Instant::now();
        loop {
            tokio::select! {
                key = self.keys.next() => match key {
                    Some(event) => match self.take(event?, shown) {
                        Wish::Quit => return Ok(()),
                        Wish::Interrupt if !interrupt() => return Ok(()),
                        _ => self.draw(shown)?,
                    },
                    None => return Ok(()),
                },
                more = shown.take_news() => if !more {
                    return Ok(());
                },
                _ = frames.tick() => {
                    let passed = before.elapsed();
                    before = Instant::now();
                    if let Shown::Recorded(player) = shown {
                        player.pass(passed.as_secs_f64());
                    }
                    self.draw(shown)?;
                }
            }
        }
    }

    /// Takes a key and carries out its wish, except to quit and to interrupt.
    fn take(&mut self, event: Event, shown: &mut Shown) -> Wish {
        // Any other event, such as a new size, only needs a new frame.
        let Event::Key(key) = event else {
            return Wish::None;
        };
        let rows = match shown {
            Shown::Live(watched) => Row::all(watched.picture()),
            Shown::Recorded(player) => Row::all(&player.picture()),
        };
        let wish = self.choice.press(key, &rows);
        match (shown, wish) {
            (Shown::Live(watched), Wish::Pause) => watched.pause(),
            (Shown::Recorded(player), Wish::Pause) => player.pause(),
            (Shown::Recorded(player), Wish::Seek(seconds)) => player.seek(seconds),
            (Shown::Recorded(player), Wish::Speed(times)) => player.faster(times),
            _ => {}
        }
        wish
    }

    fn draw(&mut self, shown: &Shown) -> io::Result<()> {
        let played;
        let (picture, origin, now) = match shown {
            Shown::Live(watched) => {
                let (target, paused) = (watched.target(), watched.is_paused());
                let origin = Origin::Live { target, paused };
                (watched.picture(), origin, unix_s())
            }
            Shown::Recorded(player) => {
                played = player.picture();
                let moment = player.moment();
                (&played, Origin::Recorded(moment), moment.unix_s)
            }
        };
        let view = View {
            picture,
            choice: &self.choice,
            origin: &origin,
            theme: self.theme,
            now,
        };
        self.terminal
            .draw(|frame| draw(&view, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }
}

impl Shown {
    /// Waits for news and takes them. Returns whether there will be more.
    async fn take_news(&mut self) -> bool {
        match self {
            Self::Live(watched) => watched.take_news().await,
            Self::Recorded(_) => std::future::pending().await,
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

/// Opens the view of a local swarm. It has a thread of its own, because the swarm needs the main one. It ends
/// with the swarm, or when the user quits; the swarm goes on then.
/// Ctrl+C ends the swarm, as it does without a view.
///
/// # Errors
/// If the thread cannot be started.
pub fn beside(pause: Duration) -> io::Result<LocalView> {
    let (sender, news) = mpsc::channel(NEWS_CAPACITY);
    let (open, closed) = channel();
    std::thread::Builder::new()
        .name("top".to_owned())
        .spawn(move || view(news, pause, open))?;
    Ok(LocalView::new(sender, closed))
}

/// The thread. `open` is dropped at its end, when the terminal is as it was before.
fn view(news: mpsc::Receiver<ViewNews>, pause: Duration, open: Sender<()>) {
    let shown = || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let mut shown = Shown::Live(Box::new(Watched::swarm(news, pause)));
            App::open()?.show(&mut shown, interrupt).await
        })
    };
    // Without a terminal the swarm goes on with lines, which it begins when this thread has ended.
    let _ = shown();
    drop(open);
}

/// Tells this process what the terminal no longer does: that Ctrl+C was pressed. The view stays until the
/// daemons have left.
fn interrupt() -> bool {
    kill_process(getpid(), Signal::INT).is_ok()
}
