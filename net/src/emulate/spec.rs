//! Properties of a link as people write them: `RATE/RTT/LOSS` with optional keys.

use super::error::SpecError;
use super::rate::Rate;
use super::shaper::ShaperSpec;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Length of a link's queue if the specification does not give one.
const QUEUE_DEFAULT: Duration = Duration::from_millis(100);

/// The largest packet of Ethernet, in bytes.
const MTU_DEFAULT: u16 = 1500;

/// The smallest MTU: that of IPv6 (RFC 8200, section 5), which QUIC needs too.
const MTU_MIN: u16 = 1280;

const TIME_MAX: Duration = Duration::from_secs(60);

/// The longest mean burst, in datagrams.
const BURST_MAX: f64 = 10_000.0;

const FORM: &str = "is not a link; write RATE/RTT/LOSS such as 50mbit/100ms/1%, \
                    then keys such as /queue=100ms,jitter=5ms";

/// A direction, as seen by the daemon behind the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the daemon.
    Up,
    /// To the daemon.
    Down,
}

/// A link of one daemon to all others.
///
/// Its text is `RATE/RTT/LOSS`, followed by any of `queue=`, `jitter=`, `burst=`, `reorder=`,
/// `mtu=`, `up=` and `down=`, separated by `/` or `,`. `up=RATE,down=RATE` may replace RATE.
///
/// The path between two daemons consists of their two links, each of which is half of it. With
/// links `a` and `b`, `rtt = (rtt_a + rtt_b) / 2`, `loss = 1 - sqrt((1 - loss_a) (1 - loss_b))` in
/// each direction, and the rate is the smaller of the sender's `up` and the receiver's `down`. So
/// the path between two daemons with the same link has the properties of that link. Each link has
/// two queues: one for what the daemon sends, one for what several others send to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpec {
    /// The rate from the daemon.
    pub up: Rate,
    /// The rate to the daemon.
    pub down: Rate,
    /// Round-trip time to a daemon with the same link, without queueing.
    pub rtt: Duration,
    /// Datagrams lost in each direction, in millionths.
    pub loss_ppm: u32,
    /// The longest time that a datagram may wait in a queue. Later ones are dropped.
    pub queue: Duration,
    /// The largest random addition to a datagram's delay, uniformly distributed.
    pub jitter: Duration,
    /// Jitter may change the order of datagrams.
    pub reorder: bool,
    /// Mean number of consecutively lost datagrams; `None` for independent losses.
    pub burst: Option<f64>,
    /// The largest packet in bytes, with its headers.
    pub mtu: u16,
}

impl Default for LinkSpec {
    fn default() -> Self {
        Self {
            up: Rate::UNLIMITED,
            down: Rate::UNLIMITED,
            rtt: Duration::ZERO,
            loss_ppm: 0,
            queue: QUEUE_DEFAULT,
            jitter: Duration::ZERO,
            reorder: false,
            burst: None,
            mtu: MTU_DEFAULT,
        }
    }
}

impl LinkSpec {
    /// Fraction of datagrams lost in each direction between daemons with this link, 0 to 1.
    pub fn loss(&self) -> f64 {
        f64::from(self.loss_ppm) / 1e6
    }

    /// The largest UDP payload that it carries, with the headers of IPv6, and at least QUIC's
    /// smallest.
    pub fn payload_max(&self) -> u16 {
        (self.mtu - 48).max(1200)
    }

    /// This link's half of a path: a quarter of the round-trip time, half of the jitter, and a loss
    /// of `1 - sqrt(1 - loss)`. Two halves lose `loss`.
    pub fn half(&self, direction: Direction) -> ShaperSpec {
        ShaperSpec {
            delay: self.rtt / 4,
            jitter: self.jitter / 2,
            loss: 1.0 - (1.0 - self.loss()).sqrt(),
            ..self.path(direction)
        }
    }

    /// One direction of a whole path, for callers that emulate it with one shaper.
    pub fn path(&self, direction: Direction) -> ShaperSpec {
        ShaperSpec {
            rate: match direction {
                Direction::Up => self.up,
                Direction::Down => self.down,
            },
            delay: self.rtt / 2,
            jitter: self.jitter,
            reorder: self.reorder,
            loss: self.loss(),
            burst: self.burst,
            queue: self.queue,
            mtu: Some(self.mtu.into()),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        match key {
            "queue" => self.queue = time(key, value)?,
            "jitter" => self.jitter = time(key, value)?,
            "mtu" => {
                let mtu = value.parse().ok().filter(|mtu| *mtu >= MTU_MIN);
                let expected = "is not the size of a packet; write 1280 to 65535 bytes";
                self.mtu = mtu.ok_or_else(|| SpecError::new(key, value, expected))?;
            }
            "up" => self.up = value.parse().map_err(|e: SpecError| e.of(key))?,
            "down" => self.down = value.parse().map_err(|e: SpecError| e.of(key))?,
            "reorder" => {
                self.reorder = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(SpecError::new(key, value, "must be yes or no")),
                }
            }
            "burst" => {
                let burst = value.parse().ok();
                let burst = burst.filter(|b| (1.0..=BURST_MAX).contains(b));
                let expected = "is not a mean count of datagrams lost in a row; write 1 to 10000";
                self.burst = Some(burst.ok_or_else(|| SpecError::new(key, value, expected))?);
            }
            _ => {
                let expected = "is no key; there are queue, jitter, reorder, burst, mtu, up, down";
                return Err(SpecError::new("key", key, expected));
            }
        }
        Ok(())
    }

