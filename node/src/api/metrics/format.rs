//! The formats of `/metrics`, and which one a request asks for.

use axum::http::{HeaderMap, header};

/// A format of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format 0.0.4, which every tool reads.
    #[default]
    Classic,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// OpenMetrics for who accepts it by name, as Prometheus does; the classic text for all others.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT);
        let lines = lines.iter().filter_map(|line| line.to_str().ok());
        let mut ranges = lines.flat_map(|line| line.split(',')).map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts
                .filter_map(|part| part.strip_prefix("q="))
                .any(|q| q.parse::<f64>().is_ok_and(|q| q <= 0.0));
            (name, refused)
        });
        match ranges.any(|(name, no)| name.eq_ignore_ascii_case(OPEN_METRICS) && !no) {
            true => Self::OpenMetrics,
            false => Self::Classic,
        }
    }

    /// The value of `Content-Type`.
    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_who_asks_for_it() {
        let of = |accept: &str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            MetricsFormat::accepted(&headers)
        };
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(of(prometheus), MetricsFormat::OpenMetrics);
        assert_eq!(of("text/plain;version=0.0.4"), MetricsFormat::Classic);
        assert_eq!(of("*/*"), MetricsFormat::Classic);
        assert_eq!(
            of("application/openmetrics-text; q=0"),
            MetricsFormat::Classic
        );
        let none = MetricsFormat::accepted(&HeaderMap::new());
        assert_eq!(none, MetricsFormat::Classic);
    }
}
