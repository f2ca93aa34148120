//! `murmurate completions` and `murmurate man`: what a shell and `man` know of the command, made from
//! the command line itself.

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::out;
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;

/// The name of the program.
const NAME: &str = "murmurate";

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    out::with(|out| out.write_all(&script))
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        return out::with(|out| out.write_all(&page));
    };
    let failed = || format!("--out: cannot write to {}", dir.display());
    std::fs::create_dir_all(dir).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).with_context(failed)?;
    let root = dir.join(format!("{NAME}.1"));
    out::line(format_args!(
        "wrote {} and a page for each subcommand",
        root.display()
    ))
}
