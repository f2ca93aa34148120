//! Two ends over a pipe in memory.

use super::*;
use bytes::Bytes;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const PATIENCE: Duration = Duration::from_secs(5);

fn pair(pipe: usize) -> (Session, Session) {
    let (near, far) = tokio::io::duplex(pipe);
    (
        Session::start(near, Side::Dialer, PATIENCE),
        Session::start(far, Side::Listener, PATIENCE),
    )
}

/// A session and the raw other end.
fn against() -> (Session, DuplexStream) {
    against_within(PATIENCE)
}

fn against_within(patience: Duration) -> (Session, DuplexStream) {
    let (near, far) = tokio::io::duplex(1 << 20);
    (Session::start(near, Side::Listener, patience), far)
}

fn body(first: u8, bytes: usize) -> Bytes {
    (0..bytes)
        .map(|i| first.wrapping_add((i % 251) as u8))
        .collect()
}

async fn read_all(from: &mut Receiver) -> Result<Vec<u8>, MuxError> {
    let mut all = Vec::new();
    loop {
        let bytes = from.read(usize::MAX).await?;
        if bytes.is_empty() {
            return Ok(all);
        }
        all.extend_from_slice(&bytes);
    }
}

#[tokio::test]
async fn streams_of_both_ends_carry_their_bytes() {
    let (near, far) = pair(100_000);
    // More than a window and a frame, and less than a header.
    for bytes in [0, 5, 3_000_000, 20_000_000] {
        for (from, to) in [(&near, &far), (&far, &near)] {
            let sent = body(7, bytes);
            let send = async {
                let (mut send, mut answer) = from.open_bi().unwrap();
                for piece in sent.chunks(64 << 10) {
                    send.write(Bytes::copy_from_slice(piece)).await.unwrap();
                }
                send.finish().unwrap();
                assert_eq!(read_all(&mut answer).await.unwrap(), b"yes");
            };
            let receive = async {
                let (mut answer, mut body) = to.accept_bi().await.unwrap();
                assert!(read_all(&mut body).await.unwrap() == sent, "other bytes");
                answer.write(Bytes::from_static(b"yes")).await.unwrap();
                answer.finish().unwrap();
            };
            tokio::join!(send, receive);
        }
    }
    for volume in [near.volume(), far.volume()] {
        assert!(volume.sent.min(volume.received) > 23_000_005, "{volume:?}");
    }
    near.close();
    far.closed().await;
    assert!(matches!(far.ended(), Some(MuxError::Ended)));
    assert!(matches!(near.open_bi(), Err(MuxError::Closed)));
}

#[tokio::test]
async fn a_stream_that_is_not_read_does_not_stop_the_others() {
    let (near, far) = pair(100_000);
    let (mut stuck, _answer) = near.open_bi().unwrap();
    let fill = async {
        loop {
            stuck.write(body(1, 1 << 16)).await.unwrap();
        }
    };
    // A window and the sender's queue.
    assert!(
        tokio::time::timeout(Duration::from_millis(300), fill)
            .await
            .is_err()
    );
    let (_unread_answer, _unread) = far.accept_bi().await.unwrap();
    let (mut send, _) = near.open_bi().unwrap();
    send.write(body(2, 1000)).await.unwrap();
    send.finish().unwrap();
    let (_, mut read) = far.accept_bi().await.unwrap();
    assert_eq!(read_all(&mut read).await.unwrap(), body(2, 1000));
}

#[tokio::test]
async fn the_most_urgent_stream_goes_first() {
    // The pipe is full before the writer can choose.
    let (near, far) = pair(1000);
    let mut streams = Vec::new();
    for urgency in [0, -5, 9] {
        let (mut send, answer) = near.open_bi().unwrap();
        send.set_urgency(urgency);
        send.write(body(urgency as u8, 500_000)).await.unwrap();
        send.finish().unwrap();
        streams.push((send, answer));
    }
    let mut order = Vec::new();
    let mut reading = Vec::new();
    for at in 0..3 {
        let (answer, mut read) = far.accept_bi().await.unwrap();
        reading.push(async move {
            let all = read_all(&mut read).await.unwrap();
            (at, all.len(), answer)
        });
    }
    let mut reading: futures::stream::FuturesUnordered<_> = reading.into_iter().collect();
    while let Some((at, bytes, _)) = futures::StreamExt::next(&mut reading).await {
        assert_eq!(bytes, 500_000);
        order.push(at);
    }
    assert_eq!(order, [2, 0, 1]);
}

