//! Frames of recorded data, compared with those in `tests/frames`. After an intended change,
//! `UPDATE_FRAMES=1 cargo test -p murmurate-top` writes them; look at them before they are committed.

use super::{file, picture};
use crate::app::Source;
use crate::choice::Choice;
use crate::draw::{Origin, View, draw};
use crate::once::{Still, lines};
use crate::picture::Picture;
use crate::player::Player;
use crate::recording::Recording;
use crate::theme::Theme;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

/// The smallest terminal that many people have, and a large one.
const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];

fn drawn(view: &View<'_>, (columns, rows): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let drawn = terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut()));
    drawn.unwrap().buffer.clone()
}

/// Compares a frame with the one that is kept under a name.
fn compare(name: &str, view: &View<'_>, (columns, rows): (u16, u16)) {
    let frame = lines(&drawn(view, (columns, rows)));
    let kept = file(&format!("frames/{name}-{columns}x{rows}.txt"));
    if std::env::var_os("UPDATE_FRAMES").is_some() {
        std::fs::write(&kept, &frame).unwrap();
    }
    let expected = std::fs::read_to_string(&kept).unwrap_or_default();
    assert!(
        frame == expected,
        "{} differs from\n{frame}",
        kept.display()
    );
}

fn live() -> Origin {
    Origin::Live {
        target: "node-0".to_owned(),
        paused: false,
    }
}

/// A view of a picture this many seconds after the last answer.
fn after<'a>(
    picture: &'a Picture,
    choice: &'a Choice,
    origin: &'a Origin,
    seconds: f64,
) -> View<'a> {
    View {
        picture,
        choice,
        origin,
        theme: Theme::new(true),
        now: picture.answered_unix_s.unwrap_or(0.0) + seconds,
    }
}

#[test]
fn a_round_that_waits_is_shown_with_whom_it_waits_for() {
    let (picture, choice, origin) = (picture(), Choice::default(), live());
    for size in SIZES {
        compare("waits", &after(&picture, &choice, &origin, 0.3), size);
    }
}

#[test]
fn a_selected_peer_is_shown_with_all_that_is_known() {
    let (picture, origin) = (picture(), live());
    let killed = picture.swarm.as_ref().unwrap().peers.iter();
    let killed = killed.clone().find(|peer| !peer.linked).unwrap();
    let choice = Choice {
        selected: Some(killed.peer.clone()),
        sort: Some(5),
        reversed: true,
        ..Choice::default()
    };
    for size in SIZES {
        compare("peer", &after(&picture, &choice, &origin, 0.3), size);
    }
}

#[test]
fn help_filter_and_all_events_have_frames() {
    let (picture, origin) = (picture(), live());
    let mut choice = Choice::default();
    let rows = crate::row::Row::all(&picture);
    for key in ['e', '/', '9'] {
        let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE);
        choice.press(key, &rows);
    }
    compare("filter", &after(&picture, &choice, &origin, 0.3), (80, 24));
    let help = Choice {
        help: true,
        ..Choice::default()
    };
    compare("help", &after(&picture, &help, &origin, 0.3), (80, 24));
}

#[test]
fn figures_that_are_old_say_so() {
    let choice = Choice::default();
    let mut picture = picture();
    let paused = Origin::Live {
        target: "node-0".to_owned(),
        paused: true,
    };
    let banner = |picture: &Picture, origin: &Origin, seconds| {
        let frame = lines(&drawn(&after(picture, &choice, origin, seconds), (80, 24)));
        frame.lines().nth(1).unwrap().to_owned()
    };
    assert!(
        banner(&picture, &live(), 2.0).starts_with("… Round 38"),
        "no banner"
    );
    let line = banner(&picture, &live(), 8.0);
    assert_eq!(line, "… waiting for an answer: the figures are 8 s old");
    let line = banner(&picture, &paused, 8.0);
    assert_eq!(line, "‖ paused: the figures are 8 s old; p goes on");
    picture.trouble = Some("no daemon answers at 127.0.0.1:1 (refused)".to_owned());
    let line = banner(&picture, &live(), 130.0);
    let expected =
        "✕ connecting again; the figures are 2 min old: no daemon answers at 127.0.0.1:1";
    assert!(line.starts_with(expected), "{line}");
    let nothing = Picture {
        trouble: picture.trouble.clone(),
        ..Picture::default()
    };
    assert!(banner(&nothing, &live(), 0.0).contains("there are no figures yet: no daemon"));
    assert_eq!(banner(&Picture::default(), &live(), 0.0), "… asking node-0");
}

