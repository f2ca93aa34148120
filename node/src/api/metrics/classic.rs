//! OpenMetrics as the classic text format of Prometheus.
//!
//! **Source:** <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format> and the
//! OpenMetrics specification 1.0. They differ where a family is described: OpenMetrics names it without
//! the suffix of its samples (`_total`, `_info`), and has the types `info` and `unknown`, units and an
//! end. Samples are the same.

/// The classic form of a text that has counters, gauges and infos.
pub(super) fn of(openmetrics: &str) -> String {
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
    fn families_are_named_as_their_samples() {
        let text = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                    a_seconds_total 1.5\n# HELP b Who.\n# TYPE b info\nb_info{x=\"1\"} 1\n\
                    # HELP c Now.\n# TYPE c gauge\nc 2\n# EOF\n";
        let expected = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
                        a_seconds_total 1.5\n# HELP b_info Who.\n# TYPE b_info gauge\nb_info{x=\"1\"} 1\n\
                        # HELP c Now.\n# TYPE c gauge\nc 2\n";
        assert_eq!(of(text), expected);
    }
}
