//! The daemon's HTTP interface: `/status` for people and scripts, `/metrics` for Prometheus, and
//! `/limits`, the only page that can change something, and only for who can read the daemon's token.

mod about;
mod claims;
mod client;
mod control;
mod door;
mod forecast;
mod goal_eta;
mod insight;
mod limits;
mod link;
mod memory;
mod metrics;
mod observer;
mod page;
mod server;
mod status;
mod swarm;
mod v1;
mod why;

pub use about::About;
pub use claims::ClaimView;
pub(crate) use claims::Claims;
pub(crate) use client::ADDRESS_FILE;
pub use client::{AskError, Connection, NotedError, noted_address};
pub use control::ControlStatus;
pub use forecast::Basis;
pub(crate) use forecast::{Forecaster, PredictedStatus, RoundStatus};
pub(crate) use insight::{Altered, PeerTotals, WithoutResult};
pub use insight::{Figures, Point, WaitNow};
pub use limits::{TOKEN_FILE, Token};
pub(crate) use link::LinkStatus;
pub use link::Traffic;
pub use memory::{Memory, peak_rss_bytes_of};
pub(crate) use metrics::{MetricsFormat, metrics_text};
pub use observer::{Clock, Observer, StatusHandle};
pub(crate) use page::page_of_local;
pub(crate) use server::ApiError;
pub use server::{ApiServer, Served};
pub use status::{EvaluationStatus, PrivacyStatus, PromiseStatus, Status, Trouble, TroubleKind};
pub(crate) use status::{PathStatus, PeerStatus, Presence, ServingStatus, TransferStatus};
pub use swarm::{DaemonView, PeerView, Swarm};
pub use v1::{ContributionsPage, HistoryPage};
pub use why::{Answer, Question, Topic, why, words};
pub(crate) use why::{ELSEWHERE, Facts, ONE_IDENTITY, SAME_DATA_ACTION, trains_the_same};