#[test]
fn a_terminal_that_is_too_small_gets_a_clear_line() {
    let (picture, choice, origin) = (picture(), Choice::default(), live());
    let view = after(&picture, &choice, &origin, 0.3);
    let frame = lines(&drawn(&view, (20, 5)));
    let words: Vec<&str> = frame.split_whitespace().collect();
    let expected = "The terminal has 20x5 characters: make it 60x16. q quits.";
    assert_eq!(words.join(" "), expected);
    // Every size is drawn without a panic.
    for columns in (1..90).step_by(7).chain([139, 140, 300]) {
        for rows in (1..60).step_by(5) {
            drawn(&view, (columns, rows));
        }
    }
}

#[test]
fn without_colours_every_state_still_has_its_sign_and_word() {
    let (picture, choice, origin) = (picture(), Choice::default(), live());
    let plain = View {
        theme: Theme::new(false),
        ..after(&picture, &choice, &origin, 0.3)
    };
    let coloured = drawn(&after(&picture, &choice, &origin, 0.3), (80, 24));
    let plain = drawn(&plain, (80, 24));
    assert_eq!(
        lines(&plain),
        lines(&coloured),
        "colours carry nothing alone"
    );
    let colours = |buffer: &Buffer| {
        let cells = buffer.content.iter();
        cells
            .filter(|cell| cell.fg != ratatui::style::Color::Reset)
            .count()
    };
    assert!(colours(&coloured) > 0);
    assert_eq!(colours(&plain), 0);
    for state in ["▸ awaited", "● linked", "✕ no link"] {
        assert!(lines(&plain).contains(state), "{state}");
    }
}

fn recording() -> Recording {
    Recording::read(&[file("data/events.jsonl")]).unwrap()
}

#[test]
fn a_recorded_run_is_shown_with_its_time() {
    let mut player = Player::new(recording());
    // Into the round whose exchange a daemon did not survive.
    player.seek(13.0);
    let choice = Choice::default();
    for size in SIZES {
        let (picture, moment) = (player.picture(), player.moment());
        let origin = Origin::Recorded(moment);
        let view = View {
            picture: &picture,
            choice: &choice,
            origin: &origin,
            theme: Theme::new(true),
            now: moment.unix_s,
        };
        compare("replay", &view, size);
    }
}

#[test]
fn a_recorded_run_can_be_moved_in() {
    let mut player = Player::new(recording());
    let strip = |player: &Player| player.picture().swarm.unwrap().daemon.strip;
    player.seek(13.0);
    let before = (player.picture(), strip(&player));
    player.seek(5.0);
    assert_ne!(player.picture(), before.0);
    player.seek(-5.0);
    assert_eq!(
        (player.picture(), strip(&player)),
        before,
        "back is the same moment"
    );
    player.pause();
    player.pass(1.0);
    assert_eq!(
        player.moment().at_s,
        before.0.answered_unix_s.unwrap() - player.moment().unix_s + 13.0
    );
    player.pause();
    player.faster(4.0);
    player.pass(1.0);
    assert!((player.moment().at_s - 17.0).abs() < 1e-6);
    player.seek(1e9);
    let moment = player.moment();
    assert_eq!(moment.at_s, moment.of_s);
    player.seek(-1e9);
    assert_eq!(player.moment().at_s, 0.0);
}

#[tokio::test]
async fn one_frame_of_a_recorded_run_is_its_end() {
    let still = Still::of(Source::Recorded(recording())).await.unwrap();
    let text = still.text((80, 24));
    assert!(text.contains("■ the end"), "{text}");
    assert!(text.contains("The daemon has left."), "{text}");
    let json = serde_json::to_value(&still.picture).unwrap();
    assert_eq!(json["swarm"]["daemon"]["phase"], "left");
    assert!(json["history"]["points"].as_array().unwrap().len() > 50);
}
