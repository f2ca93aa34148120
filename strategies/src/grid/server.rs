//! Parameter servers between the written tables and their plans.

use super::StrategyError;
use super::tables::Tables;
use super::validate::{absent, count, range};
use core::time::Duration;
use murmurate_protocol::limits::GROUP_MEMBERS_MAX;
use murmurate_protocol::{ExchangeKind, ServerPlan};

/// The longest grace that can be asked for: a day.
const GRACE_MS_MAX: u64 = 86_400_000;

/// One owner, and everybody is waited for.
pub(super) const IN_STEP: ServerPlan = ServerPlan {
    owners: 1,
    enough: 0,
    grace: Duration::ZERO,
};

/// What the tables say of a parameter server; of others that they say nothing.
pub(super) fn exchange(kind: ExchangeKind, tables: &Tables) -> Result<ExchangeKind, StrategyError> {
    let (of, when) = (&tables.architecture, &tables.synchronization);
    let ExchangeKind::Server(default) = kind else {
        let name = name_of(kind);
        absent(&of.owners, "architecture.owners", name)?;
        absent(&when.enough, "synchronization.enough", name)?;
        absent(&when.grace_ms, "synchronization.grace_ms", name)?;
        return Ok(kind);
    };
    let members = GROUP_MEMBERS_MAX;
    let owners = of.owners.unwrap_or(usize::from(default.owners));
    let owners = count("architecture.owners", owners, [1, members], "from 1 to 64")?;
    let enough = when.enough.unwrap_or(0);
    let enough = count("synchronization.enough", enough, [0, members], "from 0 to 64")?;
    let (key, grace) = ("synchronization.grace_ms", when.grace_ms.unwrap_or(0));
    let needed = "from 0 milliseconds to a day";
    range(grace <= GRACE_MS_MAX, key, grace as f64, needed)?;
    Ok(ExchangeKind::Server(ServerPlan {
        owners: owners as u16,
        enough: enough as u16,
        grace: Duration::from_millis(grace),
    }))
}

/// The exchange's name in the configuration.
pub(super) const fn name_of(kind: ExchangeKind) -> &'static str {
    match kind {
        ExchangeKind::None => "none",
        ExchangeKind::Gossip => "gossip",
        ExchangeKind::AllReduce => "all-reduce",
        ExchangeKind::Gathered => "gathered",
        ExchangeKind::Server(_) => "parameter-server",
    }
}

impl Tables {
    /// Writes an exchange down.
    pub(super) fn set_exchange(&mut self, kind: ExchangeKind) {
        self.architecture.exchange = Some(name_of(kind).to_owned());
        if let ExchangeKind::Server(server) = kind {
            self.architecture.owners = Some(usize::from(server.owners));
            self.synchronization.enough = Some(usize::from(server.enough));
            self.synchronization.grace_ms = u64::try_from(server.grace.as_millis()).ok();
        }
    }
}
