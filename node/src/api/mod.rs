//! The daemon's HTTP interface: `/status` for people and scripts, `/metrics` for Prometheus, and
//! `/limits`, the only page that can change something, and only for who can read the daemon's token.

mod about;
mod claims;
mod client;
mod control;
mod door;
mod forecast;
mod goal_eta;
mod handle;
mod host;
mod insight;
mod limits;
mod link;
mod memory;
mod metrics;
mod observer;
mod page;
mod rounds;
mod server;
mod status;
mod swarm;
mod token;
mod trouble;
mod v1;
mod why;

pub use about::About;
pub use claims::{Claim, ClaimView, ClaimedWait, Claims};
pub(crate) use client::ADDRESS_FILE;
pub use client::{AskError, Connection, NotedError, noted_address};
pub use control::ControlStatus;
pub use forecast::{Basis, Forecaster, PredictedStatus, RoundStatus};
pub use handle::{Clock, StatusHandle};
pub use insight::{
    Altered, Equals, Failure, Figures, History, Incident, IncidentKind, Incidents, Insight, Ledger,
    Outages, PeerTotals, Point, RoundEntry, RoundResult, Share, Standing, WaitNow,
};
pub use limits::LimitsPage;
pub use link::{LinkStatus, Traffic};
pub use memory::{Memory, peak_rss_bytes, peak_rss_bytes_of, rss_bytes};
pub use metrics::{MetricsFormat, metrics_text};
pub use observer::Observer;
pub(crate) use page::page_of_local;
pub use server::{ApiError, ApiServer, Served};
pub use status::{
    Contributor, EvaluationStatus, GroupStatus, NatStatus, PathStatus, PeerStatus, Presence,
    ServingStatus, Status, TransferStatus, VitalsStatus, WaitStatus,
};
pub use swarm::{DaemonView, GoalView, PeerView, Strip, Swarm, Totals};
pub use token::{TOKEN_FILE, Token};
pub use trouble::{Trouble, TroubleKind};
pub use v1::{ContributionsPage, HistoryPage};
pub use why::{Answer, Facts, Question, Topic, why, words};
pub(crate) use why::{ELSEWHERE, ONE_IDENTITY, SAME_DATA_ACTION, trains_the_same};
