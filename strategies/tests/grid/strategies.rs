//! The grid as its users see it: presets, single keys over them, refusals in one clear line.

use murmurate_protocol::{
    Contribution, DeadlinePlan, ExchangeKind, Plan, Round, RunId, StepBudget,
};
use murmurate_strategies::Layout;
use murmurate_strategies::compress::{CODECS, CodecKind, Reduction};
use murmurate_strategies::grid::registry;
use murmurate_strategies::grid::{
    DEFAULT_PRESET, LATER, STATE_HEADER_BYTES, Strategy, StrategyError, rung_words,
};
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::outer::OuterKind;

fn plan(strategy: &Strategy) -> Plan {
    let layout = Layout::new([("weight", vec![20, 50]), ("bias", vec![7])]);
    strategy
        .plan(RunId::from_bytes([1; 32]), &layout, 10)
        .expect("a plan")
}

#[test]
fn every_preset_has_a_plan_and_survives_its_own_text() {
    for name in registry::names(&registry::PRESETS) {
        let strategy = Strategy::preset(name).unwrap();
        assert_eq!(strategy.name(), name);
        assert_eq!(strategy.deadlines(), DeadlinePlan::default());
        let text = strategy.to_toml();
        let again: Strategy = text.parse().unwrap();
        assert_eq!(again, strategy, "{text}");
        assert_eq!(again.to_toml(), text);
        assert_eq!(plan(&again).hash(), plan(&strategy).hash());
    }
    assert_eq!("".parse::<Strategy>().unwrap().name(), DEFAULT_PRESET);
}

#[test]
fn presets_are_the_points_they_say() {
    let of = |name| Strategy::preset(name).unwrap();
    let point = |name| (of(name).exchange(), of(name).contribution());
    assert_eq!(of("none").exchange(), ExchangeKind::None);
    assert_eq!(
        point("bsp"),
        (ExchangeKind::AllReduce, Contribution::Gradient)
    );
    assert_eq!(of("bsp").budget(), StepBudget::Steps(1));
    assert_eq!(
        point("local-sgd"),
        (ExchangeKind::AllReduce, Contribution::Delta)
    );
    assert_eq!(*of("local-sgd").outer_kind(), OuterKind::average());
    assert_eq!(
        point("diloco"),
        (ExchangeKind::AllReduce, Contribution::Delta)
    );
    assert_eq!(
        *of("diloco").outer_kind(),
        OuterKind::new("nesterov", &[("lr", 0.7), ("momentum", 0.9)]).unwrap()
    );
    assert_eq!(of("diloco").inner_kind().name(), "sgd");
    assert_eq!(
        point("d-psgd"),
        (ExchangeKind::Gossip, Contribution::Parameters)
    );
    assert!(of("d-psgd").topology(0).is_some() && of("diloco").topology(0).is_none());
}

#[test]
fn a_single_key_overrides_a_preset() {
    let strategy = Strategy::parse("[outer]\nlr = 1", Some("diloco")).unwrap();
    assert_eq!(
        *strategy.outer_kind(),
        OuterKind::new("nesterov", &[("lr", 1.0), ("momentum", 0.9)]).unwrap()
    );
    assert_eq!(*strategy.inner_kind(), InnerKind::sgd(0.1));
    let time = Strategy::parse("[synchronization]\nround_time = 2.5", None).unwrap();
    assert_eq!(
        time.budget(),
        StepBudget::Time(std::time::Duration::from_millis(2500))
    );
    let named = Strategy::parse("preset = \"bsp\"", None).unwrap();
    assert_eq!(named.name(), "bsp");
    assert_eq!(
        Strategy::parse("preset = \"bsp\"", Some("none"))
            .unwrap()
            .name(),
        "none"
    );
}

/// A strategy is what its own text says.
fn survives_its_own_text(strategy: &Strategy) {
    let text = strategy.to_toml();
    assert_eq!(text.parse::<Strategy>().as_ref(), Ok(strategy), "{text}");
}

#[test]
fn another_method_does_not_inherit_the_old_ones_parameters() {
    let text = "[inner]\noptimizer = \"sgd\"\n[outer]\noptimizer = \"average\"";
    let strategy = Strategy::parse(text, Some("diloco")).unwrap();
    assert_eq!(*strategy.inner_kind(), InnerKind::sgd(0.1));
    assert_eq!(*strategy.outer_kind(), OuterKind::average());
    let text = "[compression]\ncodec = \"top-k\"\ndensity = 0.01";
    let strategy = Strategy::parse(text, Some("local-sgd")).unwrap();
    assert_eq!(
        *strategy.codec_kind(),
        CodecKind::new("top-k", &[("density", 0.01)]).unwrap()
    );
    assert!(
        strategy.error_feedback(),
        "the default where the codec needs it"
    );
}

/// The rows of a table: a preset, the text of its keys, and words, between bars. A line of a text ends with `;` or
/// with the name of a table; a row goes on in indented lines.
fn rows(table: &str) -> Vec<(String, String, Vec<String>)> {
    let table = table.trim().replace("\n    ", " ");
    let row = |row: &str| {
        let mut columns = row.split('|').map(|column| column.trim().to_owned());
        let preset = columns.next().expect("a preset");
        let text = columns.next().expect("a text");
        let text = text.replace("; ", "\n").replace("] ", "]\n");
        (preset, text, columns.collect())
    };
    table.lines().map(row).collect()
}

