//! The formats of `/metrics`, and which one a request asks for.

use axum::http::{HeaderMap, header};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    /// The text format 0.0.4, which every tool reads.
    #[default]
    Classic,
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
        if ranges.any(|(name, no)| name.eq_ignore_ascii_case(OPEN_METRICS) && !no) {
            Self::OpenMetrics
        } else {
            Self::Classic
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text";

/// The classic text format of Prometheus for a text of OpenMetrics that has counters, gauges and infos.
///
/// They differ where a family is described: OpenMetrics names it without the suffix of its samples (`_total`,
/// `_info`), and has the types `info` and `unknown`, units and an end. Samples are the same.
///
/// **Source:** <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format> and the
/// OpenMetrics specification 1.0.
pub(super) fn classic(openmetrics: &str) -> String {
    let mut out = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            // It is printed with the type, which decides the name.
            help = described.split_once(' ');
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = typed.split_once(' ') else {
                continue;
            };
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            if let Some((_, words)) = help.take().filter(|(of, _)| *of == name) {
                out.push_str(&format!("# HELP {name}{suffix} {words}\n"));
            }
            out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

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

    #[test]
    fn families_are_named_as_their_samples() {
        let text = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                    a_seconds_total 1.5\n# HELP b Who.\n# TYPE b info\nb_info{x=\"1\"} 1\n\
                    # HELP c Now.\n# TYPE c gauge\nc 2\n# EOF\n";
        let expected = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
                        a_seconds_total 1.5\n# HELP b_info Who.\n# TYPE b_info gauge\nb_info{x=\"1\"} 1\n\
                        # HELP c Now.\n# TYPE c gauge\nc 2\n";
        assert_eq!(classic(text), expected);
    }
}
