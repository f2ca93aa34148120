//! Training and data as a daemon uses them. One program: each more would link burn again.
#![expect(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

mod causal;
mod factors;
mod forward;
mod hugging_face;
mod island;
mod stream;
mod trainer;
