//! A bulk connection of either kind, as the end that serves its streams sees it.

use crate::bulk::Pipe;
use murmurate_net::quic::{BulkConnection, CloseCode, RecvStream};
use murmurate_net::tcp;
use std::future::pending;

/// A bulk connection whose streams are served.
#[derive(Clone, Debug)]
pub enum Served {
    /// Over QUIC.
    Quic(BulkConnection),
    /// Over TLS and TCP.
    Tcp(tcp::Connection),
}

impl Served {
    /// The next stream that the remote opened; `None` if the connection has ended.
    pub async fn accept(&self) -> Option<Pipe> {
        match self {
            Self::Quic(connection) => connection.accept_bi().await.ok().map(Pipe::of_quic),
            Self::Tcp(connection) => connection
                .session()
                .accept_bi()
                .await
                .ok()
                .map(Pipe::of_tls),
        }
    }

    /// The next stream on which the remote only sends. Over TCP there is none.
    pub async fn accept_told(&self) -> Option<(BulkConnection, RecvStream)> {
        match self {
            Self::Quic(connection) => {
                let stream = connection.accept_uni().await.ok()?;
                Some((connection.clone(), stream))
            }
            Self::Tcp(_) => pending().await,
        }
    }

    /// Ends the connection.
    pub fn close(&self) {
        match self {
            Self::Quic(connection) => connection.close(CloseCode::Done),
            Self::Tcp(connection) => connection.session().close(),
        }
    }
}
