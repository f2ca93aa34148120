//! Values that a shell completes, of flags that are parsed by other rules than a list: a preset that does not
//! exist is told its nearest, and a device may have a number.

use crate::doctor::names;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use murmurate_net::emulate::NatKind;
use murmurate_node::local::shards_of;
use murmurate_strategies::grid::catalogue;
use murmurate_trust::Role;
use std::ffi::OsStr;

/// A parser that also offers values.
#[derive(Clone)]
pub(crate) struct Offered<P> {
    inner: P,
    values: fn() -> Vec<&'static str>,
}

/// Parses as `inner` does and offers these values.
pub(crate) const fn offered<P: TypedValueParser>(
    inner: P,
    values: fn() -> Vec<&'static str>,
) -> Offered<P> {
    Offered { inner, values }
}

impl<P: TypedValueParser> TypedValueParser for Offered<P> {
    type Value = P::Value;

    fn parse_ref(&self, of: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.inner.parse_ref(of, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            (self.values)().into_iter().map(PossibleValue::new),
        ))
    }
}

/// Offers values for the options that are declared in a library.
pub(crate) fn offer(arg: Arg) -> Arg {
    let arg = match arg.get_id().as_str() {
        "preset" => arg.value_parser(offered(str::parse::<String>, presets)),
        "device" => arg.value_parser(offered(str::parse::<String>, devices)),
        "shards" => arg.value_parser(offered(shards_of, shards)),
        "nat" => arg.value_parser(offered(str::parse::<NatKind>, nats)),
        _ => return arg,
    };
    arg.hide_possible_values(true)
}

/// The names of all presets.
fn presets() -> Vec<&'static str> {
    let presets = catalogue()
        .into_iter()
        .filter(|method| method.key == "preset");
    presets.map(|method| method.name).collect()
}

/// The names of all methods.
pub(crate) fn methods() -> Vec<&'static str> {
    catalogue().into_iter().map(|method| method.name).collect()
}

/// Ways to divide the data.
fn shards() -> Vec<&'static str> {
    vec!["dealt", "iid", "by-label", "dirichlet:0.5"]
}

/// Devices that train.
pub(crate) fn devices() -> Vec<&'static str> {
    vec!["flex", "wgpu", "cuda"]
}

/// Kinds of routers.
fn nats() -> Vec<&'static str> {
    vec!["none", "full-cone", "port-restricted", "symmetric"]
}

/// Roles of members.
pub(crate) fn roles() -> Vec<&'static str> {
    Role::ALL.map(Role::name).to_vec()
}

/// Codes of `murmurate doctor`.
pub(crate) fn all_codes() -> Vec<&'static str> {
    names().collect()
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use clap::{CommandFactory, Parser};
    use clap_complete::Shell;

    #[test]
    fn a_shell_completes_values_and_not_files() {
        let mut script = Vec::new();
        clap_complete::generate(Shell::Fish, &mut Cli::command(), "murmurate", &mut script);
        let script = String::from_utf8(script).unwrap();
        for (flag, value) in [
            ("preset", "diloco"),
            ("shards", "by-label"),
            ("role", "observe"),
            ("nat", "symmetric"),
            ("device", "cuda"),
            ("kind", "peer_down"),
        ] {
            // One entry has a line for each value.
            let mut entries = script.split("complete -c ");
            let offered = entries
                .any(|entry| entry.contains(&format!("-l {flag} ")) && entry.contains(value));
            assert!(offered, "--{flag} is not completed with {value}");
        }
    }

    /// The list is too long for the help, and a value outside the list is parsed too.
    #[test]
    fn offers_are_no_limits() {
        for line in [
            "murmurate run --device cuda:3",
            "murmurate local --shards dirichlet:0.1",
            "murmurate run --preset mine",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        let mut cli = Cli::command();
        let local = cli.find_subcommand_mut("local").unwrap();
        assert!(
            !local
                .render_long_help()
                .to_string()
                .contains("possible values: adacomm")
        );
    }
}
