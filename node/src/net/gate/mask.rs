//! An upgrade that can be hidden.

use libp2p::Stream;
use libp2p::core::upgrade::{InboundUpgrade, UpgradeInfo};
use libp2p::swarm::handler::InboundUpgradeSend;

/// `P`, or no protocol at all while it is hidden.
#[derive(Debug)]
pub(in crate::net) struct Masked<P> {
    inner: P,
    shown: bool,
}

impl<P> Masked<P> {
    pub(super) fn new(inner: P, shown: bool) -> Self {
        Self { inner, shown }
    }
}

impl<P: InboundUpgradeSend> UpgradeInfo for Masked<P> {
    type Info = P::Info;
    type InfoIter = std::vec::IntoIter<P::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        let all: Vec<_> = match self.shown {
            true => self.inner.protocol_info().collect(),
            false => Vec::new(),
        };
        all.into_iter()
    }
}

impl<P: InboundUpgradeSend> InboundUpgrade<Stream> for Masked<P> {
    type Output = P::Output;
    type Error = P::Error;
    type Future = P::Future;

    fn upgrade_inbound(self, stream: Stream, info: P::Info) -> P::Future {
        self.inner.upgrade_inbound(stream, info)
    }
}
