//! The grid: every method is a point in synchronization x architecture x compression x overlap
//! (+ outer optimizer, + aggregation rule). One TOML table for each; presets are named points; a
//! combination that cannot work is refused with the reason.
//!
//! ```toml
//! preset = "diloco"            # all are in `registry::PRESETS`; every key below overrides it
//!
//! [synchronization]
//! inner_steps = 50             # inner steps of a round
//! round_time = 2.5             # or seconds: slow machines do fewer and weigh less
//! pace = "switch"              # how they change with the round: steady, switch, decay,
//!                              # balanced (slow machines do fewer), loss
//! switch_round = 200           # switch: from this round on
//! switch_inner_steps = 16      # switch: inner steps from then on
//! decay_every = 100            # decay: rounds after which they are sqrt(l / (l + 1)) of before
//! loss_every = 100             # loss: rounds after which they follow from the agreed loss again
//! stagnation_factor = 0.5      # loss: factor on them where the loss did not lower them
//! enough = 6                   # where peers agree: contributions that are enough; 0 is all
//! grace = "fixed"              # how long to wait for the others after that: fixed, adaptive
//! grace_ms = 500               # fixed: that time
//! fraction = 0.1               # all-reduce, parameter-server: peers that train in each round
//! mode = "bsp"                 # parameter-server: bsp, ssp, dynamic-ssp or asp
//! lead = 3                     # ssp: rounds that the fastest may be ahead of the slowest
//! lead_most = 15               # dynamic-ssp: the largest lead
//! buffer = 1                   # ssp, asp: contributions that a shard applies together
//! staleness = "inverse-root"   # ssp, asp: constant, inverse, inverse-root
//! compensation = 0.04          # ssp, asp: DC-ASGD's lambda for late gradients
//!
//! [architecture]
//! exchange = "all-reduce"      # none, all-reduce, gathered, parameter-server; between neighbours:
//!                              # gossip, push, pull, replicas, pairs,
//!                              # differences
//! contribution = "delta"       # gradient, delta; parameters (between neighbours)
//! owners = 2                   # parameter-server: peers that own a shard of each fragment
//! parts = 0                    # parameter-server, bsp: parts that owners share by their lines; 0: a shard each
//! topology = "base-k"          # between neighbours; all are in `registry::TOPOLOGIES`
//! rate = 0.04                  # replicas: how far neighbours move towards each other
//! copy = "parameters"          # differences: what neighbours hold of a peer: or "estimate"
//! staleness = 2                # pull: rounds that an answer may be behind; also backup, lead,
//!                              # skip, sync_every
//! degree = 1                   # base-k: partners a round; equi-static, random-regular
//! group = 4                    # hierarchical, islands: peers of an island; moshpit, random-groups: of a group
//! islands_by = "ranks"         # schedule hierarchical: runs of peer ids; or "sites": peers of one site
//! every = 4                    # islands: they mix with each other in one of this many rounds
//! budget = 0.5                 # matcha: share of active edges
//!
//! [compression]
//! codec = "top-k"              # the list: `compress::CODECS`
//! density = 0.01               # a parameter of the codec: its entry in the list says which
//! error_feedback = true        # default: where the codec needs it
//!
//! [overlap]
//! cut = "even"                 # tensors, merged
//! fragments = 4                # equal cuts; default: of 2^20 values in an all-reduce, else 1
//! layers = "together"          # as-ready, by-priority: gradients leave under the backward pass
//! stagger = 2                  # rounds in which each is exchanged once
//! density = "one"              # by-layer: each layer as much as is sent while the next is computed
//! latency_ms = 40.0            # merged, by-layer: time of an exchange, rate of a link, time of a
//! mbit_s = 50.0                # backward pass; they decide what is merged, and the densities
//! backward_ms = 100.0
//! select_ms = 10.0             # by-layer: of choosing the kept values of the whole model
//! late_steps = 3               # inner steps of the next round until a result is applied
//! blend = "own-progress"       # with late_steps: on top of the new anchor; "eager"; "estimate"; alpha in [0, 1)
//!
//! [outer]
//! optimizer = "nesterov"       # average, nesterov, slow-mo, fed-adagrad, fed-adam, fed-yogi,
//!                              # delayed-nesterov, easgd, no-lo-co (gossip, random-matching)
//! lr = 0.7                     # all but average
//! momentum = 0.9               # nesterov, slow-mo, fed-adagrad
//! betas = [0.9, 0.99]          # fed-adam, fed-yogi
//! eps = 0.001                  # fed-adagrad, fed-adam, fed-yogi
//! every = 4                    # delayed-nesterov: arrivals for which momentum is applied once
//! spread = 0.0                 # delayed-nesterov: of it over the arrivals between
//! alpha = 0.225                # easgd: of the distance each way
//! penalty = 1.0                # co2: of the staleness gap
//! clip = 1.0                   # co2: of the momentum
//! pull = 0.7                   # no-lo-co: towards the pair's mean anchor
//!
//! [aggregation]
//! rule = "centered-clip"       # all are in `registry::RULES`; by default "weighted-mean"
//! liars = 1                    # bulyan, clipped-gossip, krum, multi-krum, nearest-trimmed-mean,
//!                              # trimmed-mean
//! radius = 3.0                 # centered-clip, norm-clip: of one shard
//! iterations = 3               # centered-clip, geometric-median
//! bucket = 2                   # centered-clip: contributions averaged before it
//!
//! [agreement]                  # all-reduce, gathered, parameter-server with mode = "bsp"
//! grouping = "auto"            # flat, grid, cells, or auto: a grid above 64 peers (all-reduce)
//! row = 0                      # peers in a row of a grid; 0 chooses by the size
//! cell = 16                    # cells: peers of a cell
//! dealing = "axes"             # cells: along the axes of a grid, or "random"
//! liars = 0                    # members of a group that may lie without harm: a number, or "max"; members then sign
//!
//! [inner]
//! optimizer = "adam-w"         # sgd, signum, muon (lr, momentum, weight_decay),
//!                              # adam-w, lamb (lr, betas, eps, weight_decay),
//!                              # one-bit-adam, zero-one-adam (lr, betas, eps, freeze, sends)
//! lr = 0.001
//! correction = "fed-prox"      # none, fed-prox (all-reduce of deltas), quasi-global (gossip, sgd),
//!                              # exact-diffusion, gradient-tracking, momentum-tracking, motef (replicas),
//!                              # scaffold (all-reduce of deltas)
//! mu = 0.01                    # fed-prox
//! beta = 0.9                   # quasi-global, momentum-tracking, motef
//! schedule = "cosine"          # of lr, by the round: constant, linear, cosine, wsd
//! warmup_rounds = 20           # rounds in which it rises from 0 to lr
//! schedule_rounds = 1000       # the round at which it ends; by default the run's rounds
//! final_rate = 0.1             # linear, cosine, wsd: share of lr at the end
//! decay_rounds = 100           # wsd: the last rounds, in which it falls
//! no_decay = ["*.bias"]        # names of tensors without weight decay; * is any text
//!
//! [deadlines]                  # bounds; within them they follow what was measured
//! floor_ms = 2000
//! initial_ms = 5000
//! ceiling_ms = 60000
//! ```

pub mod registry;

mod agreement;
mod architecture;
mod catalogue;
mod companions;
mod compression;
mod entry;
mod error;
mod grouping;
mod later;
mod methods;
mod overlap;
mod paces;
mod parts;
mod presets;
mod rates;
mod refuse;
mod schedule;
mod strategy;
mod synchronization;
mod tables;
mod text;
mod validate;

pub use catalogue::{Method, MethodKey, Refusal, catalogue, find};
pub use compression::rung_words;
pub use error::StrategyError;
pub use later::{LATER, Later};
pub use presets::{DEFAULT_PRESET, preset};
pub use strategy::{STATE_HEADER_BYTES, Strategy};
