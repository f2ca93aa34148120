//! Multiple choice: which of some answers a language model finds the most likely.

use crate::data::Tokens;
use crate::generate::{Generator, row};
use crate::model::{Cache, CausalLm, ModelDirError};
use crate::{TaskError, loss};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The largest file of questions.
const BYTES_MAX: u64 = 1 << 30;

/// Between a question and each of its answers.
const DELIMITER: &str = " ";

/// A question with its answers, as evaluation harnesses write them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Question {
    /// The text in front of each answer; a space is put between them.
    pub query: String,
    /// The answers.
    pub choices: Vec<String>,
    /// Index of the right one.
    pub gold: usize,
}

/// How many questions a model answers rightly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ChoiceScore {
    /// Questions asked.
    pub questions: usize,
    /// Questions whose right answer has the largest sum of log probabilities of its tokens (`acc`).
    pub right: usize,
    /// The same, each sum divided by the number of characters of the answer (`acc_norm`).
    pub right_by_length: usize,
    /// Questions whose text was cut at its beginning because the model takes less.
    pub cut: usize,
}

/// Reads a file of JSON Lines with `query`, `choices` and `gold`.
///
/// # Errors
/// Names the line that is no question, or that has no such answer.
pub fn read_questions(path: &Path) -> Result<Vec<Question>, TaskError> {
    let wrong = |reason: String| TaskError::from(ModelDirError::new(path, reason));
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let bytes = file
        .metadata()
        .map_err(|error| wrong(error.to_string()))?
        .len();
    if bytes > BYTES_MAX {
        return Err(wrong(format!(
            "it has {bytes} bytes, at most {BYTES_MAX} are read"
        )));
    }
    let mut questions = Vec::new();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let refused = |reason: &str| {
            let number = index + 1;
            wrong(format!(
                "line {number} {reason} (a question is {{\"query\": \"..\", \"choices\": [\"..\", \"..\"], \
                 \"gold\": 0}})"
            ))
        };
        if line.trim().is_empty() {
            continue;
        }
        let read: Result<Question, _> = serde_json::from_str(&line);
        let question = read.map_err(|error| refused(&format!("is no question: {error}")))?;
        let (gold, answers) = (question.gold, question.choices.len());
        if answers < 2 {
            return Err(refused("has fewer than two answers"));
        }
        if gold >= answers {
            return Err(refused(&format!(
                "has gold = {gold}, and the answers count from 0 to {}",
                answers - 1
            )));
        }
        if question.choices.iter().any(String::is_empty) {
            return Err(refused("has an empty answer"));
        }
        questions.push(question);
    }
    match questions.is_empty() {
        true => Err(wrong("it has no questions".to_owned())),
        false => Ok(questions),
    }
}

/// Questions as the tokens of one model.
pub(crate) struct Choices {
    questions: Vec<Asked>,
    /// The longest sequence of the model.
    positions: usize,
}

struct Asked {
    context: Vec<u32>,
    /// The tokens of each answer, and its characters.
    answers: Vec<(Vec<u32>, usize)>,
    gold: usize,
    /// With an answer it is longer than the model's sequences.
    cut: bool,
}

impl Choices {
    /// `begin` is what a text begins with where the tokenizer puts nothing there.
    ///
    /// **Source:** the division of text: the language model evaluation harness of EleutherAI, `lm_eval/api/model.py`.
    ///
    /// # Errors
    /// If the tokenizer fails, or an answer has no token of its own.
    pub(crate) fn new(
        questions: &[Question],
        (tokens, begin): (&Tokens, Option<u32>),
        positions: usize,
    ) -> Result<Self, String> {
        let asked = (1..).zip(questions).map(|(number, question)| {
            let asked = asked(question, (tokens, begin), positions);
            asked.map_err(|reason| format!("question {number}: {reason}"))
        });
        Ok(Self {
            questions: asked.collect::<Result<_, _>>()?,
            positions,
        })
    }

    /// Questions whose text is cut at its beginning because the model takes less.
    pub(crate) fn cut(&self) -> usize {
        self.questions
            .iter()
            .filter(|question| question.cut)
            .count()
    }