/// Configurations that are refused, and what the message must say.
const REFUSED: &str = r#"
d2 | [compression] error_feedback = true | `compression.error_feedback` | already counted
choco | [architecture] topology = "exponential" | `architecture.topology` | does not push back
choco | [architecture] topology = "random-matching" | `architecture.topology` | a replica of each
choco | [architecture] rate = 1.5 | `architecture.rate` | in (0, 1]
choco | [compression] codec = "dgc"; density = 0.01 | `compression.codec` | keeps no momentum
d-psgd | [architecture] rate = 0.5 | `architecture.rate` | `gossip`
d-psgd | [inner] correction = "exact-diffusion" | `inner.correction` | exchange = "replicas"
d2 | [synchronization] inner_steps = 4 | `synchronization.inner_steps` | one inner step
d2 | [compression] codec = "ef-sign" | `compression.codec` | add up | int8
ad-psgd | [compression] codec = "top-k"; density = 0.01 | `compression.codec` | replica
ad-psgd | [architecture] topology = "equi-dyn" | `architecture.topology` | does not push back
diloco | [compresion] codec = "f32" | `compresion` | mean `compression`
diloco | [compression] codek = "f32" | `compression.codek` | mean `codec`
diloco | [compression] codec = "topk" | `topk` | mean `top-k` | int8
diloco | [compression] codec = 8 | `compression.codec` | integer
diloco | compression = 8 | `compression` | table
diloco | preset = 8 | `preset`
diloko |  | `diloko` | mean `diloco` | d-psgd
diloco | [inner] lr = "fast" | `inner.lr` | string
diloco | [inner] lr = 0 | `inner.lr` | above 0
diloco | [inner] lr = nan | `inner.lr`
diloco | [inner] lr = 1e300 | `inner.lr`
diloco | [inner] optimizer = "adam-w"; lr = 0.1; momentum = 0.9 | `inner.momentum` | `adam-w`
diloco | [inner] optimizer = "adam-w"; lr = 0.1; betas = [0.9, 1.0] | `inner.betas` | [0, 1)
diloco | [outer] momentum = 1 | `outer.momentum` | [0, 1)
diloco | [outer] momentum = 0.99999999999 | `outer.momentum`
local-sgd | [outer] lr = 0.7 | `outer.lr` | `average`
diloco | [synchronization] inner_steps = 0 | `synchronization.inner_steps`
diloco | [synchronization] inner_steps = -1 | `synchronization.inner_steps`
diloco | [synchronization] round_time = 0 | `synchronization.round_time`
diloco | [synchronization] round_time = inf | `synchronization.round_time`
none | [synchronization] round_time = 1; inner_steps = 1 | not by both
diloco | [compression] codec = "top-k" | `compression.density` | missing
diloco | [compression] codec = "top-k"; density = 1.5 | (0, 1]
diloco | [compression] codec = "top-k"; density = 0 | (0, 1]
diloco | [compression] density = 0.5 | `compression.density` | `f32`
diloco | [compression] codec = "int8"; block = 100 | `compression.block` | 100 |
    a power of two from 64 to 4096
diloco | [compression] codec = "qsgd"; levels = 0 | `compression.levels` | from 1 to 127
diloco | [compression] codec = "eden"; bits = 2.5 | `compression.bits` | a power of two from 1 to 4
diloco | [compression] codec = "qsgd"; levels = "7" | `compression.levels` | string | number
diloco | [compression] codec = "int8"; blok = 64 | `compression.blok` | mean `block`
diloco | [compression] codec = "sign-sgd" | `compression.codec` | "gradient"
bsp | [compression] codec = "sign-sgd"; error_feedback = true | `compression.error_feedback` | grow
diloco | [compression] codec = "tern-grad"; error_feedback = true | `compression.error_feedback`
diloco | [compression] codec = "ef-sign"; error_feedback = false | `compression.error_feedback` | stalls
d-psgd | [compression] codec = "int4" | `compression.codec` | coarse
diloco | [overlap] fragments = 0 | `overlap.fragments`
diloco | [overlap] fragments = 5000 | `overlap.fragments` | 1024
diloco | [overlap] late_steps = 9 | `overlap.late_steps` | inner_steps
diloco | [overlap] late_steps = 1; blend = 1.0 | `overlap.blend` | [0, 1)
diloco | [overlap] late_steps = 1; blend = "own" | `overlap.blend` | own-progress
bsp | [overlap] late_steps = 1; blend = "eager" | `overlap.blend` | contribution = "delta"
fedadam | [overlap] late_steps = 1; blend = "eager" | `overlap.blend` | nesterov
diloco | [overlap] blend = 0.5 | `overlap.blend` | late_steps
d-psgd | [overlap] late_steps = 1 | `overlap.late_steps` | all-reduce
diloco | [synchronization] round_time = 1.0; [overlap] late_steps = 1 | `overlap.late_steps` | round_time
fedprox | [overlap] late_steps = 1 | `overlap.late_steps` | correction
diloco | [overlap] stagger = 0 | `overlap.stagger`
diloco | [overlap] fragments = 3; stagger = 4 | `overlap.stagger` | multiple
d-psgd | [overlap] stagger = 2 | `overlap.stagger` | no anchor | all-reduce
bsp | [overlap] stagger = 2 | `overlap.stagger` | lost | delta
diloco | [architecture] topology = "ring" | `architecture.topology`
diloco | [architecture] schedule = "rnig" | `architecture.schedule` | mean `ring` | halving-doubling
d-psgd | [architecture] schedule = "torus" | `architecture.schedule` | `gossip`
ssp | [synchronization] lead_most = 15 | `synchronization.lead_most` | `ssp`
ssp | [synchronization] inner_steps = 1; mode = "dynamic-ssp"; lead = 4; lead_most = 3 |
    `synchronization.lead_most` is 3 | from `synchronization.lead`
