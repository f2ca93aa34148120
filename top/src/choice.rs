//! What the user has chosen: order, filter, a peer. Takes keys and knows neither daemon nor terminal.

use crate::column::COLUMNS;
use crate::row::Row;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

const FILTER_MAX: usize = 40;

/// Seconds that an arrow moves in a recorded run.
const SEEK_S: f64 = 5.0;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The column that the table is sorted by; none for the order of the daemon.
    pub(crate) sort: Option<usize>,
    pub(crate) reversed: bool,
    pub(crate) filter: String,
    /// Keys go into the filter.
    pub(crate) typing: bool,
    /// The id of the peer whose details are shown.
    pub(crate) selected: Option<String>,
    pub(crate) help: bool,
    /// The usual steps of rounds are among the events.
    pub(crate) all_events: bool,
}

/// Wish of a key beyond the choices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wish {
    /// Nothing, or a choice that was made.
    None,
    Quit,
    /// As Ctrl+C of a program that reads no keys.
    Interrupt,
    Pause,
    /// To move in a recorded run by this many seconds.
    Seek(f64),
    /// To show a recorded run at this multiple of its speed.
    Speed(f64),
}

impl Choice {
    /// Takes a key. `rows` are those of the table before filter and order.
    pub(crate) fn press(&mut self, key: KeyEvent, rows: &[Row]) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Wish::Interrupt,
            _ if control => return Wish::None,
            _ => {}
        }
        if self.typing {
            self.type_filter(key.code);
            return Wish::None;
        }
        if std::mem::take(&mut self.help) && key.code != KeyCode::Char('q') {
            return Wish::None;
        }
        match key.code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Esc if self.selected.take().is_none() => return Wish::Quit,
            KeyCode::Char('p' | ' ') => return Wish::Pause,
            KeyCode::Left => return Wish::Seek(-SEEK_S),
            KeyCode::Right => return Wish::Seek(SEEK_S),
            KeyCode::Char('+') => return Wish::Speed(2.0),
            KeyCode::Char('-') => return Wish::Speed(0.5),
            KeyCode::Char('s') => {
                let next = self.sort.map_or(0, |column| column + 1);
                self.sort = (next < COLUMNS.len()).then_some(next);
            }
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('e') => self.all_events = !self.all_events,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Down => self.step(rows, 1),
            KeyCode::Up => self.step(rows, -1),
            _ => {}
        }
        Wish::None
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(letter);
            }
            _ => {}
        }
    }

    fn step(&mut self, rows: &[Row], by: isize) {
        let shown = self.arranged(rows);
        let at = self.place(&shown);
        let next = match (at, by) {
            (Some(at), by) => at
                .saturating_add_signed(by)
                .min(shown.len().saturating_sub(1)),
            (None, 1..) => 0,
            (None, _) => shown.len().saturating_sub(1),
        };
        self.selected = shown.get(next).map(|row| row.id.clone());
    }

    /// The place of the selected peer among the rows that are shown.
    pub(crate) fn place(&self, shown: &[&Row]) -> Option<usize> {
        let id = self.selected.as_ref()?;
        shown.iter().position(|row| row.id == *id)
    }

    /// The rows to show, in order: the daemon that is asked always comes first.
    pub(crate) fn arranged<'a>(&self, rows: &'a [Row]) -> Vec<&'a Row> {
        let mut shown: Vec<&Row> = rows
            .iter()
            .filter(|row| row.matches(&self.filter))
            .collect();
        match self.sort.and_then(|column| COLUMNS.get(column)) {
            Some(column) => shown.sort_by(|a, b| {
                let key = |row| (column.figure)(row).key;
                let order = key(*a).compare(&key(*b), self.reversed);
                b.is_this().cmp(&a.is_this()).then(order)
            }),
            None if self.reversed => {
                shown.reverse();
                shown.sort_by_key(|row| !row.is_this());
            }
            None => {}
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::PeerState;

    fn row(id: &str, state: PeerState, waited_s: Option<f64>) -> Row {
        Row {
            id: id.to_owned(),
            name: id.to_owned(),
            state,
            round: Some(1),
            lag: None,
            strip: String::new(),
            share: None,
            waited_s,
            rtt_s: None,
            lost: None,
            bytes_per_s: None,
            path: None,
            accuracy: None,
            version: None,
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("me", PeerState::This("train".to_owned()), None),
            row("b", PeerState::Linked, Some(2.0)),
            row("a", PeerState::Gone, Some(3.0)),
            row("c", PeerState::Awaited, None),
        ]
    }

    fn press(choice: &mut Choice, keys: &str) -> Wish {
        let mut wish = Wish::None;
        for key in keys.chars() {
            let code = match key {
                '^' => KeyCode::Up,
                'v' => KeyCode::Down,
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '<' => KeyCode::Backspace,
                key => KeyCode::Char(key),
            };
            wish = choice.press(KeyEvent::new(code, KeyModifiers::NONE), &rows());
        }
        wish
    }

    fn shown(choice: &Choice) -> Vec<String> {
        let rows = rows();
        let shown = choice.arranged(&rows);
        shown.iter().map(|row| row.id.clone()).collect()
    }

    #[test]
    fn rows_are_sorted_with_the_asked_daemon_first() {
        let mut choice = Choice::default();
        assert_eq!(shown(&choice), ["me", "b", "a", "c"]);
        press(&mut choice, "s");
        assert_eq!(shown(&choice), ["me", "a", "b", "c"]);
        press(&mut choice, "r");
        assert_eq!(shown(&choice), ["me", "c", "b", "a"]);
        press(&mut choice, "s");
        assert_eq!(shown(&choice), ["me", "b", "c", "a"], "by state");
        choice.sort = Some(5);
        assert_eq!(
            shown(&choice),
            ["me", "a", "b", "c"],
            "what is not known comes last"
        );
        choice.reversed = false;
        assert_eq!(shown(&choice), ["me", "b", "a", "c"]);
        choice.sort = Some(COLUMNS.len() - 1);
        press(&mut choice, "s");
        assert_eq!(
            choice.sort, None,
            "after the last column the daemon's order"
        );
    }

    #[test]
    fn a_filter_is_typed_kept_and_cleared() {
        let mut choice = Choice::default();
        press(&mut choice, "/aq<w");
        assert_eq!((choice.filter.as_str(), choice.typing), ("aw", true));
        press(&mut choice, "\n");
        assert_eq!(shown(&choice), ["c"], "awaited");
        assert_eq!(press(&mut choice, "/\u{1b}"), Wish::None);
        assert_eq!(shown(&choice).len(), 4);
        press(&mut choice, &format!("/{}\n", "x".repeat(99)));
        assert_eq!(choice.filter.len(), FILTER_MAX);
        assert!(shown(&choice).is_empty());
        press(&mut choice, "v^");
        assert_eq!(choice.selected, None);
    }

    #[test]
    fn arrows_choose_a_peer_and_esc_goes_back_before_it_quits() {
        let mut choice = Choice::default();
        press(&mut choice, "vvv");
        assert_eq!(choice.selected.as_deref(), Some("a"));
        press(&mut choice, "^");
        assert_eq!(choice.selected.as_deref(), Some("b"));
        press(&mut choice, "vvvvv");
        assert_eq!(choice.selected.as_deref(), Some("c"));
        assert_eq!(press(&mut choice, "\u{1b}"), Wish::None);
        assert_eq!(choice.selected, None);
        assert_eq!(press(&mut choice, "?\u{1b}"), Wish::None);
        assert_eq!(press(&mut choice, "\u{1b}"), Wish::Quit);
        assert_eq!(press(&mut choice, "?q"), Wish::Quit);
        assert_eq!(press(&mut choice, "p"), Wish::Pause);
    }

    #[test]
    fn control_c_interrupts_wherever_keys_go() {
        let mut choice = Choice::default();
        press(&mut choice, "/");
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(choice.press(key, &rows()), Wish::Interrupt);
    }
}
