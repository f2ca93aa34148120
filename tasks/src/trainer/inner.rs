//! The inner optimizer of a trainer: on the device where its equations are known there, on the host
//! otherwise.

use super::on_device::OnDevice;
use burn::tensor::Device;
use murmurate_strategies::Layout;
use murmurate_strategies::inner::{InnerKind, InnerOptimizer, StepRule};
use murmurate_strategies::state::{StateError, StateSink, StateSource};

/// An inner optimizer with its state.
pub(super) enum Inner {
    /// Works on slices in the host's memory.
    Host(Box<dyn InnerOptimizer>),
    /// Works on tensors in the device's memory.
    Device(Box<OnDevice>),
}

impl Inner {
    /// `in_place` says that the host can access the device's memory.
    pub(super) fn new(kind: &InnerKind, layout: &Layout, device: &Device, in_place: bool) -> Self {
        let on_device = (!in_place).then(|| OnDevice::new(kind, layout, device));
        match on_device.flatten() {
            Some(optimizer) => Self::Device(Box::new(optimizer)),
            None => Self::Host(kind.build_for(layout)),
        }
    }

    /// Sets the rule of the inner steps from here on.
    pub(super) fn set_rule(&mut self, rule: StepRule) {
        match self {
            Self::Host(optimizer) => optimizer.set_rule(rule),
            Self::Device(optimizer) => optimizer.set_rule(rule),
        }
    }

    /// Opens the next inner step.
    pub(super) fn begin_step(&mut self) {
        match self {
            Self::Host(optimizer) => optimizer.begin_step(),
            Self::Device(optimizer) => optimizer.begin_step(),
        }
    }

    /// Writes state and count of inner steps, in the same form for both.
    pub(super) fn save(
        &self,
        prefix: &str,
        layout: &Layout,
        sink: &mut dyn StateSink,
    ) -> Result<(), StateError> {
        match self {
            Self::Host(optimizer) => optimizer.save(prefix, sink),
            Self::Device(optimizer) => optimizer.save(prefix, layout, sink),
        }
    }

    /// Takes back what [`Inner::save`] wrote, on whichever device.
    pub(super) fn load(
        &mut self,
        prefix: &str,
        layout: &Layout,
        source: &dyn StateSource,
    ) -> Result<(), StateError> {
        match self {
            Self::Host(optimizer) => optimizer.load(prefix, source),
            Self::Device(optimizer) => optimizer.load(prefix, layout, source),
        }
    }
}