diloco | [architecture] schedule = "ring"; group = 4 | `architecture.group` | `ring`
diloco | [architecture] schedule = "hierarchical"; group = 1 | `architecture.group` | from 2 to 64
diloco | [architecture] schedule = "ring"; [compression] codec = "int8" | round partial sums | "butterfly" |
    "bf16"
diloco | [architecture] schedule = "double-tree"; [aggregation] rule = "median" | separate contributions |
    "butterfly" | "weighted-mean"
diloco | [architecture] exchange = "gosip" | mean `gossip`
diloco | [architecture] exchange = "gossip" | `outer.optimizer` | "average"
diloco | [architecture] contribution = "parameters" | anchor | "delta"
local-sgd | [architecture] contribution = "gradient" | inner_steps = 1
bsp | [outer] optimizer = "nesterov" | `outer.optimizer`
d-psgd | [architecture] contribution = "delta" | diverges | "parameters"
d-psgd | [architecture] contribution = "gradient" | diverges
d-psgd | [compression] codec = "top-k"; density = 0.1 | parameters themselves would lose |
    differences to replicas
d-psgd | [compression] error_feedback = true | `compression.error_feedback`
local-sgd | [compression] codec = "top-k"; density = 0.1; error_feedback = false |
    `compression.error_feedback` | int8
diloco | [aggregation] rule = "medium" | `aggregation.rule` | mean `median` | weighted-mean
diloco | [aggregation] rule = "krum" | `aggregation.liars` | missing
diloco | [aggregation] rule = "krum"; liars = 32 | `aggregation.liars` | from 0 to 31
diloco | [aggregation] rule = "centered-clip"; radius = 0 | `aggregation.radius` | above 0
diloco | [aggregation] rule = "median"; liars = 1 | `aggregation.liars` | `median`
diloco | [aggregation] rule = "sign-majority" | `aggregation.rule` | "gradient"
diloco | [aggregation] rule = "gauntlet" | `aggregation.rule` | none of them gets all |
    exchange = "gathered"
diloco | [architecture] exchange = "gathered"; [aggregation] rule = "gauntlet"; memory = 1.0 |
    `aggregation.memory` | from 0 to 0.999
diloco | [architecture] exchange = "gathered"; [aggregation] rule = "gauntlet"; batches = 0 |
    `aggregation.batches` | from 1 to 1024
diloco | [architecture] exchange = "gathered"; [aggregation] rule = "gauntlet"; liars = 1 |
    `aggregation.liars` | `gauntlet`
diloco | [architecture] exchange = "gathered"; [aggregation] rule = "gauntlet"; [overlap] fragments = 4 |
    `aggregation.rule` | evaluated as a whole
diloco | [architecture] exchange = "gathered"; [aggregation] rule = "gauntlet"; [overlap] late_steps = 1 |
    `aggregation.rule` | between two rounds
diloco | [architecture] exchange = "gathered"; [aggregation] rule = "gauntlet"; [agreement] liars = 1 |
    `aggregation.rule` | what members sign
bsp | [architecture] exchange = "gathered"; contribution = "gradient"; [aggregation] rule = "gauntlet" |
    `aggregation.rule` | contribution = "delta"
d-psgd | [aggregation] rule = "gauntlet" | `aggregation.rule` | "all-reduce"
local-sgd | [aggregation] rule = "median"; [compression] codec = "top-k"; density = 0.1 |
    `aggregation.rule` | sparse
d-psgd | [aggregation] rule = "median" | `aggregation.rule` | "all-reduce"
d-psgd | [architecture] topology = "base-k"; degree = 0 | `architecture.degree` | from 1 to 64
d-psgd | [architecture] topology = "ring"; group = 4 | `architecture.group` | `ring`
d-psgd | [architecture] topology = "matcha"; budget = 0 | `architecture.budget` | (0, 1]
relaysgd | [architecture] topology = "base-k" | `architecture.topology` | spanning tree | "binary-tree"
relaysgd | [architecture] topology = "star" | `architecture.topology` | has a hub | "ring"
relaysgd | [compression] codec = "bf16" | `compression.codec` | in every round | "f32"
relaysgd | [compression] codec = "top-k"; density = 0.1 | `compression.codec` | parameters themselves
relaysgd | [architecture] contribution = "delta" | `architecture.contribution` | "parameters"
relaysgd | [aggregation] rule = "median" | `aggregation.rule` | "weighted-mean"
relaysgd | [outer] optimizer = "slow-mo" | `outer.optimizer` | "average"
relaysgd | [inner] correction = "quasi-global" | `inner.correction` | gossip
d-psgd | [inner] correction = "scaffold" | `inner.correction` | control variates
d-psgd | [inner] correction = "scafold" | `inner.correction` | none
diloco | [outer] optimizer = "easgd" | `outer.optimizer` | parameter-server
diloco | [outer] optimizer = "slow-mo"; betas = [0.9, 0.9] | `outer.betas` | `slow-mo`
diloco | [outer] state = "bf15" | `outer.state` | bf16
fedadam | [outer] state = "bf16" | `outer.state` | `fed-adam`
eager-diloco | [outer] state = "bf16" | `outer.state` | not linear
diloco | [outer] optimizer = "fed-adam"; eps = 0 | `outer.eps` | above 0
diloco | [inner] optimizer = "one-bit-adam"; freeze = 0 | `inner.freeze` | from 1
bsp | [inner] optimizer = "muon" | `inner.optimizer` | shapes
local-sgd | [synchronization] inner_steps = 1; pace = "switch" | `synchronization.switch_round` is missing
post-local | [synchronization] switch_inner_steps = 0 | `synchronization.switch_inner_steps` | at least 1
local-sgd | [synchronization] round_time = 2.0; pace = "decay"; decay_every = 3 | `synchronization.pace` |
    bounded by time | inner_steps
