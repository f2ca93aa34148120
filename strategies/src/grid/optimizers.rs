//! Outer and inner optimizers: from the tables of the configuration to their kinds.

use super::StrategyError;
use super::registry::{CORRECTIONS, INNERS, OUTERS};
use super::tables::{Inner, Outer};
use super::validate::{
    above_zero, below_one, choose, choose_of, count, not_negative, range, refuse_foreign,
};
use crate::correct::CorrectionKind;
use crate::inner::{InnerKind, Sends, default_betas, default_eps, default_weight_decay};
use crate::outer::{OuterKind, StatePrecision};

fn betas(key: &str, betas: [f64; 2]) -> Result<[f64; 2], StrategyError> {
    betas
        .into_iter()
        .try_for_each(|beta| below_one(key, beta).map(|_| ()))
        .map(|()| betas)
}

/// Delayed Nesterov momentum.
fn delayed(table: &Outer, lr: f64, momentum: f64) -> Result<OuterKind, StrategyError> {
    let every = table.every.unwrap_or(4);
    let every = count("outer.every", every, [1, 1000], "from 1 to 1000")?;
    let (key, spread) = ("outer.spread", table.spread.unwrap_or(0.0));
    let ok = spread >= 0.0 && spread * every as f64 <= 1.0;
    range(ok, key, spread, "in [0, 1/every]")?;
    Ok(OuterKind::DelayedNesterov {
        lr,
        momentum,
        every: every as u32,
        spread,
    })
}

/// NoLoCo's momentum of pairs, with the paper's bounds for groups of two.
fn pairs(table: &Outer, lr: f64, momentum: f64) -> Result<OuterKind, StrategyError> {
    let (key, pull) = ("outer.pull", table.pull.unwrap_or(0.7));
    let ok = pull > momentum && pull * pull < 2.0 + momentum * momentum;
    range(
        ok,
        key,
        pull,
        "above the momentum mu and below sqrt(2 + mu^2)",
    )?;
    Ok(OuterKind::NoLoCo { lr, momentum, pull })
}

/// The outer optimizer.
pub(super) fn outer(table: &Outer) -> Result<OuterKind, StrategyError> {
    let name = choose(&table.optimizer, "average", "outer.optimizer", &OUTERS)?;
    refuse_foreign("outer", table, &OUTERS, name)?;
    let lr = |default| above_zero("outer.lr", table.lr.unwrap_or(default));
    let momentum = |default| below_one("outer.momentum", table.momentum.unwrap_or(default));
    let moments = || betas("outer.betas", table.betas.unwrap_or([0.9, 0.99]));
    let eps = || above_zero("outer.eps", table.eps.unwrap_or(1e-3));
    Ok(match name {
        "co2" => OuterKind::Co2 {
            lr: lr(1.0)?,
            momentum: momentum(0.5)?,
            penalty: not_negative("outer.penalty", table.penalty.unwrap_or(1.0))?,
            clip: above_zero("outer.clip", table.clip.unwrap_or(1.0))?,
        },
        "delayed-nesterov" => delayed(table, lr(0.7)?, momentum(0.9)?)?,
        "easgd" => {
            let (key, alpha) = ("outer.alpha", table.alpha.unwrap_or(0.225));
            range(alpha as f32 > 0.0 && alpha < 1.0, key, alpha, "in (0, 1)")?;
            OuterKind::Easgd { alpha }
        }
        "fed-adagrad" => OuterKind::FedAdagrad {
            lr: lr(0.01)?,
            momentum: momentum(0.0)?,
            eps: eps()?,
        },
        "fed-adam" => OuterKind::FedAdam {
            lr: lr(0.01)?,
            betas: moments()?,
            eps: eps()?,
        },
        "fed-yogi" => OuterKind::FedYogi {
            lr: lr(0.01)?,
            betas: moments()?,
            eps: eps()?,
        },
        "nesterov" => OuterKind::Nesterov {
            lr: lr(0.7)?,
            momentum: momentum(0.9)?,
        },
        "no-lo-co" => pairs(table, lr(0.7)?, momentum(0.5)?)?,
        "slow-mo" => OuterKind::SlowMo {
            lr: lr(1.0)?,
            momentum: momentum(0.5)?,
        },
        _ => OuterKind::Average,
    })
}

