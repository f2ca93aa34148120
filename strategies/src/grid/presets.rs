//! Presets: named points of the grid, as configurations. What they leave out has its default.

use super::StrategyError;
use super::registry::{PRESETS, hint, names};

/// The preset of a configuration that names none.
pub const DEFAULT_PRESET: &str = "diloco";

/// No exchange. The yardstick of utilization: the same inner steps, nothing else.
const NONE: &str = r#"
[synchronization]
inner_steps = 8
[architecture]
exchange = "none"
[inner]
optimizer = "sgd"
lr = 0.1
"#;

/// Bulk-synchronous data parallelism: the inner optimizer takes the mean gradient.
const BSP: &str = r#"
[synchronization]
inner_steps = 1
[architecture]
exchange = "all-reduce"
contribution = "gradient"
[inner]
optimizer = "sgd"
lr = 0.1
momentum = 0.9
"#;

/// Local SGD: inner steps, then the mean.
const LOCAL_SGD: &str = r#"
[synchronization]
inner_steps = 16
[architecture]
exchange = "all-reduce"
contribution = "delta"
[outer]
optimizer = "average"
[inner]
optimizer = "sgd"
lr = 0.1
"#;

/// DiLoCo with the paper's outer optimizer. Its rounds of 500 inner steps of AdamW are for models
/// that train for days; where every peer has other classes they drift too far apart.
const DILOCO: &str = r#"
[synchronization]
inner_steps = 8
[architecture]
exchange = "all-reduce"
contribution = "delta"
[outer]
optimizer = "nesterov"
lr = 0.7
momentum = 0.9
[inner]
optimizer = "sgd"
lr = 0.1
"#;

/// Decentralized parallel SGD: one inner step, then mixing with the neighbours on a ring.
const D_PSGD: &str = r#"
[synchronization]
inner_steps = 1
[architecture]
exchange = "gossip"
contribution = "parameters"
topology = "ring"
[inner]
optimizer = "sgd"
lr = 0.1
"#;

/// The configuration of a preset, as TOML.
///
/// # Errors
/// When there is no such preset.
pub fn preset(name: &str) -> Result<&'static str, StrategyError> {
    match name {
        "none" => Ok(NONE),
        "bsp" => Ok(BSP),
        "local-sgd" => Ok(LOCAL_SGD),
        "diloco" => Ok(DILOCO),
        "d-psgd" => Ok(D_PSGD),
        _ => Err(StrategyError::UnknownPreset {
            found: name.to_owned(),
            hint: hint(name, &names(&PRESETS)),
        }),
    }
}
