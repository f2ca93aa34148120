//! One stream over an in-memory pipe whose far end the test controls.

use super::*;

/// A transport that returns in-memory pipes.
struct Pipes(Mutex<Vec<Pipe>>);

impl BulkTransport for Pipes {
    fn open(&self, _: PeerId, _: u64) -> BoxFuture<'static, io::Result<Pipe>> {
        let pipe = self.0.lock().unwrap().pop();
        Box::pin(async move { pipe.ok_or_else(|| io::ErrorKind::NotConnected.into()) })
    }
}

fn core(store: Arc<TestStore>, limits: BulkLimits) -> (Arc<Core>, Pipe, mpsc::Receiver<NetEvent>) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (events, received) = mpsc::channel(16);
    let core = Core {
        store,
        transport: Arc::new(Pipes(Mutex::new(vec![Pipe::of_stream(near.compat())]))),
        rate: MaxRate::default(),
        limits,
        events: Box::new(events),
        counters: Arc::new(Counters::default()),
        meters: Arc::new(LinkMeters::default()),
    };
    (Arc::new(core), Pipe::of_stream(far.compat()), received)
}

fn job(bytes: usize, wait: Duration) -> (Arc<TestStore>, PushJob) {
    let store = Arc::new(TestStore::default());
    let (slice, meta) = slice(Part::Contribution, bytes);
    store.keep(slice, meta, noise(bytes));
    let deadline = tokio::time::Instant::now() + wait;
    (
        store,
        PushJob {
            slice,
            meta,
            priority: 0,
            deadline,
        },
    )
}

const PEER: PeerId = PeerId::from_bytes([4; 32]);

fn remote(core: &Core) -> Remote {
    Remote::new(PEER, 1, &core.rate, &core.counters)
}

async fn pushed(core: &Core, job: PushJob, token: CancellationToken) -> PushOutcome {
    push::push(core, &remote(core), job, urgency(job.priority, 0), token).await
}

#[tokio::test]
async fn a_push_that_is_never_read_is_lost_at_its_deadline() {
    let (store, job) = job(1 << 20, BRIEF);
    let (core, _far, _events) = core(store, BulkLimits::default());
    let began = tokio::time::Instant::now();
    let outcome = pushed(&core, job, CancellationToken::new()).await;
    assert_eq!(outcome, PushOutcome::Lost);
    assert!(began.elapsed() >= BRIEF);
}

#[tokio::test]
async fn a_push_without_an_acknowledgement_may_have_arrived() {
    let (store, job) = job(1 << 20, BRIEF);
    let (core, mut far, _events) = core(store, BulkLimits::default());
    let reader = tokio::spawn(async move { read_to_end(&mut far).await });
    let outcome = pushed(&core, job, CancellationToken::new()).await;
    assert_eq!(outcome, PushOutcome::Unknown);
    assert!(reader.await.unwrap() > 1 << 20);
}

#[tokio::test]
async fn a_receiver_may_refuse_before_it_has_read_the_slice() {
    let (store, job) = job(1 << 20, WAIT);
    let (core, mut far, _events) = core(store, BulkLimits::default());
    let receiver = tokio::spawn(async move {
        let _: Request = read_header(&mut far.read, WAIT).await.unwrap();
        far.write.write_all(&[ACK_REFUSED]).await.unwrap();
        far
    });
    let outcome = pushed(&core, job, CancellationToken::new()).await;
    assert_eq!(outcome, PushOutcome::Refused);
    drop(receiver);
}

#[tokio::test]
async fn a_cancelled_push_is_lost() {
    let (store, job) = job(1 << 20, WAIT);
    let (core, _far, _events) = core(store, BulkLimits::default());
    let token = CancellationToken::new();
    token.cancel();
    assert_eq!(pushed(&core, job, token).await, PushOutcome::Lost);
}

async fn read_to_end(far: &mut Pipe) -> usize {
    let mut all = Vec::new();
    while far.read.append(&mut all, usize::MAX).await.unwrap() > 0 {}
    all.len()
}

