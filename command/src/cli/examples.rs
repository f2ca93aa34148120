//! Examples for the help of the commands. A test runs all of them through the parser.

pub(crate) const RUN: &str = "Examples:
  murmurate run                                       found a run and train alone until others come
  murmurate run --dir b --invite invite.txt           enter the run of another machine
  murmurate run --config node.toml --rounds 500       settings from a file; flags override it
  murmurate run --until-accuracy 0.95                 leave when the goal is reached
  murmurate run --trainer attach -- python train.py   train with a loop of your own";

pub(crate) const LOCAL: &str = "Examples:
  murmurate local                                          four daemons learn digits together
  murmurate local --demo                                   what a swarm survives, in a minute
  murmurate local --open-browser                           watch them on a page
  murmurate local --top                                    watch them on the terminal
  murmurate local --nodes 8 --link 20mbit/60ms/0.5%        on slow links
  murmurate local --shards iid --kill 2@round:10:exchange  a daemon dies in the middle of a round";

pub(crate) const INIT: &str = "Examples:
  murmurate init                 write node.toml
  murmurate init --to gpu1.toml  write another file";

pub(crate) const SIM: &str = "Examples:
  murmurate sim sim/scenarios/all-reduce-8.toml  run a scenario in virtual time
  murmurate sim --seeds 100                       check invariants in random scenarios
  murmurate sim --replay node-0.rec               repeat what a daemon recorded with --record";

pub(crate) const SIM_SURVEY: &str = "Example:
  murmurate sim survey --measured survey/data/10gbe.csv";

pub(crate) const SIM_COMPARE: &str = "Example:
  murmurate sim compare comparison.toml --presets diloco,local-sgd --html out.html";

pub(crate) const SIM_LANGUAGE: &str = "Examples:
  murmurate sim language sim/scenarios/language/presets.toml --data book.txt --results runs.jsonl
  murmurate sim language sim/scenarios/language/presets.toml --data book.txt --peers 4 --seeds 1
  murmurate sim language sim/scenarios/language/outer.toml --data book.txt --markdown";

pub(crate) const PLAN: &str = "Examples:
  murmurate plan --params 1e8 --step-ms 250 --link 100mbit/40ms --peers 8
  murmurate plan --params 1e8 --step-ms 250 --link 100mbit/40ms --peers 8 --task causal-lm
  murmurate plan --params 7850 --step-ms 2 --link 100mbit/40ms --peers 128 --privacy 8";

pub(crate) const STRATEGIES: &str = "Examples:
  murmurate strategies              list all methods
  murmurate strategies show diloco  show one: keys, equation, source, memory
  murmurate strategies --json       all of it for a program";

pub(crate) const STRATEGIES_SHOW: &str = "Example:
  murmurate strategies show top-k";

pub(crate) const EXPORT: &str = "Examples:
  murmurate export node-0 --to model.safetensors               what the peers agreed on last
  murmurate export node-0 --to best.safetensors --store best   with daemon.keep_best
  murmurate export node-0 --to model                           a folder, of kind = \"causal-lm\"";

pub(crate) const GENERATE: &str = "Example:
  murmurate generate --model model --prompt \"Once upon a time\" --max-tokens 50";

pub(crate) const EVAL: &str = "Examples:
  murmurate eval --model model.safetensors                   on the data of its configuration
  murmurate eval --model model.safetensors --data held/out   on other data
  murmurate eval --dir node-0 --against local                does the swarm help this daemon?";

pub(crate) const LIMIT: &str = "Examples:
  murmurate limit node-0                         show the limits
  murmurate limit node-0 --max-rate \"10 MB/s\"    all peers together
  murmurate limit node-0 --max-rate none         no limit
  murmurate limit node-0 --json                  for a program";

pub(crate) const CONTROL: &str = "Examples:
  murmurate control node-0 pause                all daemons stop before the same round
  murmurate control node-0 resume               and go on
  murmurate control node-0 stop --at 500        end the run after 500 rounds
  murmurate control node-0 lr 0.5x --at 300     half the learning rate from round 300 on
  murmurate control node-0 inner-steps 20       another number of inner steps
  murmurate control node-0 list                 what is directed";

pub(crate) const TOP: &str = "Examples:
  murmurate top                                   the daemon of murmurate-state
  murmurate top node-0                            another one
  murmurate top http://127.0.0.1:46367/           by the address of its page
  murmurate top node-0 --once                     one frame as text
  murmurate top node-0 --json                     all of it for a program
  murmurate top --replay node-0/events.jsonl      a run that is over";

