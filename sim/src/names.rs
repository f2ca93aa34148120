//! Short names of peers' inputs and outputs, for traces.

use murmurate_protocol::{Input, Order, Output, PeerId};

/// The name of an input and the other peer in it.
pub(crate) fn of_input(input: &Input) -> (&'static str, Option<PeerId>) {
    match input {
        Input::Start { .. } => ("start", None),
        Input::Received { from, message } => (message.name(), Some(*from)),
        Input::Malformed { from, .. } => ("malformed", Some(*from)),
        Input::Record(_) => ("record", None),
        Input::LinkUp(peer) => ("link up", Some(*peer)),
        Input::LinkDown(peer) => ("link down", Some(*peer)),
        Input::Observes(peer) => ("observes", Some(*peer)),
        Input::Directives(_) => ("directives", None),
        Input::Measured { peer, .. } => ("measured", Some(*peer)),
        Input::Done { .. } => ("done", None),
        Input::Arrived { from, .. } => ("arrived", Some(*from)),
        Input::Pushed { to, .. } => ("pushed", Some(*to)),
        Input::Fetched { .. } => ("fetched", None),
        Input::FetchFailed { .. } => ("fetch failed", None),
        Input::Timeout => ("timeout", None),
        Input::Leave => ("leave", None),
        Input::Cut { .. } => ("cut", None),
    }
}

/// The name of an output and the other peer in it.
pub(crate) fn of_output(output: &Output) -> (&'static str, Option<PeerId>) {
    match output {
        Output::Send { to, message } => (message.name(), Some(*to)),
        Output::Push { to, .. } => ("push", Some(*to)),
        Output::Fetch { .. } => ("fetch", None),
        Output::Cancel { .. } => ("cancel", None),
        Output::Order { order, .. } => (of_order(order), None),
        Output::Interrupt => ("interrupt", None),
        Output::Dial(record) => ("dial", Some(record.peer)),
        Output::Disconnect { peer, .. } => ("disconnect", Some(*peer)),
        Output::Emit(_) => ("event", None),
        Output::Left => ("left", None),
        Output::Opened(_) => ("opened", None),
        Output::Prove(proof) => ("prove", Some(proof.by())),
    }
}

fn of_order(order: &Order) -> &'static str {
    match order {
        Order::Train { .. } => "train",
        Order::Encode { .. } => "encode",
        Order::Reduce { .. } => "reduce",
        Order::Mix { .. } => "mix",
        Order::MixReplicas { .. } => "mix replicas",
        Order::ResetCenter { .. } => "reset center",
        Order::MoveCenter { .. } => "move center",
        Order::Apply { .. } => "apply",
        Order::Gather { .. } => "gather",
        Order::EncodeRelayed { .. } => "encode relayed",
        Order::SumRow { .. } => "sum row",
        Order::EncodeBasis { .. } => "encode basis",
        Order::EncodeSecond { .. } => "encode second",
        Order::EncodeJoined { .. } => "encode joined",
        Order::Append { .. } => "append",
        Order::Bundle { .. } => "bundle",
        Order::Stage { .. } => "stage",
        Order::Measure { .. } => "measure",
        Order::Keep { .. } => "keep",
        Order::Read { .. } => "read",
        Order::BreakOff { .. } => "break off",
        Order::Void { .. } => "void",
        Order::Evaluate { .. } => "evaluate",
        Order::Save { .. } => "save",
        Order::Pin { .. } => "pin",
        Order::Load { .. } => "load",
        _ => "order",
    }
}