    /// Asks a model. Calls `f` with the number of questions asked.
    ///
    /// **Source:** the two measures: the same harness, `lm_eval/api/task.py`.
    pub(crate) fn ask(
        &self,
        model: &CausalLm,
        device: &Device,
        f: &mut dyn FnMut(usize),
    ) -> ChoiceScore {
        let mut score = ChoiceScore::default();
        for question in &self.questions {
            let (context, mut shared) = (&question.context, Cache::default());
            if (2..=self.positions).contains(&context.len()) {
                let _ = model.follow(row(&context[..context.len() - 1], device), &mut shared);
            }
            let mut sums = Vec::new();
            for (answer, _) in &question.answers {
                let all = [context, &answer[..answer.len() - 1]].concat();
                let (seen, mut cache) = match all.len() > self.positions {
                    true => (&all[all.len() - self.positions..], Cache::default()),
                    false => (&all[context.len() - 1..], shared.clone()),
                };
                let x = model.follow(row(seen, device), &mut cache);
                sums.push(log_likelihood(model.output().logits(&x), answer));
            }
            score.questions += 1;
            score.cut += usize::from(question.cut);
            score.right += usize::from(largest(&sums) == question.gold);
            let by_length = sums.iter().zip(&question.answers);
            let by_length = by_length.map(|(sum, (_, characters))| sum / *characters as f64);
            score.right_by_length +=
                usize::from(largest(&by_length.collect::<Vec<_>>()) == question.gold);
            f(score.questions);
        }
        score
    }
}

impl ChoiceScore {
    /// The share of questions that are answered rightly, by either measure, with the harness's names.
    pub fn shares(&self) -> [(&'static str, f64); 2] {
        let of = self.questions.max(1) as f64;
        [("acc", self.right), ("acc_norm", self.right_by_length)]
            .map(|(name, right)| (name, right as f64 / of))
    }
}

impl Generator {
    /// Asks the model questions. Calls `f` with the number of those asked.
    ///
    /// # Errors
    /// If the tokenizer fails, or an answer has no token of its own.
    pub fn choose(
        &self,
        questions: &[Question],
        f: &mut dyn FnMut(usize),
    ) -> Result<ChoiceScore, TaskError> {
        let asked = Choices::new(questions, self.tokens(), self.positions());
        let (model, device) = self.model();
        Ok(asked.map_err(TaskError::Own)?.ask(model, device, f))
    }
}

fn asked(
    question: &Question,
    (tokens, begin): (&Tokens, Option<u32>),
    positions: usize,
) -> Result<Asked, String> {
    // Spaces before an answer are its own, because tokens begin with them.
    let text = question.query.trim_end();
    let spaces = &question.query[text.len()..];
    let context = tokens.encode_or_begin(text, begin)?;
    let answers = question.choices.iter().map(|choice| {
        let whole = format!("{text}{spaces}{DELIMITER}{choice}");
        // Without a text, the context is a token that the answer's text does not have.
        let (whole, behind) = match text.is_empty() {
            true => (tokens.encode(&whole)?, 0),
            false => (tokens.encode_or_begin(&whole, begin)?, context.len()),
        };
        match whole.get(behind..).unwrap_or_default() {
            [] => Err(format!(
                "the answer {choice:?} has no token of its own (write it otherwise)"
            )),
            answer => Ok((answer.to_vec(), choice.chars().count())),
        }
    });
    let answers: Vec<(Vec<u32>, usize)> = answers.collect::<Result<_, _>>()?;
    let longest = answers.iter().map(|(answer, _)| answer.len()).max();
    Ok(Asked {
        cut: context.len() + longest.unwrap_or(0) > positions + 1,
        answers,
        gold: question.gold,
        context,
    })
}

/// The sum of the log probabilities of an answer's tokens, by the logits in front of each. Of an answer longer than
/// the model's sequences, its end counts.
fn log_likelihood(logits: Tensor<2>, answer: &[u32]) -> f64 {
    let rows = logits.dims()[0];
    let answer = &answer[answer.len() - answer.len().min(rows)..];
    let logits = logits.narrow(0, rows - answer.len(), answer.len());
    -loss::sum_of(logits, answer)
}

/// The first of the largest.
fn largest(values: &[f64]) -> usize {
    let each = values.iter().enumerate();
    let best = each.reduce(|best, it| if it.1 > best.1 { it } else { best });
    best.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("questions.jsonl");
        std::fs::write(&file, text).unwrap();
        let line = read_questions(&file).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    }

    #[test]
    fn what_is_no_question_is_named_by_its_line() {
        let good = "{\"query\": \"a\", \"choices\": [\"b\", \"c\"], \"gold\": 1}\n\n";
        for (text, reason) in [
            (String::new(), "it has no questions"),
            (
                format!("{good}{{\"query\": \"a\"}}"),
                "line 3 is no question: missing field `choices`",
            ),
            (
                good.replace("1}", "2}"),
                "line 1 has gold = 2, and the answers count from 0 to 1",
            ),
            (
                good.replace("\"b\", ", ""),
                "line 1 has fewer than two answers",
            ),
            (good.replace("\"b\"", "\"\""), "line 1 has an empty answer"),
        ] {
            let line = refusal(&text);
            assert!(line.contains(reason), "{line}");
        }
    }
}
