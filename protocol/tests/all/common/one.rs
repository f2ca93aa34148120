//! One peer, driven by hand: its inputs and its outputs.

use super::{config, peer, plan};
use core::time::Duration;
use murmurate_protocol::wire::{Hello, MembershipMessage, Message, Muster, TransferMessage};
use murmurate_protocol::{
    Base, Digest, Done, Event, ExchangeKind, FetchId, Input, Order, Output, Partners, Peer,
    PeerConfig, PeerId, Plan, Round, SliceId, SliceMeta, Snapshot, StateId, Time, Topology,
    TrainSummary,
};

/// Every peer of two pushes half of its mass to the other, and expects none.
pub(crate) struct Half;

impl Topology for Half {
    fn partners(&self, _round: Round, rank: usize, count: usize) -> Partners {
        Partners {
            send: (count == 2).then(|| (1 - rank, 0.5)).into_iter().collect(),
            receive: Vec::new(),
        }
    }
}

/// A peer and everything that came out of it.
pub(crate) struct One {
    pub(crate) peer: Peer,
    pub(crate) now: Time,
    pub(crate) outputs: Vec<Output>,
}

impl One {
    pub(crate) fn new(exchange: ExchangeKind) -> Self {
        Self::of(plan(exchange, 1))
    }

    pub(crate) fn of(plan: Plan) -> Self {
        let mut settings = config(peer(0));
        settings.start_with = 2;
        Self::with(settings, plan)
    }

    pub(crate) fn with(settings: PeerConfig, plan: Plan) -> Self {
        Self::start(settings, plan, (None, Digest::of(b"anchor")), Vec::new())
    }

    /// One with a checkpoint that holds these parameters.
    pub(crate) fn again(
        settings: PeerConfig,
        plan: Plan,
        (snapshot, digest): (Snapshot, Digest),
        opened: Vec<Base>,
    ) -> Self {
        Self::start(settings, plan, (Some(snapshot), digest), opened)
    }

    fn start(
        settings: PeerConfig,
        plan: Plan,
        (snapshot, digest): (Option<Snapshot>, Digest),
        opened: Vec<Base>,
    ) -> Self {
        let exchange = plan.exchange;
        let topology = exchange.has_neighbours().then(|| Box::new(Half) as _);
        let mut one = Self {
            peer: Peer::new(settings, plan, topology),
            now: Time::from_nanos(1),
            outputs: Vec::new(),
        };
        let digests = vec![digest];
        one.feed(Input::Start {
            snapshot,
            digests,
            opened,
        });
        one
    }

    pub(crate) fn feed(&mut self, input: Input) {
        let _ = self.peer.handle(self.now, input);
        while let Some(output) = self.peer.poll_output() {
            self.outputs.push(output);
        }
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.feed(Input::Timeout);
    }

    pub(crate) fn hello(&self) -> Hello {
        let plan = self.peer.plan();
        Hello {
            run: plan.run,
            layout: plan.layout,
            plan: plan.hash(),
            round: Round(0),
            anchor: self.peer.digest(),
            ready: true,
            muster: Muster::Begun,
            branch: None,
        }
    }

    pub(crate) fn meet(&mut self, other: PeerId) {
        self.meet_as(other, |_| {});
    }

    /// Another one links, and greets with what differs from this peer's own greeting.
    pub(crate) fn meet_as(&mut self, other: PeerId, change: impl FnOnce(&mut Hello)) {
        self.feed(Input::LinkUp(other));
        let mut hello = self.hello();
        change(&mut hello);
        self.hear(other, MembershipMessage::Hello(hello));
    }

    pub(crate) fn hear(&mut self, from: PeerId, message: impl Into<Message>) {
        let message = message.into();
        self.feed(Input::Received { from, message });
    }

    /// A slice arrives whose digest was not asked for.
    pub(crate) fn arrives(&mut self, from: PeerId, slice: SliceId, meta: SliceMeta) {
        let digest = None;
        self.feed(Input::Arrived {
            from,
            slice,
            meta,
            digest,
        });
    }

