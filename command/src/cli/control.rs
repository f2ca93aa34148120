//! The command line of `murmurate control`.

use super::membership::OfficeArgs;
use clap::{Args, Subcommand};
use murmurate_node::directive::CONFIGURED;
use murmurate_protocol::{Change, RateFactor};
use murmurate_strategies::compress::CODECS;

/// The daemon of DIR tells the others. All of them change before the same round.
#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    #[command(flatten)]
    pub(crate) office: OfficeArgs,
    #[command(subcommand)]
    pub(crate) what: ControlCommand,
    /// Print one JSON object on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// From which round on.
#[derive(Debug, Args)]
pub(crate) struct FromArgs {
    /// The first round with the change [default: a few rounds from now, so that all daemons hear of it]
    #[arg(long, value_name = "ROUND")]
    pub(crate) at: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ControlCommand {
    /// Begin no more rounds until the run is resumed
    #[command(after_help = "Example:\n  murmurate control pause --at 300")]
    Pause {
        #[command(flatten)]
        from: FromArgs,
    },
    /// Go on after a pause, or cancel one that is to come
    #[command(after_help = "Example:\n  murmurate control resume")]
    Resume,
    /// End the run before a round
    #[command(after_help = "Example:\n  murmurate control stop --at 500")]
    Stop {
        /// The round that does not begin: the number of rounds in all
        #[arg(long, value_name = "ROUND")]
        at: u64,
    },
    /// Change the number of rounds in all
    #[command(after_help = "Example:\n  murmurate control rounds 800")]
    Rounds {
        /// Rounds in all; 0 for no end
        count: u64,
    },
    /// Change the learning rate
    #[command(after_help = "Example:\n  murmurate control lr 0.5x --at 300")]
    Lr {
        /// A multiple of the configured learning rate: 0.5x is half of it, 1x is it
        #[arg(value_name = "FACTORx", value_parser = factor)]
        factor: RateFactor,
        #[command(flatten)]
        from: FromArgs,
    },
    /// Change the number of inner steps of a round
    #[command(after_help = "Example:\n  murmurate control inner-steps 20")]
    InnerSteps {
        /// Inner steps of every round from then on
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        #[command(flatten)]
        from: FromArgs,
    },
    /// Change the codec of contributions
    #[command(
        after_help = "Examples:\n  murmurate control codec int8 --at 300\n  murmurate control codec configured"
    )]
    Codec {
        /// A codec that rounds every value and sends no more than the configured one, such as int8 where that is
        /// f32, with its default parameters; `configured` for that of the configuration
        #[arg(value_name = "CODEC", value_parser = codec)]
        codec: CodecChoice,
        #[command(flatten)]
        from: FromArgs,
    },
    /// List what is directed
    #[command(after_help = "Example:\n  murmurate control list --json")]
    List,
}

impl ControlCommand {
    /// The change, and the first round with it if one is given; `None` for a list.
    pub(crate) fn change(&self) -> Option<(Change, Option<u64>)> {
        Some(match self {
            Self::Pause { from } => (Change::Pause, from.at),
            Self::Resume => (Change::Resume, None),
            Self::Stop { at } => (Change::Rounds(*at), None),
            Self::Rounds { count } => (Change::Rounds(*count), None),
            Self::Lr { factor, from } => (Change::LearningRate(*factor), from.at),
            Self::InnerSteps { count, from } => (Change::InnerSteps(*count), from.at),
            Self::Codec { codec, from } => (Change::Codec(codec.0), from.at),
            Self::List => return None,
        })
    }
}

/// A codec by its byte; `None` for that of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodecChoice(Option<u8>);

/// Parses the name of a codec.
fn codec(text: &str) -> Result<CodecChoice, String> {
    if text == CONFIGURED {
        return Ok(CodecChoice(None));
    }
    let found = CODECS.iter().find(|spec| spec.name == text);
    match found {
        Some(spec) => Ok(CodecChoice(Some(spec.tag))),
        None => Err("there is no such codec; `murmurate strategies` lists them".to_owned()),
    }
}

/// Parses a multiple, such as `0.5x`. The `x` says that it is no learning rate.
fn factor(text: &str) -> Result<RateFactor, String> {
    let number = text.strip_suffix('x').and_then(|text| text.parse().ok());
    let factor = number.and_then(RateFactor::new);
    factor.ok_or_else(|| {
        "give a multiple of the configured learning rate, from 0.000001x to 1000x, such as 0.5x"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_ends_in_x() {
        assert_eq!(factor("0.5x"), Ok(RateFactor::new(0.5).unwrap()));
        assert_eq!(factor("1x"), Ok(RateFactor::ONE));
        for text in ["0.5", "x", "0x", "-1x", "nanx", "1001x", "0.5xx"] {
            assert!(factor(text).is_err(), "{text}");
        }
    }
}