/// How the outer optimizer's state is kept. [`outer`] refuses the key where it does not apply.
pub(super) fn outer_state(table: &Outer) -> Result<StatePrecision, StrategyError> {
    let all = [StatePrecision::F32, StatePrecision::Bf16];
    let default = StatePrecision::default().name();
    let name = choose_of(
        &table.state,
        default,
        "outer.state",
        &all.map(StatePrecision::name),
    )?;
    Ok(all
        .into_iter()
        .find(|p| p.name() == name)
        .unwrap_or_default())
}

/// What peers send of an inner step.
fn sends(table: &Inner) -> Result<Sends, StrategyError> {
    let all = [Sends::Gradients, Sends::Momenta];
    let usual = Sends::default().name();
    let name = choose_of(&table.sends, usual, "inner.sends", &all.map(Sends::name))?;
    Ok(all
        .into_iter()
        .find(|sends| sends.name() == name)
        .unwrap_or_default())
}

/// The inner optimizer.
pub(super) fn inner(table: &Inner) -> Result<InnerKind, StrategyError> {
    let name = choose(&table.optimizer, "adam-w", "inner.optimizer", &INNERS)?;
    refuse_foreign("inner", table, &INNERS, name)?;
    let lr = |default| above_zero("inner.lr", table.lr.unwrap_or(default));
    let momentum = |default| below_one("inner.momentum", table.momentum.unwrap_or(default));
    let decay = |default| not_negative("inner.weight_decay", table.weight_decay.unwrap_or(default));
    let moments = || betas("inner.betas", table.betas.unwrap_or(default_betas()));
    let eps = || above_zero("inner.eps", table.eps.unwrap_or(default_eps()));
    let freeze = |default: u64| {
        let value = table.freeze.unwrap_or(default);
        let ok = (1..=1_000_000_000).contains(&value);
        range(ok, "inner.freeze", value as f64, "from 1 to 1000000000").map(|()| value)
    };
    Ok(match name {
        "lamb" => InnerKind::Lamb {
            lr: lr(0.001)?,
            betas: moments()?,
            eps: eps()?,
            weight_decay: decay(default_weight_decay())?,
        },
        "muon" => InnerKind::Muon {
            lr: lr(0.001)?,
            momentum: momentum(0.95)?,
            weight_decay: decay(0.0)?,
        },
        "one-bit-adam" => InnerKind::OneBitAdam {
            lr: lr(0.001)?,
            betas: moments()?,
            eps: eps()?,
            freeze: freeze(1000)?,
            sends: sends(table)?,
        },
        "sgd" => InnerKind::Sgd {
            lr: lr(0.1)?,
            momentum: momentum(0.0)?,
            weight_decay: decay(0.0)?,
        },
        "signum" => InnerKind::Signum {
            lr: lr(0.0001)?,
            momentum: momentum(0.9)?,
            weight_decay: decay(0.0)?,
        },
        "zero-one-adam" => InnerKind::ZeroOneAdam {
            lr: lr(0.001)?,
            betas: moments()?,
            eps: eps()?,
            freeze: freeze(16)?,
            sends: sends(table)?,
        },
        _ => InnerKind::AdamW {
            lr: lr(0.001)?,
            betas: moments()?,
            eps: eps()?,
            weight_decay: decay(default_weight_decay())?,
        },
    })
}

/// The correction of inner steps' gradients.
pub(super) fn correction(table: &Inner) -> Result<CorrectionKind, StrategyError> {
    let name = choose(&table.correction, "none", "inner.correction", &CORRECTIONS)?;
    refuse_foreign("inner", table, &CORRECTIONS, name)?;
    Ok(match name {
        "fed-prox" => CorrectionKind::FedProx {
            mu: above_zero("inner.mu", table.mu.unwrap_or(0.01))?,
        },
        "exact-diffusion" => CorrectionKind::ExactDiffusion,
        "gradient-tracking" => CorrectionKind::GradientTracking,
        "momentum-tracking" => CorrectionKind::MomentumTracking {
            beta: below_one("inner.beta", table.beta.unwrap_or(0.9))?,
        },
        "motef" => CorrectionKind::MoTef {
            beta: below_one("inner.beta", table.beta.unwrap_or(0.9))?,
        },
        "scaffold" => CorrectionKind::Scaffold,
        "quasi-global" => CorrectionKind::QuasiGlobal {
            beta: below_one("inner.beta", table.beta.unwrap_or(0.9))?,
        },
        _ => CorrectionKind::None,
    })
}

