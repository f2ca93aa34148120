//! What the lanes tell the driver.

use murmurate_protocol::wire::Message;
use murmurate_protocol::{Done, FragmentId, OrderId, PeerId};

/// A lane's answer to an order.
#[derive(Debug)]
pub enum Answer {
    /// The order is done.
    Done(OrderId, Done),
    /// The backward pass of a training order has finished a fragment. The `u64` is the samples in
    /// the batch.
    Cut(OrderId, FragmentId, u64),
    /// A message for the operator.
    Note(String),
    /// A message to this peer is signed.
    Signed(PeerId, Message),
    /// The signatures of a message from this peer are checked; `None` if one is wrong.
    Checked(PeerId, Option<Message>),
}
