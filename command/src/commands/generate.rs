//! The commands about a language model: `generate` lets it continue a text or answer messages, and
//! `eval --choices` asks it questions.

use super::bar;
use crate::cli::{EvalArgs, GenerateArgs};
use crate::exit::Ended;
use crate::out;
use murmurate_tasks::{DeviceChoice, Generated, Generator, Sampling, Turn, read_questions};
use serde_json::json;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

/// A device by its name, or the usual one.
fn device(name: Option<&String>) -> anyhow::Result<DeviceChoice> {
    Ok(match name {
        Some(name) => name.parse()?,
        None => DeviceChoice::default(),
    })
}

pub(crate) fn generate(args: &GenerateArgs) -> anyhow::Result<()> {
    if !(0.0..=100.0).contains(&args.temperature) {
        return Err(Ended::usage("--temperature: give a number from 0 to 100"));
    }
    if !(args.top_p > 0.0 && args.top_p <= 1.0) {
        return Err(Ended::usage("--top-p: give a number above 0 and at most 1"));
    }
    let generator = Generator::open(&args.model, &device(args.device.as_ref())?)?;
    let sampling = Sampling {
        max_tokens: args.max_tokens,
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        stop: args.stop.clone(),
        seed: args.seed,
    };
    let rule = args.system.iter().map(|text| turn("system", text));
    let mut turns: Vec<Turn> = rule.collect();
    match (&args.prompt, args.chat) {
        (Some(prompt), true) => {
            turns.push(turn("user", prompt));
            let answer = |f: &mut dyn FnMut(&str)| generator.answer(&turns, &sampling, f);
            shown(args.json, "", answer).map(drop)
        }
        (Some(prompt), false) => {
            let follow = |f: &mut dyn FnMut(&str)| generator.generate(prompt, &sampling, f);
            shown(args.json, prompt, follow).map(drop)
        }
        (None, _) => chat(&generator, &sampling, turns),
    }
}

fn turn(role: &str, content: &str) -> Turn {
    Turn {
        role: role.to_owned(),
        content: content.to_owned(),
    }
}

/// Answers each line of stdin.
fn chat(generator: &Generator, sampling: &Sampling, mut turns: Vec<Turn>) -> anyhow::Result<()> {
    let ask = || {
        if io::stdin().is_terminal() {
            // A terminal that has gone shows no prompt.
            let _ = write!(io::stderr(), "> ");
        }
    };
    ask();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty() {
            turns.push(turn("user", &line));
            let answer = |f: &mut dyn FnMut(&str)| generator.answer(&turns, sampling, f);
            let said = shown(false, "", answer)?;
            turns.push(turn("assistant", said.text.trim_end()));
        }
        ask();
    }
    Ok(())
}

/// Prints a text while it is generated, behind its prompt; or as one JSON object at the end.
fn shown(
    as_json: bool,
    prompt: &str,
    generate: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Generated, murmurate_tasks::TaskError>,
) -> anyhow::Result<Generated> {
    if as_json {
        let found = generate(&mut |_| {})?;
        out::json(&found)?;
        return Ok(found);
    }
    let mut generated = None;
    out::with(|out| {
        let mut written = write!(out, "{prompt}");
        let each = &mut |text: &str| {
            if written.is_ok() {
                written = write!(out, "{text}").and_then(|()| out.flush());
            }
        };
        generated = Some(generate(each));
        written.and_then(|()| writeln!(out))
    })?;
    let generated = generated.expect("the text was generated")?;
    if generated.unseen > 0 {
        out::tell(format_args!(
            "the first {} tokens of the prompt are not seen: it is longer than the model's sequences",
            generated.unseen
        ));
    }
    Ok(generated)
}

/// Asks a model the questions of a file.
pub(super) fn choices(args: &EvalArgs, model: &Path, file: &Path) -> anyhow::Result<()> {
    let questions = read_questions(file)?;
    let generator = Generator::open(model, &device(args.device.as_ref())?)?;
    let bar = bar(
        questions.len() as u64,
        "{bar:30} {pos} of {len} questions {eta}",
    )?;
    let score = generator.choose(&questions, &mut |asked| bar.set_position(asked as u64))?;
    bar.finish_and_clear();
    let others = (score.questions as f64 - 1.0).max(1.0);
    // Of a share of independent questions.
    let error = |share: f64| (share * (1.0 - share) / others).sqrt();
    let [(_, plain), (_, by_length)] = score.shares();
    if args.json {
        return out::line(json!({
            "model": model,
            "choices": file,
            "questions": score.questions,
            "acc": plain,
            "acc_stderr": error(plain),
            "acc_norm": by_length,
            "acc_norm_stderr": error(by_length),
            "cut": score.cut,
        }));
    }
    if score.cut > 0 {
        let cut = score.cut;
        out::tell(format_args!(
            "{cut} questions are longer than the model's sequences: their beginnings are left out"
        ));
    }
    out::line(format_args!(
        "accuracy {plain:.4} (standard error {:.4}), {by_length:.4} ({:.4}) by length of the answers, on {} \
         questions",
        error(plain),
        error(by_length),
        score.questions
    ))
}