impl Outer {
    /// Writes an outer optimizer down. `whole` also writes how its state is kept where that is the default.
    pub(super) fn from_kind(kind: &OuterKind, state: StatePrecision, whole: bool) -> Self {
        let says = state != StatePrecision::default() || whole && kind.is_momentum();
        let state = says.then(|| state.name().to_owned());
        let mut table = Self {
            optimizer: Some(kind.name().to_owned()),
            state,
            ..Self::default()
        };
        match *kind {
            OuterKind::Average => {}
            OuterKind::Co2 {
                lr,
                momentum,
                penalty,
                clip,
            } => {
                (table.lr, table.momentum) = (Some(lr), Some(momentum));
                (table.penalty, table.clip) = (Some(penalty), Some(clip));
            }
            OuterKind::DelayedNesterov {
                lr,
                momentum,
                every,
                spread,
            } => {
                (table.lr, table.momentum) = (Some(lr), Some(momentum));
                (table.every, table.spread) = (Some(every as usize), Some(spread));
            }
            OuterKind::Easgd { alpha } => table.alpha = Some(alpha),
            OuterKind::FedAdagrad { lr, momentum, eps } => {
                (table.lr, table.momentum, table.eps) = (Some(lr), Some(momentum), Some(eps));
            }
            OuterKind::FedAdam { lr, betas, eps } | OuterKind::FedYogi { lr, betas, eps } => {
                (table.lr, table.betas, table.eps) = (Some(lr), Some(betas), Some(eps));
            }
            OuterKind::NoLoCo { lr, momentum, pull } => {
                (table.lr, table.momentum, table.pull) = (Some(lr), Some(momentum), Some(pull));
            }
            OuterKind::Nesterov { lr, momentum } | OuterKind::SlowMo { lr, momentum } => {
                (table.lr, table.momentum) = (Some(lr), Some(momentum));
            }
        }
        table
    }
}

impl Inner {
    /// Writes an inner optimizer down.
    pub(super) fn from_kind(kind: &InnerKind) -> Self {
        let mut table = Self {
            optimizer: Some(kind.name().to_owned()),
            ..Self::default()
        };
        match *kind {
            InnerKind::AdamW {
                lr,
                betas,
                eps,
                weight_decay,
            }
            | InnerKind::Lamb {
                lr,
                betas,
                eps,
                weight_decay,
            } => {
                (table.lr, table.betas, table.eps) = (Some(lr), Some(betas), Some(eps));
                table.weight_decay = Some(weight_decay);
            }
            InnerKind::Muon {
                lr,
                momentum,
                weight_decay,
            }
            | InnerKind::Sgd {
                lr,
                momentum,
                weight_decay,
            }
            | InnerKind::Signum {
                lr,
                momentum,
                weight_decay,
            } => {
                (table.lr, table.momentum) = (Some(lr), Some(momentum));
                table.weight_decay = Some(weight_decay);
            }
            InnerKind::OneBitAdam {
                lr,
                betas,
                eps,
                freeze,
                sends,
            }
            | InnerKind::ZeroOneAdam {
                lr,
                betas,
                eps,
                freeze,
                sends,
            } => {
                (table.lr, table.betas, table.eps) = (Some(lr), Some(betas), Some(eps));
                table.freeze = Some(freeze);
                table.sends = Some(sends.name().to_owned());
            }
        }
        table
    }
    /// Writes a correction down.
    pub(super) fn set_correction(&mut self, kind: &CorrectionKind) {
        match *kind {
            CorrectionKind::None => return,
            CorrectionKind::ExactDiffusion
            | CorrectionKind::GradientTracking
            | CorrectionKind::Scaffold => {}
            CorrectionKind::FedProx { mu } => self.mu = Some(mu),
            CorrectionKind::QuasiGlobal { beta }
            | CorrectionKind::MomentumTracking { beta }
            | CorrectionKind::MoTef { beta } => {
                self.beta = Some(beta);
            }
        }
        self.correction = Some(kind.name().to_owned());
    }
}
