//! Amounts as people read them.

use std::time::Duration;

/// `512 B`, `1.5 KiB`.
pub(crate) fn bytes(amount: u128) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if amount < 1024 {
        return format!("{amount} B");
    }
    let mut value = amount as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Milliseconds with as many digits as mean something: `0.012 ms`, `3.21 ms`, `2.50 s`.
pub(crate) fn duration(time: Duration) -> String {
    let ms = milliseconds(time);
    match ms {
        _ if ms >= 1e4 => format!("{:.1} s", ms / 1e3),
        _ if ms >= 1e3 => format!("{:.2} s", ms / 1e3),
        _ if ms >= 100.0 => format!("{ms:.0} ms"),
        _ if ms >= 1.0 => format!("{ms:.2} ms"),
        _ => format!("{ms:.3} ms"),
    }
}

/// Milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// `1 program`, `2 programs`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(4 << 60), "4.0 EiB");
        assert_eq!(bytes(u128::MAX).split(' ').next_back(), Some("EiB"));
        assert_eq!(duration(Duration::from_micros(12)), "0.012 ms");
        assert_eq!(duration(Duration::from_micros(3210)), "3.21 ms");
        assert_eq!(duration(Duration::from_millis(2500)), "2.50 s");
    }
}