    /// Answers the orders so far, the last `Train` included; those without an answer stay.
    pub(crate) fn work(&mut self, mut answer: impl FnMut(&Order) -> Option<Done>) {
        for output in std::mem::take(&mut self.outputs) {
            if let Output::Order { id, order } = output {
                match answer(&order) {
                    Some(done) => self.feed(Input::Done { order: id, done }),
                    None => self.outputs.push(Output::Order { id, order }),
                }
            } else {
                self.outputs.push(output);
            }
        }
    }

    /// What it said, and to whom.
    pub(crate) fn said(&self) -> impl Iterator<Item = (PeerId, &Message)> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Send { to, message } => Some((*to, message)),
            _ => None,
        })
    }

    /// Whom it told something of this kind.
    pub(crate) fn told(&self, wanted: impl Fn(&Message) -> bool) -> Vec<PeerId> {
        let said = self.said().filter(|(_, message)| wanted(message));
        said.map(|(to, _)| to).collect()
    }

    /// Whom it asked for decisions.
    pub(crate) fn asked_for_history(&self) -> Vec<PeerId> {
        self.told(|message| {
            matches!(
                message,
                Message::Transfer(TransferMessage::HistoryAsk { .. })
            )
        })
    }

    pub(crate) fn orders(&self) -> impl Iterator<Item = &Order> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Order { order, .. } => Some(order),
            _ => None,
        })
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Emit(event) => Some(event),
            _ => None,
        })
    }

    /// How many rules it saw broken.
    pub(crate) fn misbehaved(&self) -> usize {
        let broken = |event: &&Event| matches!(event, Event::Misbehaved { .. });
        self.events().filter(broken).count()
    }

    /// What it fetches, and from whom.
    pub(crate) fn fetches(&self) -> Vec<(FetchId, Vec<PeerId>)> {
        let fetch = |output: &Output| match output {
            Output::Fetch { what, from, .. } => Some((*what, from.clone())),
            _ => None,
        };
        self.outputs.iter().filter_map(fetch).collect()
    }

    /// A state that it fetched has come.
    pub(crate) fn fetched(&mut self, state: StateId) {
        self.feed(Input::Fetched {
            what: FetchId::State(state),
            meta: None,
            digest: None,
        });
    }

    /// States are loaded, each with these parameters.
    pub(crate) fn loads(&mut self, anchor: Digest) {
        let digests = vec![anchor; self.peer.plan().fragments.len()];
        self.work(|order| {
            let (digests, note) = (digests.clone(), Vec::new());
            matches!(order, Order::Load { .. }).then_some(Done::Loaded { digests, note })
        });
    }

    pub(crate) fn pushed(&self) -> Option<SliceId> {
        self.outputs.iter().find_map(|o| match o {
            Output::Push { slice, .. } => Some(*slice),
            _ => None,
        })
    }

    pub(crate) fn released(&self, wanted: SliceId) -> bool {
        let release = |order: &Order| matches!(order, Order::Release { slice } if *slice == wanted);
        self.orders().any(release)
    }
}

pub(crate) fn trained() -> Done {
    Done::Trained(TrainSummary {
        steps: 1,
        samples: 8,
        ..TrainSummary::default()
    })
}

/// What an Executor answers that never fails.
pub(crate) fn honest(order: &Order) -> Option<Done> {
    Some(match order {
        Order::Train { .. } => trained(),
        Order::Encode { .. } => Done::Encoded {
            bytes: 48,
            digest: None,
        },
        Order::Combine { .. } => Done::Combined,
        Order::Apply { .. } => Done::Applied {
            digest: Digest::of(b"mixed"),
            note: Vec::new(),
        },
        _ => return None,
    })
}

/// Whom it asked for a state.
pub(crate) fn asked_for_a_state(one: &One) -> Vec<(PeerId, Round)> {
    let asked = one.said().filter_map(|(to, message)| match message {
        Message::Transfer(TransferMessage::StateAsk { at_least }) => Some((to, *at_least)),
        _ => None,
    });
    asked.collect()
}

/// The round that it was told to train.
pub(crate) fn trains(one: &One) -> Option<Round> {
    one.orders().find_map(|order| match order {
        Order::Train { round, .. } => Some(*round),
        _ => None,
    })
}
