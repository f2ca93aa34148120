//! Arguments of the commands about members of a run.

use super::offered::{self, offered};
use clap::Args;
use murmurate_trust::Role;
use std::path::PathBuf;

/// The directory that `murmurate run` uses by default.
pub(crate) const USUAL_DIR: &str = "murmurate-state";

#[derive(Debug, Args)]
pub(crate) struct RunKeyArgs {
    /// Name of the run
    pub(crate) name: String,
    /// File to write [default: NAME.key]
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

/// Where a right to let machines in comes from.
#[derive(Debug, Args)]
pub(crate) struct OfficeArgs {
    /// Directory of a daemon of the run
    #[arg(value_name = "DIR", default_value = USUAL_DIR)]
    pub(crate) dir: PathBuf,
    /// The run key [default: the one in DIR, or the certificate in DIR if it has the role admit]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

/// What a line for another machine says, and how it is printed.
#[derive(Debug, Args)]
pub(crate) struct LineArgs {
    #[command(flatten)]
    pub(crate) office: OfficeArgs,
    /// What the machine may do: train; admit, which also lets others in; observe, which only follows;
    /// or relay, which only carries the traffic of others
    #[arg(long, default_value_t = Role::Train, value_parser = offered(str::parse::<Role>, offered::roles), hide_possible_values = true)]
    pub(crate) role: Role,
    /// Address of a daemon of the run; may be given several times [default: those of DIR's daemon]
    #[arg(long, value_name = "MULTIADDR")]
    pub(crate) address: Vec<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InviteArgs {
    #[command(flatten)]
    pub(crate) line: LineArgs,
    /// How long the invite can be used: 7d, 12h, 30min
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = seconds)]
    pub(crate) expires: u64,
    /// How many machines can use it
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) uses: u32,
}

#[derive(Debug, Args)]
pub(crate) struct AdmitArgs {
    /// Id of the machine's daemon, as `murmurate id` prints it there
    #[arg(value_name = "PEER")]
    pub(crate) peer: String,
    #[command(flatten)]
    pub(crate) line: LineArgs,
}

/// The daemon of DIR tells the others.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// An id, its first digits, or the line of an invite
    #[arg(value_name = "PEER|INVITE")]
    pub(crate) whom: String,
    #[command(flatten)]
    pub(crate) office: OfficeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MembersArgs {
    /// Directory of a daemon of the run
    #[arg(value_name = "DIR", default_value = USUAL_DIR)]
    pub(crate) dir: PathBuf,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct IdArgs {
    /// The daemon's directory; it is made if it is missing
    #[arg(value_name = "DIR", default_value = USUAL_DIR)]
    pub(crate) dir: PathBuf,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a time of at least a second and at most a year.
fn seconds(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 0,
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    let seconds = seconds.filter(|s| (1..=366 * 86_400).contains(s));
    seconds.ok_or_else(|| "give a time such as 7d, 12h, 30min or 90s, at most 366d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(seconds("7d"), Ok(7 * 86_400));
        assert_eq!(seconds("90s"), Ok(90));
        for text in [
            "",
            "7",
            "d",
            "0s",
            "-1h",
            "1y",
            "367d",
            "99999999999999999999d",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
