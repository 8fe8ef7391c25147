//! Amounts as people read them, short.

/// `512 B`, `1.5 KiB`.
pub(crate) fn bytes(amount: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
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

/// `950 ns`, `12.3 µs`, `3.21 ms`, `2.50 s`.
pub(crate) fn seconds(time: f64) -> String {
    match time {
        _ if time >= 1.0 => format!("{time:.2} s"),
        _ if time >= 1e-3 => format!("{:.2} ms", time * 1e3),
        _ if time >= 1e-6 => format!("{:.1} µs", time * 1e6),
        _ => format!("{:.0} ns", time * 1e9),
    }
}

/// `983k`, `268M`.
pub(crate) fn amount(value: f64) -> String {
    match value {
        _ if value >= 1e12 => format!("{:.1}T", value / 1e12),
        _ if value >= 1e9 => format!("{:.1}G", value / 1e9),
        _ if value >= 1e6 => format!("{:.1}M", value / 1e6),
        _ if value >= 1e3 => format!("{:.1}k", value / 1e3),
        _ => format!("{value:.0}"),
    }
}

/// A rate in thousands of millions: `0.012`, `3.45`, `123`.
pub(crate) fn giga(rate: f64) -> String {
    let value = rate / 1e9;
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A share: `0.02 %`, `4.2 %`, `87 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        _ if value >= 10.0 => format!("{value:.0} %"),
        _ if value >= 0.1 => format!("{value:.1} %"),
        _ => format!("{value:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(seconds(2.5), "2.50 s");
        assert_eq!(seconds(3.21e-3), "3.21 ms");
        assert_eq!(seconds(12.3e-6), "12.3 µs");
        assert_eq!(seconds(0.0), "0 ns");
        assert_eq!(amount(983_040.0), "983.0k");
        assert_eq!(giga(123.4e9), "123");
        assert_eq!(giga(1.5e6), "0.0015");
        assert_eq!(percent(0.874), "87 %");
        assert_eq!(percent(0.0002), "0.02 %");
    }
}
