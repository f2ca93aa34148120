//! The descriptions of all metrics by their names without prefix. `docs/metrics.md` is written from them.

pub(super) fn counter(name: &str) -> &'static str {
    match name {
        "rounds_ended" => "Rounds ended",
        "inner_steps" => "Inner steps taken",
        "samples" => "Samples trained on",
        "skipped_records" => "Records of the data left out because they cannot be read",
        "catch_ups" => "States fetched from the swarm",
        "voids" => {
            "Exchanges that ended without a result at this daemon; others may have decided some of them"
        }
        "alone" => "Attempts without a group, after which the round continued",
        "expired_waits" => "Waits that ended at their deadline",
        "mass_uncertain" => "Transfers that may have lost or doubled push-sum weight",
        "misbehaved" => "Violations of the protocol by other peers",
        "refused" => "Refusals: of peers by this daemon, and of this daemon by peers",
        "work_failed" => "Work orders that failed in this daemon",
        "saves_failed" => "Checkpoints that could not be written",
        "train_seconds" => "Time in inner steps",
        "wait_seconds" => "Time in which rounds waited until other peers were as far",
        "exchange_seconds" => "Time of exchanges apart from that",
        "wall_seconds" => "Time since the first round",
        "bytes" => "Bytes before the codec, after it, and on the wire",
        "contributions" => "Rounds by what happened to this daemon's contribution",
        "punched" => "Links that became direct by hole punching",
        "punches_failed" => "Failed attempts at hole punching",
        "relay_refused" => "Refused requests to relay",
        "link_lost_bytes" => "Bytes lost and sent again since it was linked",
        "link_bytes" => {
            "Bytes by peer: of slices and states, before the codec and after it, and UDP payload"
        }
        "cpu_seconds" => "User and system CPU time",
        _ => "",
    }
}

pub(super) fn gauge(name: &str) -> &'static str {
    match name {
        "round" => "The current round",
        "rounds" => "Rounds of the run; 0 if it ends only when it is told to",
        "saved_round" => "The round of the last checkpoint that this process wrote",
        "inner_steps_per_second" => "Inner steps per second over the last rounds",
        "loss" => "Mean training loss of the last round, nats",
        "privacy_epsilon" => "Epsilon of all contributions so far, where the run promises privacy",
        "privacy_contributions_left" => "Contributions that the budget of privacy still allows",
        "test_loss" => "Loss on held-out data, nats",
        "test_accuracy" => "Fraction of correct predictions on held-out data",
        "test_score" => "What an evaluation measured beside loss and accuracy, by name",
        "longest_wait_seconds" => "The longest wait",
        "longest_wait_deadline_seconds" => "The deadline of the longest wait",
        "predicted_utilization" => "Fraction of a round in training, predicted",
        "predicted_round_seconds" => "Duration of a round, predicted",
        "predicted_sent_bytes_per_round" => "Encoded bytes sent in a round, predicted",
        "predicted_received_bytes_per_round" => "Encoded bytes received in a round, predicted",
        "predicted_memory_bytes" => "Memory of the model and its method, predicted",
        "measured_utilization" => "Fraction of the last rounds in training",
        "measured_round_seconds" => "Mean duration of the last rounds",
        "measured_sent_bytes_per_round" => {
            "Mean encoded bytes sent in a round, over the last rounds"
        }
        "measured_received_bytes_per_round" => {
            "Mean encoded bytes received in a round, over the last rounds"
        }
        "measured_memory_bytes" => "Resident memory",
        "peers_linked" => "Linked peers",
        "peers_suspected" => "Peers that missed a deadline and were not heard from since",
        "rss_bytes" => "Resident memory",
        "peak_rss_bytes" => "Peak resident memory",
        "overhead_bytes" => "Resident memory beyond the stores of the method",
        "parameters" => "Parameters of the model",
        "phase" => "The phase of the round: 1 for the current one",
        "trouble" => "What is wrong: 1 for each trouble that `murmurate why` tells of now",
        "reachability" => "Whether others can dial this daemon: 1 for the current state",
        "links" => "Linked peers by path",
        "relays_reserved" => "Relays through which others reach this daemon",
        "relay_reservations" => "Peers that are reachable through this daemon",
        "relay_circuits" => "Circuits through this daemon",
        "link_rtt_seconds" => "Smoothed round-trip time",
        "link_min_rtt_seconds" => "Smallest round-trip time",
        "link_delivery_bytes_per_second" => {
            "What the path carries, as the congestion control estimates it"
        }
        "link_push_bytes_per_second" => "Rate of acknowledged pushes",
        "link_loss_ratio" => "Lost over sent bytes",
        "link_congestion_window_bytes" => "Bytes that may be in flight",
        "link_queueing_seconds" => "How long pushes wait for their turn",
        "link_bulk" => "What slices and states go over",
        "resident_memory_bytes" => "Resident memory",
        "virtual_memory_bytes" => "Virtual memory",
        "start_time_seconds" => "Unix time at which the process started",
        "open_fds" => "Open file descriptors",
        "max_fds" => "Largest number of open file descriptors",
        "threads" => "Threads",
        _ => "",
    }
}
