//! A trial's results as tables: aligned for the terminal, or in Markdown.

use super::report::{EqualReport, EqualRow, Spread};
use crate::compare::bytes;
use std::fmt;

impl EqualReport {
    /// The tables in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        for (title, table) in self.tables() {
            text += &format!("{title}\n\n");
            for (at, line) in table.iter().enumerate() {
                text += &format!("| {} |\n", line.join(" | "));
                if at == 0 {
                    text += &format!("|---|{}\n", "---:|".repeat(line.len() - 1));
                }
            }
            text.push('\n');
        }
        text + &self.note() + "\n"
    }

    /// A title and its lines of cells, the head first, for each size and distribution that has run.
    fn tables(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let mut tables = Vec::new();
        for size in &self.trial.size {
            for data in &self.trial.data {
                let rows = self.rows_of(size.peers, &data.name);
                let run = self
                    .outcomes
                    .iter()
                    .find(|run| (run.peers, &run.data) == (size.peers, &data.name));
                let Some(run) = run else { continue };
                let samples = run.inner_steps * run.batch * run.peers as u64;
                let seeds: Vec<String> = size.seeds.iter().map(u64::to_string).collect();
                let title = format!(
                    "{} peers, {}: {} inner steps each, {samples} samples together, {} parameters, seeds {}",
                    run.peers,
                    data.name,
                    run.inner_steps,
                    run.parameters,
                    seeds.join(" ")
                );
                tables.push((title, self.table(&rows)));
            }
        }
        tables
    }

    fn table(&self, rows: &[&EqualRow]) -> Vec<Vec<String>> {
        let budget = rows.iter().find(|row| row.entrant == self.trial.budget);
        let mut head: Vec<String> = ["entrant", "H", "loss", "penalty", "sent"]
            .map(str::to_owned)
            .to_vec();
        let of = budget.map_or_else(|| "-".to_owned(), |row| bytes(row.bytes));
        head.push(format!("at {of}"));
        for (at, network) in self.trial.network.iter().enumerate() {
            let seconds = budget.map(|row| format!("{:.1} s", row.networks[at].seconds));
            head.push(format!("{}: s", network.name));
            head.push(format!("at {}", seconds.unwrap_or_else(|| "-".to_owned())));
        }
        let mut lines = vec![head];
        for row in rows {
            let mut line = vec![
                row.entrant.clone(),
                format!("{:.0}", row.period),
                nats(row.loss),
                percent(row.penalty),
                bytes(row.bytes),
                mark(
                    nats(row.at_bytes),
                    budget.is_some_and(|b| row.bytes < b.bytes),
                ),
            ];
            for network in &row.networks {
                line.push(format!("{:.1}", network.seconds));
                line.push(mark(nats(network.at_seconds), network.done));
            }
            lines.push(line);
        }
        lines
    }

    fn note(&self) -> String {
        let (baseline, budget) = (&self.trial.baseline, &self.trial.budget);
        format!(
            "Loss in nats on held-out data, mean and standard deviation over seeds. H: inner steps between two exchanges of a value. \
             Penalty: over `{baseline}` with equal samples. The columns \"at\" have the loss when a peer has used \
             the bytes or seconds of the whole run of `{budget}`; * had finished before."
        )
    }
}

impl fmt::Display for EqualReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, table) in self.tables() {
            writeln!(f, "\n{title}")?;
            let columns = table[0].len();
            let width = |at: usize| table.iter().map(|line| line[at].chars().count()).max();
            let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
            for line in &table {
                let mut text = format!("{:<1$}", line[0], widths[0]);
                for (cell, width) in line.iter().zip(&widths).skip(1) {
                    text += &format!("  {cell:>width$}");
                }
                writeln!(f, "{}", text.trim_end())?;
            }
        }
        writeln!(f, "\n{}", self.note())
    }
}

fn nats(value: Option<Spread>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Spread { mean, deviation }) => match deviation {
            None => format!("{mean:.3}"),
            Some(deviation) => format!("{mean:.3} ± {deviation:.3}"),
        },
    }
}

fn percent(value: Option<Spread>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{:+.1} %", 100.0 * v.mean))
}

fn mark(text: String, done: bool) -> String {
    if done { format!("{text} *") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::super::spec::EqualTrial;
    use super::*;

    const TRIAL: &str = "baseline = \"bsp\"\nbudget = \"rare\"\npoints = 2\nstep_ms = 1.0\n\
        [task]\nkind = \"quadratic\"\ndim = 4\n\
        [[size]]\npeers = 4\ninner_steps = 20\nseeds = [1]\n\
        [[data]]\nname = \"iid\"\nscenario = {}\n\
        [[network]]\nname = \"wan\"\nscenario = {}\n\
        [[entrant]]\nname = \"bsp\"\nstrategy = { preset = \"bsp\" }\n\
        [[entrant]]\nname = \"rare\"\nstrategy = { preset = \"local-sgd\", synchronization = { inner_steps = 10 } }\n";

    #[test]
    fn a_budget_cuts_the_others_short() {
        let trial = EqualTrial::from_toml(TRIAL, "t.toml").unwrap();
        let runs = vec![
            outcome("bsp", &[5.0, 3.0, 2.0], 4000.0, 4.0),
            outcome("rare", &[5.0, 3.5, 2.5], 400.0, 1.0),
        ];
        let report = EqualReport::new(&trial, runs);
        let [bsp, rare] = &report.rows[..] else {
            panic!("two rows: {:?}", report.rows);
        };
        // The bytes of `rare` pay for 2 of bsp's 20 inner steps, its 20 s for 5.
        let mean = |spread: Option<Spread>| spread.unwrap().mean;
        assert!((mean(bsp.at_bytes) - 4.6).abs() < 1e-12);
        assert!((mean(bsp.networks[0].at_seconds) - 4.0).abs() < 1e-12);
        assert!((mean(rare.at_bytes) - 2.5).abs() < 1e-12);
        assert!((mean(rare.penalty) - 0.25).abs() < 1e-12);
        assert!(!rare.networks[0].done && !bsp.networks[0].done);
        let (text, markdown) = (report.to_string(), report.to_markdown());
        assert!(text.contains("+25.0 %"), "{text}");
        assert!(
            markdown.contains("| rare | 10 | 2.500 | +25.0 % |"),
            "{markdown}"
        );
    }

    #[test]
    fn what_cannot_be_compared_is_refused_in_one_line() {
        for (from, to, key) in [
            ("baseline = \"bsp\"", "baseline = \"bps\"", "`baseline`"),
            (
                "inner_steps = 20",
                "inner_steps = 25",
                "`size[0].inner_steps`",
            ),
            ("peers = 4", "peers = 1", "`size[0].peers`"),
            ("seeds = [1]", "seeds = []", "`size[0].seeds`"),
            ("points = 2", "points = 0", "`points`"),
            (
                "preset = \"bsp\"",
                "preset = \"bps\"",
                "`entrant[0].strategy`",
            ),
            ("name = \"rare\"", "name = \"bsp\"", "`entrant[1].name`"),
            ("points = 2", "pionts = 2", "`pionts`"),
        ] {
            let text = TRIAL.replacen(from, to, 1);
            let line = EqualTrial::from_toml(&text, "t.toml")
                .unwrap_err()
                .to_string();
            assert!(line.contains(key) && !line.contains('\n'), "{line}");
            assert!(line.starts_with("t.toml:"), "{line}");
        }
    }
}