/// Serves one pipe while `act` runs at its far end, and returns the reported events.
async fn served<F: Future<Output = ()> + Send + 'static>(
    limits: BulkLimits,
    act: impl FnOnce(Pipe) -> F,
) -> (Arc<TestStore>, Option<NetEvent>) {
    let store = Arc::new(TestStore::default());
    let (core, far, mut events) = core(Arc::clone(&store), limits);
    let near = core.transport.open(PEER, 1).await.unwrap();
    let acting = tokio::spawn(act(far));
    serve(&core, &remote(&core), near).await;
    acting.await.unwrap();
    (store, events.recv().await)
}

fn fault(event: Option<NetEvent>) -> BulkFault {
    match event {
        Some(NetEvent::Bulk(BulkEvent::Malformed { from: PEER, what })) => what,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_stream_that_says_nothing_is_given_up() {
    let limits = BulkLimits {
        header_wait: BRIEF,
        piece_wait: BRIEF,
        ..BulkLimits::default()
    };
    // The far end stays open until the near end gives up.
    let silent = |mut far: Pipe| async move {
        let _ = far.read.read(&mut [0]).await;
    };
    assert_eq!(
        fault(served(limits, silent).await.1),
        BulkFault::Stalled { bytes: 0, of: 0 }
    );
    let stalls = |mut far: Pipe| async move {
        let (slice, meta) = slice(Part::Contribution, 100);
        write_header(&mut far.write, &Request::Push { slice, meta }, WAIT)
            .await
            .unwrap();
        far.write.write_all(&[1; 50]).await.unwrap();
        let _ = far.read.read(&mut [0]).await;
    };
    assert_eq!(
        fault(served(limits, stalls).await.1),
        BulkFault::Stalled { bytes: 50, of: 100 }
    );
}

#[tokio::test]
async fn a_slice_above_the_limit_is_refused_before_a_byte_of_it_is_read() {
    let limits = BulkLimits {
        slice_bytes_max: 1000,
        ..BulkLimits::default()
    };
    let (store, event) = served(limits, |mut far| async move {
        let (slice, meta) = slice(Part::Contribution, 1 << 40);
        write_header(&mut far.write, &Request::Push { slice, meta }, WAIT)
            .await
            .unwrap();
        let mut ack = [0u8; 1];
        far.read.read_exact(&mut ack).await.unwrap();
        assert_eq!(ack, [ACK_REFUSED]);
    })
    .await;
    assert_eq!(
        fault(event),
        BulkFault::TooLong {
            bytes: 1 << 40,
            max: 1000
        }
    );
    assert!(store.slices.lock().unwrap().is_empty());
}

#[tokio::test]
async fn garbage_and_wrong_lengths_are_reported_and_store_nothing() {
    let (_, event) = served(BulkLimits::default(), |mut far| async move {
        far.write.write_all(&[0xff; 64]).await.unwrap();
        far.write.finish().await.unwrap();
    })
    .await;
    assert!(matches!(fault(event), BulkFault::HeaderTooLong { .. }));
    let (_, event) = served(BulkLimits::default(), |mut far| async move {
        far.write.write_all(&[3, 0, 0, 0, 9, 9, 9]).await.unwrap();
        far.write.finish().await.unwrap();
    })
    .await;
    assert!(matches!(fault(event), BulkFault::Header(_)));
    for (sent, expected) in [
        (90, BulkFault::Short { bytes: 90, of: 100 }),
        (101, BulkFault::Excess { of: 100 }),
    ] {
        let (store, event) = served(BulkLimits::default(), move |mut far| async move {
            let (slice, meta) = slice(Part::Contribution, 100);
            write_header(&mut far.write, &Request::Push { slice, meta }, WAIT)
                .await
                .unwrap();
            far.write.write_all(&vec![1; sent]).await.unwrap();
            far.write.finish().await.unwrap();
            let mut ack = [0u8; 1];
            far.read.read_exact(&mut ack).await.unwrap();
            assert_eq!(ack, [ACK_REFUSED]);
        })
        .await;
        assert_eq!(fault(event), expected);
        assert!(store.slices.lock().unwrap().is_empty());
    }
    assert!(BulkFault::Excess { of: 1 }.is_misbehaviour());
    assert!(!BulkFault::Short { bytes: 0, of: 1 }.is_misbehaviour());
}