    fn check(&self, text: &str) -> Result<(), SpecError> {
        if let Some(burst) = self.burst {
            // After a delivered datagram, a burst begins with probability loss / ((1 - loss)
            // burst).
            if self.loss() > burst / (burst + 1.0) {
                let expected = "is too short for this loss; write a longer burst, or less LOSS";
                return Err(SpecError::new("burst", &burst.to_string(), expected));
            }
        }
        if self.reorder && self.jitter.is_zero() {
            let expected = "reorders nothing without jitter; add a jitter= to it";
            return Err(SpecError::new("reorder", text, expected));
        }
        Ok(())
    }
}

/// Parses a time with its unit, in whole microseconds.
fn time(part: &str, text: &str) -> Result<Duration, SpecError> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let parsed = units.iter().find_map(|(name, micros)| {
        let number: f64 = text.strip_suffix(name)?.parse().ok()?;
        Some((number * micros).round())
    });
    let most = TIME_MAX.as_micros() as f64;
    match parsed.filter(|micros| (0.0..=most).contains(micros)) {
        Some(micros) => Ok(Duration::from_micros(micros as u64)),
        None => {
            let expected = "is not a time; write 0ms to 60s in us, ms or s, such as 100ms";
            Err(SpecError::new(part, text, expected))
        }
    }
}

fn loss(text: &str) -> Result<u32, SpecError> {
    // Zero needs no unit.
    if text == "0" {
        return Ok(0);
    }
    let percent = text.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
    match percent.filter(|p| (0.0..=100.0).contains(p)) {
        Some(percent) => Ok((percent * 1e4).round() as u32),
        None => {
            let expected = "is not a loss; write 0% to 100%, such as 0.1%";
            Err(SpecError::new("LOSS", text, expected))
        }
    }
}

impl FromStr for LinkSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parts = || text.split(['/', ',']);
        let mut positional = Vec::new();
        let mut keys = Vec::new();
        for part in parts() {
            match part.split_once('=') {
                Some(pair) => keys.push(pair),
                None => positional.push(part),
            }
        }
        let named = |name: &str| keys.iter().any(|(key, _)| *key == name);
        let mut link = Self::default();
        let rest = match positional.as_slice() {
            [rate, rest @ ..] if rest.len() == 2 => {
                link.up = rate.parse()?;
                link.down = link.up;
                rest
            }
            rest if rest.len() == 2 && named("up") && named("down") => rest,
            _ => return Err(SpecError::new("link", text, FORM)),
        };
        link.rtt = time("RTT", rest[0])?;
        link.loss_ppm = loss(rest[1])?;
        for (index, (key, value)) in keys.iter().enumerate() {
            if keys[..index].iter().any(|(before, _)| before == key) {
                return Err(SpecError::new(
                    key,
                    value,
                    "is the second value of this key",
                ));
            }
            link.set(key, value)?;
        }
        link.check(text)?;
        Ok(link)
    }
}

fn write_time(f: &mut fmt::Formatter<'_>, time: Duration) -> fmt::Result {
    let micros = time.as_micros();
    if micros.is_multiple_of(1_000) {
        write!(f, "{}ms", micros / 1_000)
    } else {
        write!(f, "{micros}us")
    }
}

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.up == self.down {
            write!(f, "{}/", self.up)?;
        } else {
            write!(f, "up={},down={}/", self.up, self.down)?;
        }
        write_time(f, self.rtt)?;
        let (whole, rest) = (self.loss_ppm / 10_000, self.loss_ppm % 10_000);
        let rest = format!("{rest:04}");
        match rest.trim_end_matches('0') {
            "" => write!(f, "/{whole}%")?,
            rest => write!(f, "/{whole}.{rest}%")?,
        }
        if self.queue != QUEUE_DEFAULT {
            f.write_str("/queue=")?;
            write_time(f, self.queue)?;
        }
        if !self.jitter.is_zero() {
            f.write_str("/jitter=")?;
            write_time(f, self.jitter)?;
        }
        if self.reorder {
            f.write_str("/reorder=yes")?;
        }
        if let Some(burst) = self.burst {
            write!(f, "/burst={burst}")?;
        }
        if self.mtu != MTU_DEFAULT {
            write!(f, "/mtu={}", self.mtu)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
