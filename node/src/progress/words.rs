//! Formats numbers for people.

/// Bytes with a unit and one decimal: `1.2 MB`; below 1,000 without decimals: `999 B`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Seconds as hours, minutes and seconds, without leading zeros: `1h02m`, `3m05s`, `4.2s`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// A number with four decimals, or a dash if it is `None`.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.4}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_can_read_them() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234_567), "1.2 MB");
        assert_eq!(bytes(999_990), "1.0 MB");
        assert_eq!(duration(4.21), "4.2s");
        assert_eq!(duration(185.0), "3m05s");
        assert_eq!(duration(3725.0), "1h02m");
        assert_eq!(optional(None), "-");
    }
}
