//! Fetches one item by name with one request and one reply; fetches slices from the first donor
//! that has them.

use crate::bulk::push::ANSWER;
use crate::bulk::serve::{digest_of, room_for};
use crate::bulk::wire::{
    Reply, Request, StreamError, finish, read_body, read_header, write_header,
};
use crate::bulk::{BulkEvent, BulkFault, Core, Pipe, Refusal, Way};
use crate::spans;
use bytes::Bytes;
use murmurate_protocol::{FetchId, PeerId, SliceId, SliceMeta};

/// How an attempt to fetch from one donor failed.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The donor does not have it.
    Absent,
    /// The donor violated the protocol; this was reported.
    Fault,
    /// The link broke or the donor is too slow.
    Broken,
    /// The local store refuses it.
    Refused,
}

/// Sends a request to one donor and reads the reply's bytes. Reports faults of the donor. A request
/// whose connection over TCP breaks is sent once more, over QUIC.
///
/// `bytes_of` returns how many bytes may follow a reply, or why the reply is wrong.
pub(crate) async fn ask<T>(
    core: &Core,
    donor: PeerId,
    request: Request,
    bytes_of: impl Fn(Reply) -> Result<(T, u64), FetchError>,
) -> Result<(T, Bytes), FetchError> {
    let open = async || core.transport.open(donor).await;
    let pipe = open().await.map_err(|_| FetchError::Broken)?;
    let way = pipe.way();
    match ask_on(core, pipe, donor, &request, &bytes_of).await {
        Err(FetchError::Broken) if way == Way::Tls => {
            let pipe = open().await.map_err(|_| FetchError::Broken)?;
            ask_on(core, pipe, donor, &request, &bytes_of).await
        }
        ended => ended,
    }
}

async fn ask_on<T>(
    core: &Core,
    pipe: Pipe,
    donor: PeerId,
    request: &Request,
    bytes_of: impl Fn(Reply) -> Result<(T, u64), FetchError>,
) -> Result<(T, Bytes), FetchError> {
    let asked = async {
        let Pipe {
            mut write,
            mut read,
        } = pipe;
        write.set_urgency(ANSWER);
        write_header(&mut write, request, core.limits.header_wait).await?;
        write.release();
        finish(&mut write, core.limits.header_wait).await?;
        let reply = read_header::<Reply>(&mut read, core.limits.header_wait).await?;
        let (what, bytes) = match bytes_of(reply) {
            Ok(known) => known,
            Err(error) => return Ok(Err(error)),
        };
        let tally = core.counters.of(donor);
        let wait = core.limits.piece_wait;
        let of = (bytes, room_for(core, bytes));
        let body = read_body(&mut read, of, wait, &tally).await?;
        Ok::<_, StreamError>(Ok((what, core.store.keep(body))))
    };
    match asked.await {
        Ok(Err(FetchError::Fault)) => {
            core.tell(BulkEvent::Malformed {
                from: donor,
                what: BulkFault::OtherReply,
            })
            .await;
            Err(FetchError::Fault)
        }
        Ok(ended) => ended,
        Err(StreamError::Broken) => Err(FetchError::Broken),
        Err(StreamError::Fault(what)) => {
            let misbehaved = what.is_misbehaviour();
            core.tell(BulkEvent::Malformed { from: donor, what }).await;
            Err(if misbehaved {
                FetchError::Fault
            } else {
                FetchError::Broken
            })
        }
    }
}

/// Fetches a slice from the first of `donors` that delivers it.
pub(crate) async fn fetch_slice(core: &Core, slice: SliceId, donors: &[PeerId]) -> BulkEvent {
    let what = FetchId::Slice(slice);
    for donor in donors {
        let max = core.limits.slice_bytes_max;
        let store = &core.store;
        let accepted = |meta: SliceMeta| match store.accepts(*donor, &slice, &meta) {
            // Its owner may have given this peer other bytes than those that were decided.
            Ok(()) | Err(Refusal::AlreadyHere) if meta.bytes <= max => Ok((meta, meta.bytes)),
            _ => Err(FetchError::Refused),
        };
        let fetched = ask(core, *donor, Request::Slice(slice), |reply| match reply {
            Reply::Slice(meta) => accepted(meta),
            Reply::Absent => Err(FetchError::Absent),
            Reply::Blob { .. } => Err(FetchError::Fault),
        });
        match fetched.await {
            Ok((meta, bytes)) => {
                let digest = digest_of(&slice, &bytes);
                core.store.put_fetched(*donor, slice, meta, bytes);
                return BulkEvent::Fetched {
                    what,
                    meta: Some(meta),
                    digest,
                };
            }
            Err(error) => {
                spans::transfer(&slice, *donor).in_scope(|| {
                    tracing::debug!(shard = slice.shard, ?error, "donor gave no slice");
                });
            }
        }
        if let Some((meta, bytes)) = core.store.get(&slice) {
            // The slice arrived through a push in the meantime.
            let digest = digest_of(&slice, &bytes);
            return BulkEvent::Fetched {
                what,
                meta: Some(meta),
                digest,
            };
        }
    }
    BulkEvent::FetchFailed { what }
}
