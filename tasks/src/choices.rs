//! Multiple choice: which of some answers a language model finds the most likely.

use crate::generate::Generator;
use crate::model::{Cache, ModelDirError};
use crate::{TaskError, loss};
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

impl Generator {
    /// Asks a model questions. Calls `f` with the number of those asked.
    ///
    /// **Source:** the division of text and the two measures: the language model evaluation harness of EleutherAI,
    /// `lm_eval/api/model.py` and `task.py`.
    ///
    /// # Errors
    /// If the tokenizer fails, or an answer has no token of its own.
    pub fn choose(
        &self,
        questions: &[Question],
        f: &mut dyn FnMut(usize),
    ) -> Result<ChoiceScore, TaskError> {
        let mut score = ChoiceScore::default();
        for question in questions {
            // Spaces before an answer are its own, because tokens begin with them.
            let text = question.query.trim_end();
            let spaces = &question.query[text.len()..];
            let context = self.encode_or_begin(text).map_err(|error| {
                TaskError::Own(format!("question {}: {error}", score.questions + 1))
            })?;
            let (mut sums, mut cut) = (Vec::new(), false);
            let mut shared = Cache::default();
            if (2..=self.positions()).contains(&context.len()) {
                self.take(&context[..context.len() - 1], &mut shared);
            }
            for choice in &question.choices {
                let whole = format!("{text}{spaces}{DELIMITER}{choice}");
                // Without a text, the context is a token that the answer's text does not have.
                let (whole, begin) = match text.is_empty() {
                    true => (self.encode(&whole)?, 0),
                    false => (self.encode_or_begin(&whole)?, context.len()),
                };
                let answer = whole.get(begin..).unwrap_or_default();
                if answer.is_empty() {
                    return Err(TaskError::Own(format!(
                        "the answer {choice:?} to {:?} has no token of its own (write it otherwise)",
                        question.query
                    )));
                }
                let (sum, shortened) = self.log_likelihood(&context, answer, &shared);
                cut |= shortened;
                sums.push(sum);
            }
            score.questions += 1;
            score.cut += usize::from(cut);
            score.right += usize::from(largest(&sums) == question.gold);
            let by_length = sums.iter().zip(&question.choices);
            let by_length = by_length.map(|(sum, choice)| sum / choice.chars().count() as f64);
            score.right_by_length +=
                usize::from(largest(&by_length.collect::<Vec<_>>()) == question.gold);
            f(score.questions);
        }
        Ok(score)
    }

    /// The sum of the log probabilities of an answer's tokens behind a context, all but whose last token a cache
    /// has; and whether the beginning was left out because the model takes less.
    fn log_likelihood(&self, context: &[u32], answer: &[u32], shared: &Cache) -> (f64, bool) {
        let all = [context, &answer[..answer.len() - 1]].concat();
        let cut = all.len() > self.positions();
        let logits = if cut {
            self.read(&all[all.len() - self.positions()..], &mut Cache::default())
        } else {
            self.read(&all[context.len() - 1..], &mut shared.clone())
        };
        let rows = logits.dims()[0];
        // Of an answer longer than the model's sequences, its end counts.
        let answer = &answer[answer.len() - answer.len().min(rows)..];
        let logits = logits.narrow(0, rows - answer.len(), answer.len());
        (-loss::sum_of(logits, answer), cut)
    }
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
