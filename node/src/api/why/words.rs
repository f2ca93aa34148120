//! Words for peers, times and amounts.

use super::answer::Facts;

/// The first digits of an id, as everything that is printed shows it.
pub fn short(peer: &str) -> String {
    peer.chars().take(8).collect()
}

/// The known peer whose id begins with `start`; otherwise a sentence that says why there is none.
pub(super) fn find(facts: &Facts<'_>, start: &str) -> Result<String, String> {
    let start = start.to_ascii_lowercase();
    let own = [&facts.status.peer];
    let mut known: Vec<&String> = facts.status.peers.keys().chain(own).collect();
    known.retain(|peer| peer.starts_with(&start));
    match known.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(format!(
            "This daemon knows no peer whose id begins with {start}."
        )),
        several => {
            let count = several.len();
            Err(format!(
                "The ids of {count} peers begin with {start}: give more digits."
            ))
        }
    }
}

/// A peer with its state, such as `daemon 0123abcd (linked, in round 39)`.
pub(super) fn described(facts: &Facts<'_>, peer: &str) -> String {
    let name = format!("daemon {}", short(peer));
    let Some(known) = facts.status.peers.get(peer) else {
        return format!("{name} (unknown here)");
    };
    let linked = known.is_linked();
    let mut words = vec![if linked { "linked" } else { "not linked" }.to_owned()];
    if let Some(round) = known.round {
        words.push(if linked {
            format!("in round {round}")
        } else {
            format!("last seen in round {round}")
        });
    }
    if known.suspected {
        words.push("missed its last deadline".to_owned());
    }
    format!("{name} ({})", words.join(", "))
}

/// Several things in a sentence: `a`, `a and b`, `a, b and c`.
pub fn listed(things: &[String]) -> String {
    match things {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A duration, such as `3.2 s` or `4 min`.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 0.0095 => format!("{:.1} ms", s * 1e3),
        s if s < 0.95 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// A rate in bits, as links are sold.
pub fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s * 8.0 {
        bits if bits < 1e6 => format!("{:.0} kbit/s", bits / 1e3),
        bits if bits < 1e9 => format!("{:.0} Mbit/s", bits / 1e6),
        bits => format!("{:.1} Gbit/s", bits / 1e9),
    }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
