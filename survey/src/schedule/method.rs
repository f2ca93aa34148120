//! The seven lossless methods by their names in the survey.

use serde::{Serialize, Serializer};

/// A method of the survey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// One all-reduce of everything after backward.
    BspA2a,
    /// Wait-free backpropagation: an all-reduce for each tensor when it is ready.
    WfbpA2a,
    /// Tensors merged where that saves more time than waiting costs.
    MgWfbp,
    /// Partitions by priority, forward overlapped too.
    ByteSchedulerA2a,
    /// A parameter server, pushed to after backward.
    BspPs,
    /// A parameter server, pushed to when tensors are ready.
    WfbpPs,
    /// A parameter server by priority, forward overlapped too.
    ByteSchedulerPs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Architecture {
    /// A flat ring over all GPUs.
    AllToAll,
    /// Machines push to servers and pull from them.
    ParameterServer,
}

/// When gradients are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduling {
    /// After backward.
    Barrier,
    /// When they are ready.
    WaitFree,
    /// When a group of them is ready.
    Merged,
    /// When they are ready, by priority, and the next forward waits for its own layer only.
    Priority,
}

impl Method {
    /// All of them, in the survey's order.
    pub const ALL: [Self; 7] = [
        Self::BspA2a,
        Self::WfbpA2a,
        Self::MgWfbp,
        Self::ByteSchedulerA2a,
        Self::BspPs,
        Self::WfbpPs,
        Self::ByteSchedulerPs,
    ];

    const fn facts(self) -> (&'static str, Architecture, Scheduling) {
        use Architecture::{AllToAll, ParameterServer};
        use Scheduling::{Barrier, Merged, Priority, WaitFree};
        match self {
            Self::BspA2a => ("BSP-A2A", AllToAll, Barrier),
            Self::WfbpA2a => ("WFBP-A2A", AllToAll, WaitFree),
            Self::MgWfbp => ("MG-WFBP", AllToAll, Merged),
            Self::ByteSchedulerA2a => ("ByteScheduler-A2A", AllToAll, Priority),
            Self::BspPs => ("BSP-PS", ParameterServer, Barrier),
            Self::WfbpPs => ("WFBP-PS", ParameterServer, WaitFree),
            Self::ByteSchedulerPs => ("ByteScheduler-PS", ParameterServer, Priority),
        }
    }

    /// Its name in the survey.
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// The method of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    pub(super) const fn architecture(self) -> Architecture {
        self.facts().1
    }

    pub(super) const fn scheduling(self) -> Scheduling {
        self.facts().2
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
