//! `murmurate init`: writes a commented configuration.

use crate::cli::InitArgs;
use crate::out;
use murmurate_node::config::{Replace, write_template};

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<()> {
    let replace = if args.force {
        Replace::Always
    } else {
        Replace::Never
    };
    write_template(&args.to, replace)?;
    let file = args.to.display();
    out::line(format_args!(
        "wrote {file}; start a daemon with: murmurate run --config {file}"
    ))
}