pub(crate) const WHY: &str = "Examples:
  murmurate why                      what the round waits for
  murmurate why node-0 contribution  whether this daemon's training counted
  murmurate why node-0 slow          what takes the time of a round
  murmurate why node-0 accuracy      why the accuracy fell";

pub(crate) const LOG: &str = "Examples:
  murmurate log                             the log of murmurate-state
  murmurate log node-0 node-1 --merge       several daemons, joined by cause
  murmurate log node-0 --round 40 --json    one round, for a program
  murmurate log node-0 --chrome trace.json  to look at in ui.perfetto.dev";

pub(crate) const RUN_KEY: &str = "Example:
  murmurate run-key birds --to birds.key";

pub(crate) const INVITE: &str = "Examples:
  murmurate invite                           a line for one machine, for seven days
  murmurate invite node-0 --uses 8           for eight machines
  murmurate invite node-0 --role observe     for one that only follows";

pub(crate) const ADMIT: &str = "Example:
  murmurate admit ID node-0   `murmurate id` prints the ID on the other machine";

pub(crate) const REVOKE: &str = "Examples:
  murmurate revoke 0123abcd node-0   throw a machine out by the first digits of its id
  murmurate revoke LINE              make an invite void";

pub(crate) const MEMBERS: &str = "Examples:
  murmurate members
  murmurate members node-0 --json";

pub(crate) const ID: &str = "Examples:
  murmurate id
  murmurate id node-0 --json";

pub(crate) const BENCH_EXCHANGE: &str = "Example:
  murmurate bench exchange --nodes 4 --params 1000000";

pub(crate) const BENCH_JOIN: &str = "Examples:
  murmurate bench join --params 100000000
  murmurate bench join --params 100000000 --kill-at 0.5   # the newcomer dies and comes back";

pub(crate) const BENCH_CODECS: &str = "Example:
  murmurate bench codecs int8 top-k:density=0.01 --values 1000000";

pub(crate) const BENCH_NET: &str = "Examples:
  murmurate bench net --bytes 100MB                   both ends on this machine
  murmurate bench net --listen 0.0.0.0:4100           on the far machine
  murmurate bench net --join 192.0.2.1:4100           on the near one";

pub(crate) const BENCH: &str = "Examples:
  murmurate bench codecs
  murmurate bench net --bytes 100MB";

pub(crate) const DOCTOR: &str = "Examples:
  murmurate doctor                                     the default configuration and directory
  murmurate doctor --config node.toml                  another one
  murmurate doctor --invite invite.txt                 also whether the daemons to join answer
  murmurate doctor node-0 --bundle report.json         a file for a report of a problem";

pub(crate) const EXPLAIN: &str = "Examples:
  murmurate explain        list all codes
  murmurate explain M021   cause, effect and fix of one";

pub(crate) const COMPLETIONS: &str = "Examples:
  murmurate completions bash   as ~/.local/share/bash-completion/completions/murmurate
  murmurate completions zsh    as _murmurate in a directory of $fpath
  murmurate completions fish   as ~/.config/fish/completions/murmurate.fish";

pub(crate) const MAN: &str = "Examples:
  murmurate man                            the page of the command
  murmurate man --out /usr/share/man/man1  a page for each subcommand";

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use clap::{Command, CommandFactory, Parser};

    /// The words of a line as a shell would split it, up to the two spaces before its explanation.
    fn words(line: &str) -> Vec<String> {
        let mut all = vec![String::new()];
        let (mut quoted, mut spaces) = (false, 0);
        for c in line.trim_start().chars() {
            spaces = if c == ' ' && !quoted { spaces + 1 } else { 0 };
            match c {
                '"' => quoted = !quoted,
                ' ' if spaces == 2 => break,
                ' ' if !quoted => all.push(String::new()),
                c => all.last_mut().unwrap().push(c),
            }
        }
        all.retain(|word| !word.is_empty());
        all
    }

    fn check(command: &Command, path: &str) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name());
            let help = sub.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.starts_with("Example"), "`{path}` has no examples");
            for line in help.lines().filter(|line| line.starts_with("  ")) {
                let words = words(line);
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{line}: {words:?}: {}", parsed.unwrap_err());
                assert!(words.join(" ").starts_with(&path), "{line} in `{path}`");
            }
            check(sub, &path);
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        check(&Cli::command(), "murmurate");
    }
}
