//! Output for the operator: the status over HTTP and the printed lines.

use crate::api::StatusHandle;
use crate::config::Config;
use crate::daemon::DaemonError;
use crate::daemon::alarms::Alarms;
use crate::daemon::detours::Detours;
use crate::daemon::voice::Voice;
use crate::daemon::void_rounds::VoidRounds;
use crate::events::EventLog;
use crate::progress::Printer;
use crate::telemetry::Telemetry;
use murmurate_protocol::PeerId;
use std::time::Instant;

/// The status and the printer, with the values that both show.
pub(super) struct Console {
    /// The status that `/status` and `/metrics` serve.
    pub(super) status: StatusHandle,
    /// Prints for the terminal, or JSON lines for a program.
    pub(super) printer: Printer,
    /// The event log.
    pub(super) log: EventLog,
    /// Traces and metrics for a collector, if the configuration names one.
    pub(super) telemetry: Option<Telemetry>,
    /// Address of the HTTP server.
    pub(super) http: Option<String>,
    /// When the links were last read.
    pub(super) links_read: Instant,
    /// What the daemon says of itself to others.
    pub(super) voice: Voice,
    /// Rounds without a result, which are said.
    pub(super) void_rounds: VoidRounds,
    /// The daemons that were named because they have other data.
    pub(super) other_data: Vec<PeerId>,
    /// The links that were said to go through another daemon.
    pub(super) detours: Detours,
    /// What is wrong, as far as it was printed.
    pub(super) alarms: Alarms,
    addresses: Vec<String>,
    /// The name of the run, if it is open.
    open: Option<String>,
}

impl Console {
    /// Starts without addresses.
    pub(super) fn new(
        status: StatusHandle,
        (printer, log): (Printer, EventLog),
        http: Option<String>,
        open: Option<String>,
        voice: Voice,
    ) -> Self {
        Self {
            status,
            printer,
            log,
            telemetry: None,
            http,
            links_read: Instant::now(),
            voice,
            void_rounds: VoidRounds::default(),
            other_data: Vec::new(),
            detours: Detours::default(),
            alarms: Alarms::default(),
            addresses: Vec::new(),
            open,
        }
    }

    /// The same, which also exports traces and metrics if the configuration names a collector.
    pub(super) fn exporting(mut self, config: &Config) -> Result<Self, DaemonError> {
        if let Some(collector) = &config.daemon.watch.otlp {
            let status = self.status.status();
            let started = Telemetry::start(collector, &status);
            let telemetry = started.map_err(|reason| DaemonError::Telemetry { reason })?;
            self.telemetry = Some(telemetry);
        }
        Ok(self)
    }

    /// Shows an address at which others can join.
    pub(super) fn listening(&mut self, address: String) {
        tracing::info!(address, "listening");
        self.addresses.push(address);
        self.show_addresses();
        let peer = self.status.with(|observer| observer.peer_hex());
        self.printer.listening(
            &peer,
            &self.addresses,
            self.http.clone(),
            self.open.as_deref(),
        );
    }

    /// The addresses at which others can join.
    pub(super) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Removes an address at which others can no longer join.
    pub(super) fn not_listening(&mut self, gone: &str) {
        self.addresses.retain(|address| address != gone);
        self.show_addresses();
    }

    fn show_addresses(&self) {
        let addresses = self.addresses.clone();
        self.status
            .with(|observer| observer.set_addresses(addresses));
    }
}