#[tokio::test]
async fn a_stream_is_given_up_by_either_end_and_the_session_lives() {
    let (near, far) = pair(100_000);
    let (mut send, answer) = near.open_bi().unwrap();
    send.write(body(1, 100)).await.unwrap();
    let (far_send, mut read) = far.accept_bi().await.unwrap();
    assert_eq!(read.read(50).await.unwrap().len(), 50);
    drop(send);
    assert_eq!(read.read(50).await.unwrap().len(), 50);
    assert!(matches!(read.read(50).await, Err(MuxError::GivenUp)));
    drop((answer, far_send, read));

    let (mut send, _answer) = near.open_bi().unwrap();
    send.write(body(1, 100)).await.unwrap();
    drop(far.accept_bi().await.unwrap());
    let stopped = loop {
        if let Err(error) = send.write(body(1, 1 << 20)).await {
            break error;
        }
    };
    assert!(matches!(stopped, MuxError::GivenUp), "{stopped}");
    drop(send);
    // All streams are forgotten, so as many as ever can be opened.
    tokio::time::timeout(PATIENCE, async {
        for _ in 0..3 * STREAMS_MAX {
            let (mut send, _) = near.open_bi().unwrap();
            send.write(body(1, 10)).await.unwrap();
            send.finish().unwrap();
            let (_, mut read) = far.accept_bi().await.unwrap();
            assert_eq!(read_all(&mut read).await.unwrap().len(), 10);
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_remote_that_stands_still_within_a_frame_ends_the_session() {
    let (session, mut raw) = against_within(Duration::from_millis(50));
    // Data of 1000 bytes on stream 0, of which ten come.
    raw.write_all(&[0, 0, 0, 0, 0, 232, 3, 0, 0]).await.unwrap();
    raw.write_all(&[7; 10]).await.unwrap();
    session.closed().await;
    assert!(matches!(session.ended(), Some(MuxError::Stalled(_))));
}

#[tokio::test]
async fn silence_between_frames_is_no_fault() {
    let patience = Duration::from_millis(5);
    let (session, _raw) = against_within(patience);
    let wait = tokio::time::timeout(patience * 100, session.closed());
    assert!(wait.await.is_err() && session.ended().is_none());
}

#[tokio::test]
async fn what_breaks_a_rule_ends_the_session() {
    let huge = u32::MAX.to_le_bytes();
    let cases: [(&str, Vec<u8>); 6] = [
        ("unknown kind", [9, 0, 0, 0, 0, 0, 0, 0, 0].to_vec()),
        (
            "above one megabyte",
            [[0, 0, 0, 0, 0].as_slice(), &huge].concat(),
        ),
        // Stream 1 is the listener's, which has opened none.
        ("not open", [1, 1, 0, 0, 0, 0, 0, 0, 0].to_vec()),
        ("may open", [1, 0, 0, 1, 0, 0, 0, 0, 0].to_vec()),
        ("more credit", [4, 0, 0, 0, 0, 1, 0, 0, 0].to_vec()),
        (
            "second end",
            [[1, 0, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0, 0]].concat(),
        ),
    ];
    for (what, bytes) in cases {
        let (session, mut raw) = against();
        raw.write_all(&bytes).await.unwrap();
        tokio::time::timeout(PATIENCE, session.closed())
            .await
            .unwrap();
        let why = session.ended().unwrap();
        assert!(
            matches!(&why, MuxError::Violation(text) if text.contains(what)),
            "{what}: {why}"
        );
    }
}

#[tokio::test]
async fn a_remote_may_not_send_more_than_a_window() {
    let (session, mut raw) = against();
    let frame = [
        [0, 0, 0, 0, 0, 0, 0, 16, 0].as_slice(),
        &vec![1; FRAME_BYTES_MAX],
    ]
    .concat();
    let flood = async {
        for _ in 0..=WINDOW_BYTES as usize / FRAME_BYTES_MAX {
            raw.write_all(&frame).await?;
        }
        raw.read_u8().await
    };
    assert!(tokio::time::timeout(PATIENCE, flood).await.is_ok());
    let why = session.ended().unwrap();
    assert!(
        matches!(why, MuxError::Violation("more bytes than it may")),
        "{why}"
    );
}