local-sgd | [synchronization] decay_every = 3 | `synchronization.decay_every` | `steady`
bsp | [synchronization] pace = "switch"; switch_round = 3 | gradient | inner_steps
local-sgd | [synchronization] round_time = 2.0; pace = "balanced" | `synchronization.pace` |
    bounded by time | inner_steps
bsp | [synchronization] pace = "balanced" | `synchronization.pace` | gradients
d-psgd | [synchronization] pace = "balanced" | `synchronization.pace` | agree on every round | round_time
async-local-sgd | [synchronization] pace = "balanced" | `synchronization.pace` | agree on every round |
    round_time
local-sgd | [synchronization] pace = "loss" | `synchronization.loss_every` is missing
local-sgd | [synchronization] pace = "loss"; loss_every = 0 | `synchronization.loss_every` | at least 1
local-sgd | [synchronization] pace = "loss"; loss_every = 9; stagnation_factor = 1.1 |
    `synchronization.stagnation_factor` | from 0.001 to 1
local-sgd | [synchronization] round_time = 2.0; pace = "loss"; loss_every = 9 | `synchronization.pace` |
    bounded by time | inner_steps
d-psgd | [synchronization] pace = "loss"; loss_every = 9 | `synchronization.pace` | agree on one | "decay"
async-local-sgd | [synchronization] pace = "loss"; loss_every = 9 | `synchronization.pace` | agree on one |
    "decay"
bsp | [synchronization] pace = "loss"; loss_every = 9 | `synchronization.pace` | gradients
local-sgd | [synchronization] pace = "loss"; loss_every = 9; [agreement] liars = 1 |
    `synchronization.pace` | sign | agreement.liars
local-sgd | [synchronization] pace = "loss"; loss_every = 9; [agreement] grouping = "grid" |
    `agreement.grouping` | one group | "decay"
local-sgd | [synchronization] pace = "loss"; loss_every = 9; [overlap] late_steps = 1 |
    `overlap.late_steps` | `synchronization.pace`
local-sgd | [compression] choose = "measured"; train_share = 1.0 | `compression.train_share` |
    from 0.001 to 0.999
local-sgd | [compression] choose = "measured"; choose_every = 0 | `compression.choose_every` | at least 1
local-sgd | [compression] choose = "often" | `compression.choose` | there are: fixed, measured
local-sgd | [compression] choose_from = ["int8"] | `compression.choose_from` | `fixed`
local-sgd | [compression] choose = "measured"; choose_from = ["int88"] | `compression.choose_from` |
    did you mean `int8`
local-sgd | [compression] choose = "measured"; choose_from = ["int4", "int8"] |
    `compression.choose_from` is "int8" | less than the one before
local-sgd | [compression] choose = "measured"; choose_from = ["sign-sgd"] |
    `compression.choose_from` is "sign-sgd" | round every value
local-sgd | [compression] choose = "measured"; choose_from = [] | `compression.choose_from` is [] |
    at most five codecs
local-sgd | [compression] codec = "top-k"; density = 0.1; choose = "measured" |
    `compression.choose_from` is missing | densities below
local-sgd | [compression] codec = "top-k"; density = 0.1; choose = "measured"; choose_from = [0.2] |
    `compression.choose_from` is 0.2 | densities of the codec
local-sgd | [compression] codec = "int4"; choose = "measured" | `compression.choose_from` is missing |
    send less
local-sgd | [compression] codec = "diana"; choose = "measured" | `compression.choose` | keeps a state |
    top-k
local-sgd | [compression] codec = "power-sgd"; choose = "measured" | `compression.choose` |
    shapes of the tensors | top-k
d-psgd | [compression] choose = "measured" | `compression.choose` | agree on one | all-reduce
local-sgd | [compression] choose = "measured"; [agreement] liars = 1 | `compression.choose` | sign |
    agreement.liars
local-sgd | [compression] choose = "measured"; [agreement] grouping = "grid" | `compression.choose` |
    no one group | flat
local-sgd | [compression] choose = "measured"; [synchronization] round_time = 2.0 | `compression.choose` |
    number of inner steps
local-sgd | [compression] choose = "measured"; [synchronization] pace = "loss"; loss_every = 9 |
    `compression.choose` | their loss
local-sgd | [compression] choose = "measured"; [overlap] late_steps = 1 | `compression.choose` | late_steps
local-sgd | [synchronization] inner_steps = 8; pace = "measured"; train_share = 1.0 |
    `synchronization.train_share` | from 0.001 to 0.999
