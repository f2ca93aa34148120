//! The plan that this daemon and its peers must agree on.

use crate::config::Config;
use murmurate_protocol::{Digest, LayoutHash, Plan};
use murmurate_strategies::Layout;
use murmurate_strategies::grid::StrategyError;

/// The plan of a configuration with this number of rounds. Beside the strategy, peers agree on the seed,
/// from which they draw initial parameters and deal the data, and on the values of the model that are
/// not trained.
///
/// # Errors
/// As [`Strategy::plan`](murmurate_strategies::grid::Strategy::plan).
pub(super) fn plan(
    config: &Config,
    layout: &Layout,
    frozen: Option<Digest>,
    rounds: u64,
) -> Result<Plan, StrategyError> {
    let strategy = config.strategy.clone().for_peers(config.run.start_with);
    let mut plan = strategy.plan(config.run.id, layout, rounds)?;
    let seed = config.run.seed.to_le_bytes();
    plan.recipe = Digest::of(&[&plan.recipe.as_bytes()[..], &seed].concat());
    if let Some(frozen) = frozen {
        let both = [&plan.layout.as_bytes()[..], frozen.as_bytes()].concat();
        plan.layout = LayoutHash::from_bytes(*Digest::of(&both).as_bytes());
    }
    Ok(plan)
}
