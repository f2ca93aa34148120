//! Colours by meaning. Every meaning also has a sign or a word, so the view works without colours.

use ratatui::style::{Color, Modifier, Style};

/// Meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Less important than the rest.
    Quiet,
    /// The name of a part.
    Title,
    Good,
    /// Something is waited for.
    Waits,
    Bad,
    /// The row or key that is chosen.
    Chosen,
    /// A curve or a part of a bar, by its number.
    Curve(usize),
}

const CURVES: [Color; 4] = [Color::Blue, Color::Magenta, Color::Yellow, Color::Cyan];

/// Look of each meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    colours: bool,
}

impl Theme {
    pub(crate) const fn new(colours: bool) -> Self {
        Self { colours }
    }

    /// With colours, unless `NO_COLOR` says no (<https://no-color.org>).
    pub(crate) fn of_environment() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self::new(!refused)
    }

    pub(crate) fn style(self, tone: Tone) -> Style {
        let plain = Style::new();
        let coloured = |colour: Color| {
            if self.colours {
                plain.fg(colour)
            } else {
                plain
            }
        };
        match tone {
            Tone::Plain => plain,
            Tone::Quiet => plain.add_modifier(Modifier::DIM),
            Tone::Title => plain.add_modifier(Modifier::BOLD),
            Tone::Good => coloured(Color::Green),
            Tone::Waits => coloured(Color::Yellow),
            Tone::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Chosen => plain.add_modifier(Modifier::REVERSED),
            Tone::Curve(number) => coloured(CURVES[number % CURVES.len()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_no_style_has_one() {
        let all = [
            Tone::Plain,
            Tone::Quiet,
            Tone::Title,
            Tone::Good,
            Tone::Waits,
            Tone::Bad,
            Tone::Chosen,
            Tone::Curve(5),
        ];
        let has =
            |theme: Theme, tone| theme.style(tone).fg.is_some() || theme.style(tone).bg.is_some();
        assert!(all.iter().all(|tone| !has(Theme::new(false), *tone)));
        assert!(all.iter().any(|tone| has(Theme::new(true), *tone)));
    }
}