local-sgd | [synchronization] inner_steps = 8; pace = "measured"; inner_steps_least = 9 |
    `synchronization.inner_steps_least` | from 1 to
local-sgd | [synchronization] inner_steps = 8; pace = "measured"; inner_steps_most = 7 |
    `synchronization.inner_steps_most` | at least
local-sgd | [synchronization] pace = "measured"; measure_every = 0 | `synchronization.measure_every` |
    at least 1
d-psgd | [synchronization] pace = "measured" | `synchronization.pace` | agree on one | "decay"
local-sgd | [synchronization] pace = "measured"; [agreement] liars = 1 | `synchronization.pace` | sign |
    agreement.liars
local-sgd | [synchronization] pace = "measured"; [overlap] late_steps = 1 | `overlap.late_steps` |
    `synchronization.pace`
local-sgd | [synchronization] pace = "balanced"; [overlap] late_steps = 1 | `overlap.late_steps` |
    `synchronization.pace`
fedavg | [synchronization] fraction = 0 | `synchronization.fraction` | from a millionth to 1
d-psgd | [synchronization] fraction = 0.5 | `synchronization.fraction` | `gossip`
bsp | [synchronization] fraction = 0.5 | `synchronization.fraction` | "delta"
fedavg | [synchronization] fraction = 0.5; [architecture] schedule = "ring" | `synchronization.fraction` |
    "butterfly"
d-psgd | [synchronization] enough = 3 | `synchronization.enough` | `gossip`
asp | [synchronization] grace = "adaptive" | `synchronization.grace` | `asp`
diloco | [synchronization] grace = "adaptive"; grace_ms = 3 | `synchronization.grace_ms` | `adaptive`
diloco | [synchronization] grace = "adaptiv" | `synchronization.grace` | `adaptive`
diloco | [deadlines] floor_ms = 0 | `deadlines.floor_ms`
diloco | [deadlines] floor_ms = 9000; ceiling_ms = 10 | floor_ms <= initial_ms
d-psgd | [agreement] liars = 1 | `agreement.liars` | `gossip`
diloco | [agreement] liars = 22 | `agreement.liars` | from 0 to 21
diloco | [agreement] liars = "mx" | `agreement.liars` | `max`
asp | [architecture] parts = 8 | `architecture.parts` | `asp`
local-sgd | [architecture] exchange = "parameter-server"; parts = 65 | parts | 65
local-sgd | [architecture] exchange = "parameter-server"; parts = 8; [agreement] liars = 1 |
    `architecture.parts` | members that sign
local-sgd | [architecture] exchange = "parameter-server"; parts = 8;
    [compression] codec = "double-squeeze" | `architecture.parts` | residual
local-sgd | [architecture] parts = 8 | parts
local-sgd | [architecture] schedule = "ring"; islands_by = "sites" | `architecture.islands_by` |
    does not apply | `ring`
local-sgd | [architecture] schedule = "hierarchical"; islands_by = "town" | islands_by | sites
diloco | [inner | line 1
diloco | [inner] lr = 1; lr = 2 | line 3
hop | [architecture] staleness = 40 | architecture.answers | staleness
hop | [architecture] lead = 50 | architecture.answers | lead
wagma | [architecture] topology = "ring" | architecture | ring
d-psgd | [architecture] exchange = "pull"; answers = "group-mean" | architecture.topology | moshpit
wagma | [architecture] backup = 1 | architecture.backup | of-the-round
wagma | [architecture] skip = 4 | architecture.skip | of-the-round
guarded-gossip | [architecture] answers = "group-mean" | aggregation.rule
d-psgd | [architecture] answers = "of-the-round" | architecture.answers
d-psgd | [inner] correction = "scaffold" | agreed on | all-reduce
bsp | [inner] momentum = 0.0; correction = "scaffold" | agreed on | delta
scaffold | [compression] codec = "top-k"; density = 0.1 | control variate | "int8"
scaffold | [inner] momentum = 0.9 | corrected gradient | "sgd"
d-psgd | [inner] correction = "gradient-tracking" | both ends | replicas
gradient-tracking | [synchronization] inner_steps = 4 | every inner step | inner_steps = 1
beer | [compression] error_feedback = true | difference to a replica | false
noloco | [architecture] topology = "ring" | random pairs | random-matching
diloco | [outer] optimizer = "no-lo-co" | random pairs | "nesterov"
noloco | [outer] momentum = 0.8 | above the momentum | `outer.pull`
bsp | [inner] correction = "fed-prox" | pull to the anchor | or use contribution
d-psgd | [inner] correction = "fed-prox" | pull to the anchor | or use contribution
none | [inner] correction = "fed-prox" | without an exchange | all-reduce
diloco | [inner] correction = "quasi-global" | gossip | slow-mo
d-psgd | [inner] correction = "quasi-global"; momentum = 0.5 | replaces the momentum | "sgd"
fedprox | [inner] mu = 0 | `inner.mu` | above 0
fedprox | [inner] beta = 0.5 | `inner.beta` | `fed-prox`
fedavg | [inner] mu = 0.5 | `inner.mu` | `none`
scaffold | [synchronization] fraction = 0.5 | fraction
streaming-diloco | [synchronization] fraction = 0.5 | fraction
co2 | [synchronization] fraction = 0.5 | fraction
diloco | [outer] optimizer = "delayed-nesterov" | contribute one by one
moshpit | [outer] optimizer = "nesterov" | outer.optimizer
moshpit | [architecture] contribution = "delta" | architecture.contribution
moshpit | [aggregation] rule = "median" | aggregation.rule
moshpit | [compression] codec = "top-k"; density = 0.1 | compression.codec
moshpit | [compression] codec = "int8"; error_feedback = true | compression.error_feedback
moshpit | [agreement] liars = 1 | agreement.liars
moshpit | [agreement] row = 4 | agreement.row
moshpit | [agreement] cell = 65 | agreement.cell
moshpit | [agreement] cell = 1 | agreement.cell
moshpit | [agreement] grouping = "grid" | agreement.grouping
moshpit | [overlap] late_steps = 2 | overlap
moshpit | [overlap] stagger = 2 | overlap
moshpit | [synchronization] enough = 3 | synchronization
moshpit | [inner] correction = "scaffold" | inner.correction
diloco | [agreement] cell = 4 | agreement.cell
diloco | [agreement] dealing = "random" | agreement.dealing
d-psgd | [agreement] dealing = "random" | agreement.dealing
prague | [agreement] dealing = "randm" | agreement.dealing | random
diloco | [inner] optimizer = "one-bit-adam"; sends = "momenta" | sends
bsp | [inner] optimizer = "sgd"; sends = "momenta" | sends
asp | [synchronization] mode = "asp"; inner_steps = 5; compensation = 0.1;
    [architecture] contribution = "delta" | synchronization.compensation
asp | [synchronization] mode = "asp"; inner_steps = 1; compensation = -1.0 | synchronization.compensation
local-sgd | [architecture] exchange = "all-reduce"; contribution = "delta";
    [synchronization] inner_steps = 1; [compression] codec = "double-squeeze"; density = 0.1 | parameter-server
local-sgd | [architecture] exchange = "gathered"; contribution = "delta";
    [synchronization] inner_steps = 1; [compression] codec = "double-squeeze"; density = 0.1 | parameter-server
"#;

#[test]
fn what_cannot_work_is_refused_in_one_line_that_names_the_key() {
    let mut bad = Vec::new();
    for (preset, text, words) in rows(REFUSED) {
        let error = match Strategy::parse(&text, Some(&preset)) {
            Ok(_) => {
                bad.push(format!("accepted: {preset} with {text}"));
                continue;
            }
            Err(error) => error.to_string(),
        };
        let lacks = words.iter().any(|word| !error.contains(word.as_str()));
        if lacks || error.contains('\n') {
            bad.push(format!(
                "{preset} with {text}: {error} lacks one of {words:?}"
            ));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn parts_by_lines_and_islands_by_sites_survive_their_own_text() {
    for text in [
        "[architecture]\nexchange = \"parameter-server\"\nowners = 3\nparts = 64",
        "[architecture]\nschedule = \"hierarchical\"\ngroup = 8\nislands_by = \"sites\"",
    ] {
        survives_its_own_text(&Strategy::parse(text, Some("local-sgd")).expect(text));
    }
}

/// What works, beside these presets.
const WORKS: &str = r#"
local-sgd | [architecture] exchange = "gossip"; topology = "random-matching"
d-psgd | [synchronization] pace = "decay"; decay_every = 9
diloco | [synchronization] enough = 3; grace = "adaptive"
fedadam | [synchronization] fraction = 0.1
fedavg | [synchronization] fraction = 0.5
diloco | [synchronization] pace = "balanced"
fedadam | [synchronization] pace = "balanced"; fraction = 0.5
d-psgd | [compression] codec = "int8"
d-psgd | [synchronization] inner_steps = 20
d-psgd | [architecture] exchange = "pull"; topology = "random-matching"; answers = "group-mean"
hop | [architecture] staleness = 0; lead = 31
hop | [compression] codec = "int8"
d-psgd | [architecture] exchange = "pull"; topology = "complete"; answers = "group-mean"
bsp | [compression] codec = "top-k"; density = 0.01
diloco | [compression] codec = "int8"; error_feedback = true
none | [compression] codec = "top-k"; density = 0.01
bsp | [compression] codec = "sign-sgd"
bsp | [compression] choose = "measured"
diloco | [compression] codec = "bf16"; choose = "measured"; [synchronization] inner_steps = 9;
    pace = "measured"
local-sgd | [compression] codec = "top-k"; density = 0.1; choose = "measured"; choose_from = [0.03, 0.01]
local-sgd | [compression] choose = "measured";
    choose_from = ["fp16", "int4"] [architecture] exchange = "gathered"
diloco | [compression] codec = "qsgd"; levels = 1
diloco | [compression] codec = "ef-sign"
d-psgd | [compression] codec = "fp16"
diloco | [deadlines] floor_ms = 90000
diloco | [deadlines] ceiling_ms = 300
diloco | [agreement] liars = "max"
diloco | [agreement] liars = 1
diloco | [aggregation] rule = "krum"; liars = 1
diloco | [aggregation] rule = "centered-clip"; radius = 2.5; bucket = 2
bsp | [aggregation] rule = "sign-majority"
diloco | [outer] optimizer = "fed-yogi"
diloco | [outer] optimizer = "slow-mo"; momentum = 0.4
diloco | [outer] state = "bf16"
diloco | [inner] optimizer = "muon"; lr = 0.01
bsp | [inner] optimizer = "zero-one-adam"
d-psgd | [architecture] topology = "base-k"; degree = 3
d-psgd | [architecture] topology = "matcha"; budget = 0.25
d-psgd | [architecture] topology = "moshpit"; group = 8
diloco | [architecture] schedule = "hierarchical"; group = 6
bsp | [architecture] schedule = "ring"; [compression] codec = "top-k"; density = 0.05
"#;

#[test]
fn what_can_work_is_not_refused() {
    for (preset, text, _) in rows(WORKS) {
        let strategy = Strategy::parse(&text, Some(&preset)).unwrap();
        survives_its_own_text(&strategy);
        plan(&strategy);
    }
}

#[test]
fn measured_links_survive_their_own_text_whatever_schedule_they_give() {
    // A slow link to go around, and equal links, between which the butterfly stays.
    for (links, name) in [
        ("[[0, 9, 90], [9, 0, 90], [90, 90, 0]]", "synthesized"),
        ("[[0, 9], [9, 0]]", "butterfly"),
    ] {
        let text = format!("[architecture]\nschedule = \"synthesized\"\nlink_mbit = {links}");
        let strategy = Strategy::parse(&text, Some("diloco")).unwrap();
        assert_eq!(strategy.schedule().name(), name);
        survives_its_own_text(&strategy);
        plan(&strategy);
    }
}

#[test]
fn every_registered_name_is_known() {
    for (key, entries) in registry::ALL {
        for entry in entries {
            let text = match key.split_once('.') {
                None => format!("{key} = \"{}\"", entry.name),
                Some((table, key)) => format!("[{table}]\n{key} = \"{}\"", entry.name),
            };
            let unknown = matches!(
                Strategy::parse(&text, None),
                Err(StrategyError::UnknownValue { .. } | StrategyError::UnknownPreset { .. })
            );
            assert!(!unknown, "{text}");
            assert!(!entry.summary.is_empty() && !entry.source.is_empty());
        }
    }
}

/// Another count of inner steps left the mode out, and an asynchronous preset became one in step.
#[test]
fn another_budget_keeps_the_mode_and_takes_the_pace_along() {
    let text = "[synchronization]\ninner_steps = 7";
    let strategy = Strategy::parse(text, Some("async-local-sgd")).unwrap();
    let preset = Strategy::preset("async-local-sgd").unwrap();
    assert_eq!(strategy.exchange(), preset.exchange());
    assert_eq!(strategy.budget(), StepBudget::Steps(7));
    let strategy = Strategy::parse(text, Some("post-local")).unwrap();
    assert_eq!(strategy.budget_of(Round(100_000)), StepBudget::Steps(7));
    let text = "[synchronization]\nround_time = 0.5";
    let strategy = Strategy::parse(text, Some("local-sgd")).unwrap();
    assert!(matches!(strategy.budget(), StepBudget::Time(_)));
}

#[test]
fn every_method_of_the_lists_can_be_chosen_somewhere() {
    for (table, key, entries, preset) in [
        (
            "architecture",
            "topology",
            &registry::TOPOLOGIES[..],
            "d-psgd",
        ),
        ("outer", "optimizer", &registry::OUTERS, "diloco"),
        ("inner", "optimizer", &registry::INNERS, "diloco"),
        ("aggregation", "rule", &registry::RULES, "bsp"),
    ] {
        for entry in entries {
            let extra = match entry.name {
                "bulyan"
                | "clipped-gossip"
                | "krum"
                | "multi-krum"
                | "nearest-trimmed-mean"
                | "trimmed-mean" => "liars = 1",
                "centered-clip" | "norm-clip" => "radius = 1.0",
                "private-mean" => "clip = 1.0\nnoise = 1.0",
                _ => "",
            };
            let text = format!("[{table}]\n{key} = \"{}\"\n{extra}", entry.name);
            let preset = match entry.name {
                "easgd" => "easgd",
                "delayed-nesterov" => "async-local-sgd",
                "no-lo-co" => "noloco",
                "clipped-gossip" => "guarded-gossip",
                "fed-nova" | "private-mean" => "local-sgd",
                "gauntlet" => "gauntlet",
                _ => preset,
            };
            let strategy = Strategy::parse(&text, Some(preset)).unwrap();
            survives_its_own_text(&strategy);
            assert!(strategy.to_toml().contains(&format!("\"{}\"", entry.name)));
        }
    }
}

#[test]
fn what_no_exchange_carries_is_refused_with_the_reason() {
    for later in LATER {
        let (table, key) = later.key.split_once('.').unwrap();
        let text = format!("[{table}]\n{key} = \"{}\"", later.entry.name);
        for preset in ["d-psgd", "diloco"] {
            let error = Strategy::parse(&text, Some(preset));
            if key == "topology" && preset == "diloco" {
                continue;
            }
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(later.reason) && error.contains(later.remedy),
                "{error}"
            );
        }
    }
}

#[test]
fn a_plan_holds_bounds_and_state() {
    let text = "[overlap]\nfragments = 3\n[compression]\ncodec = \"top-k\"\ndensity = 0.01";
    let strategy = Strategy::parse(text, Some("diloco")).unwrap();
    let plan = plan(&strategy);
    assert_eq!(
        plan.fragments.iter().map(|f| f.len).collect::<Vec<_>>(),
        [335, 336, 336]
    );
    for fragment in &plan.fragments {
        assert_eq!(fragment.contribution, strategy.codec().bytes_bound());
        assert_eq!(
            fragment.aggregate,
            strategy.codec().aggregate().bytes_bound()
        );
    }
    assert_eq!(
        plan.state_bytes,
        4 * 1007 * 2 + STATE_HEADER_BYTES,
        "anchor and outer momentum"
    );
    let bsp = self::plan(&Strategy::preset("bsp").unwrap());
    assert_eq!(
        bsp.state_bytes,
        4 * 1007 * 2 + STATE_HEADER_BYTES,
        "anchor and inner momentum"
    );
    let psgd = self::plan(&Strategy::preset("d-psgd").unwrap());
    assert_eq!(psgd.state_bytes, 4 * 1007 + STATE_HEADER_BYTES);

    let ranges = strategy.fragments(&Layout::new([("x", vec![1007])]));
    assert_eq!(ranges.first().unwrap().start, 0);
    assert_eq!(ranges.last().unwrap().end, 1007);
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));

    let tiny = Layout::new([("x", vec![2])]);
    let error = strategy
        .plan(RunId::from_bytes([1; 32]), &tiny, 0)
        .unwrap_err();
    assert_eq!(
        error,
        StrategyError::Fragments {
            fragments: 3,
            parameters: 2
        }
    );
}

#[test]
fn the_recipe_is_of_the_numbers() {
    let of = |text: &str| plan(&Strategy::parse(text, Some("diloco")).unwrap());
    let base = of("");
    assert_eq!(of("[deadlines]\nfloor_ms = 5").recipe, base.recipe);
    assert_ne!(of("[compression]\ncodec = \"bf16\"").recipe, base.recipe);
    assert_ne!(of("[outer]\nlr = 0.71").recipe, base.recipe);
    assert_eq!(of("[outer]\nstate = \"f32\"").recipe, base.recipe);
    let half = of("[outer]\nstate = \"bf16\"");
    assert_ne!(half.recipe, base.recipe);
    assert_eq!(base.state_bytes - half.state_bytes, 2 * 1007);
    assert_ne!(of("[inner]\nlr = 0.01").recipe, base.recipe);
    let (local, same) = (
        Strategy::preset("local-sgd").unwrap().to_toml(),
        "preset = \"none\"",
    );
    let text = local.replace("preset = \"local-sgd\"", same);
    let renamed: Strategy = text.parse().unwrap();
    assert_eq!(
        plan(&renamed).recipe,
        plan(&Strategy::preset("local-sgd").unwrap()).recipe
    );
}

#[test]
fn a_codec_by_measure_is_a_ladder_of_the_plan() {
    let of = |text: &str| plan(&Strategy::parse(text, Some("local-sgd")).unwrap());
    let base = of("");
    assert_eq!(base.agreement.ladder, None);
    let fixed = of("[compression]\nchoose = \"fixed\"");
    assert_eq!(fixed.hash(), base.hash());
    let measured = of("[compression]\nchoose = \"measured\"\ntrain_share = 0.8");
    assert_ne!(measured.hash(), base.hash());
    let ladder = measured.agreement.ladder.unwrap();
    let words: Vec<_> = ladder.codecs().iter().map(rung_words).collect();
    assert_eq!(words, ["f32", "bf16", "int8", "int4"]);
    assert_eq!((ladder.every, ladder.share), (8, 800));
    let codecs = ladder.codecs();
    assert_eq!(codecs[0].contribution, base.fragments[0].contribution);
    // What `int4` sends returns as `int8`.
    assert_eq!(codecs[3].aggregate, codecs[2].aggregate);
    let sparse = of(
        "[compression]\ncodec = \"top-k\"\ndensity = 0.1\nchoose = \"measured\"\nchoose_from = [0.025]",
    );
    let ladder = sparse.agreement.ladder.unwrap();
    let words: Vec<_> = ladder.codecs().iter().map(rung_words).collect();
    assert_eq!(
        words,
        ["top-k with density 0.1", "top-k with density 0.025"]
    );
}

#[test]
fn every_codec_survives_its_own_text() {
    for entry in registry::CODECS {
        let base = match entry.name {
            "sign-sgd" => "bsp",
            _ => "local-sgd",
        };
        let spec = CODECS.iter().find(|spec| spec.name == entry.name).unwrap();
        let needed = spec.parameters.iter().filter(|p| p.default.is_none());
        let needed = needed.map(|p| format!("{} = {:?}\n", p.name, p.range.example()));
        let text = format!(
            "[compression]\ncodec = \"{}\"\n{}",
            entry.name,
            needed.collect::<String>()
        );
        let exchange = |name: &str| format!("{text}[architecture]\nexchange = \"{name}\"");
        let given: Vec<_> = spec
            .parameters
            .iter()
            .filter(|p| p.default.is_none())
            .collect();
        let given: Vec<_> = given.iter().map(|p| (p.name, p.range.example())).collect();
        let kind = CodecKind::new(spec.name, &given).unwrap();
        let text = match kind.build().properties().reduction {
            Reduction::Gathered => exchange("gathered"),
            Reduction::Squeezed => exchange("parameter-server"),
            _ => text,
        };
        let strategy = Strategy::parse(&text, Some(base)).unwrap();
        let again: Strategy = strategy.to_toml().parse().unwrap();
        assert_eq!(again, strategy);
        assert_eq!(plan(&again).hash(), plan(&strategy).hash());
    }
}
