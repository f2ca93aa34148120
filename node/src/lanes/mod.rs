//! Runs the Executor's two lanes on their own threads, so that training and the network never block
//! each other.
//!
//! Orders enter through bounded queues, and answers leave through one. A `Train` or `Evaluate` goes
//! to both lanes. A `Save` passes from the train lane to the mix lane, which commits it. Where groups
//! survive liars, a third thread signs and checks the messages of the peer.

mod queue;
mod save;
mod seal;

pub(crate) use queue::Answer;
pub(crate) use save::Saver;
pub(crate) use seal::Sealer;

use crate::depot::Depot;
use crate::lies::Forger;
use crate::store::Best;
use murmurate_protocol::limits::UNCHECKED_MESSAGES_MAX;
use murmurate_protocol::wire::Message;
use murmurate_protocol::{Base, Done, Order, OrderId, PeerId, Route, SortedMap, WorkError};
use murmurate_strategies::executor::{Executor, MixLane, TrainLane, TrainSignals};
use queue::Queue;
use save::{HalfSaved, Keep};
use seal::{SEALS_WAITING_MAX, SealWork};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Orders that may wait for one lane before the driver stops to read from the network. Before the
/// peer needs an answer, it gives at most one group's encodes, combines and releases for each
/// fragment, unless a remote sends much that must be released. The queues grow on demand, because
/// allocating this capacity at the start would take 18 MB.
const ORDERS_WAITING_MAX: usize = 64 * 1024;

/// Answers that may wait for the driver. Beyond that the lanes wait.
const ANSWERS_WAITING_MAX: usize = 1024;

enum TrainWork {
    Order(OrderId, Order),
    Save(OrderId, u64, Vec<u8>, Keep),
}

enum MixWork {
    Order(OrderId, Order),
    /// Before the train lane's part of a save.
    BeginSave,
    Save(OrderId, Option<Result<HalfSaved, WorkError>>),
    Best(Best),
}

/// Handles of the lanes' threads and queues.
#[derive(Debug)]
pub(crate) struct Lanes {
    train: Queue<TrainWork>,
    mix: Queue<MixWork>,
    signals: Arc<TrainSignals>,
    threads: Vec<JoinHandle<()>>,
    seal: Option<Sender<SealWork>>,
    /// Messages of each peer whose signatures wait to be checked.
    unchecked: SortedMap<PeerId, usize>,
}

impl std::fmt::Debug for TrainWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrainWork")
    }
}

impl std::fmt::Debug for MixWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MixWork")
    }
}

impl Lanes {
    /// Starts both threads. That of the train lane `computes` itself, or waits for those that do. Without a
    /// saver, `Save` writes nothing and succeeds. A forger changes what the mix lane encodes, in a daemon that
    /// lies on request.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn start(
        executor: Executor,
        depot: Arc<Depot>,
        saver: Option<Arc<Saver>>,
        (forger, sealer): (Option<Arc<Forger>>, Option<Sealer>),
        computes: bool,
    ) -> std::io::Result<(Self, mpsc::Receiver<Answer>)> {
        let (train_lane, mix_lane) = executor.split();
        let signals = train_lane.signals();
        let (answers, received) = mpsc::channel(ANSWERS_WAITING_MAX);
        let (train, mut train_work) = mpsc::channel(ORDERS_WAITING_MAX);
        let (mix, mut mix_work) = mpsc::channel(ORDERS_WAITING_MAX);
        let (to_mix, train_answers, train_saver) = (mix.clone(), answers.clone(), saver.clone());
        let of_sealer = answers.clone();
        let span = tracing::Span::current();
        let of_trainer = span.clone();
        let trainer = std::thread::Builder::new()
            .name("train".to_owned())
            .spawn(move || {
                let _run = of_trainer.entered();
                let say = |line| drop(train_answers.blocking_send(Answer::Note(line)));
                let _computing = computes.then(|| murmurate_tasks::compute_here(say));
                run_train(
                    train_lane,
                    &mut train_work,
                    &to_mix,
                    &train_answers,
                    train_saver.as_deref(),
                );
            })?;
        let mixer = std::thread::Builder::new()
            .name("mix".to_owned())
            .spawn(move || {
                let _run = span.entered();
                let host = (depot.as_ref(), forger.as_deref());
                run_mix(mix_lane, &mut mix_work, &answers, host, saver.as_deref());
            })?;
        let mut threads = vec![trainer, mixer];
        let seal = match sealer {
            Some(sealer) => {
                let (seal, mut work) = mpsc::channel(SEALS_WAITING_MAX);
                let thread = std::thread::Builder::new()
                    .name("seal".to_owned())
                    .spawn(move || seal::run(sealer, &mut work, &of_sealer))?;
                threads.push(thread);
                Some(seal)
            }
            None => None,
        };
        let lanes = Self {
            train: Queue::new(train),
            mix: Queue::new(mix),
            signals,
            threads,
            seal,
            unchecked: SortedMap::new(),
        };
        Ok((lanes, received))
    }

    pub(crate) fn submit(&mut self, id: OrderId, order: Order) {
        match order {
            Order::Save {
                round,
                snapshot,
                branch,
            } => {
                let keep = if branch { Keep::Branch } else { Keep::Newest };
                self.mix.push(MixWork::BeginSave);
                let save = TrainWork::Save(id, round.0, snapshot, keep);
                self.train.push(save);
            }
            order if order.route() == Route::MixThenTrain => {
                self.mix.push(MixWork::Order(id, order.clone()));
                self.train.push(TrainWork::Order(id, order));
            }
            order => self.mix.push(MixWork::Order(id, order)),
        }
    }

    /// Moves orders that did not fit into the lanes' queues there. Returns whether all fitted; if
    /// not, the driver must take nothing more from the network, which would bring more orders.
    pub(crate) fn keep_up(&mut self) -> bool {
        let train = self.train.flush();
        self.mix.flush() && train
    }

    /// Signs a message and gives it back as [`Answer::Signed`], if this daemon signs and the message
    /// carries signatures; otherwise gives it back at once.
    pub(crate) fn sign(&self, to: PeerId, message: Message) -> Option<Message> {
        match &self.seal {
            Some(seal) if message.is_signed() => {
                // A full queue loses the message, as a full link would.
                let _ = seal.try_send(SealWork::Sign(to, message));
                None
            }
            _ => Some(message),
        }
    }

    /// Remembers, across restarts, with which parameters a round began.
    pub(crate) fn opened(&self, base: Base) {
        if let Some(seal) = &self.seal {
            // A full queue loses it. The other daemons remember it.
            let _ = seal.try_send(SealWork::Opened(base));
        }
    }

    /// Checks a message and answers with [`Answer::Checked`], as [`Lanes::sign`] signs. A peer of
    /// which too many messages wait loses this one.
    pub(crate) fn check(&mut self, from: PeerId, message: Message) -> Option<Message> {
        let Some(seal) = self.seal.as_ref().filter(|_| message.is_signed()) else {
            return Some(message);
        };
        let waiting = self.unchecked.entry(from).or_default();
        if *waiting < UNCHECKED_MESSAGES_MAX
            && seal.try_send(SealWork::Check(from, message)).is_ok()
        {
            *waiting += 1;
        }
        None
    }

    pub(crate) fn checked(&mut self, from: PeerId) {
        if let Some(waiting) = self.unchecked.get_mut(&from) {
            *waiting -= 1;
            if *waiting == 0 {
                self.unchecked.remove(&from);
            }
        }
    }

    /// Keeps the anchor as it is now in the file of the best parameters. Orders that are queued later
    /// wait for it.
    pub(crate) fn keep_best(&mut self, best: Best) {
        self.mix.push(MixWork::Best(best));
    }

    /// Values that the train lane publishes while it works.
    pub(crate) fn signals(&self) -> &TrainSignals {
        &self.signals
    }

    /// Ends both threads after their current work, and waits for them.
    pub(crate) fn join(self) {
        self.train.end();
        self.mix.end();
        drop(self.seal);
        for thread in self.threads {
            // A lane that panicked has printed the reason; its work is lost.
            let _ = thread.join();
        }
    }
}

fn run_train(
    mut lane: TrainLane,
    work: &mut Receiver<TrainWork>,
    mix: &Sender<MixWork>,
    answers: &mpsc::Sender<Answer>,
    saver: Option<&Saver>,
) {
    while let Some(work) = work.blocking_recv() {
        match work {
            TrainWork::Order(id, order) => {
                let mut on_cut = |fragment, samples| {
                    let _ = answers.blocking_send(Answer::Cut(id, fragment, samples));
                };
                if let Some(done) = lane.perform(&order, &mut on_cut) {
                    let _ = answers.blocking_send(Answer::Done(id, done));
                }
            }
            TrainWork::Save(id, round, snapshot, keep) => {
                lane.begin_save();
                let half = saver.map(|saver| saver.begin((round, keep), snapshot, &mut lane));
                lane.end_save();
                let _ = mix.blocking_send(MixWork::Save(id, half));
            }
        }
    }
    lane.close();
}

fn run_mix(
    mut lane: MixLane,
    work: &mut Receiver<MixWork>,
    answers: &mpsc::Sender<Answer>,
    (depot, forger): (&Depot, Option<&Forger>),
    saver: Option<&Saver>,
) {
    while let Some(work) = work.blocking_recv() {
        let (id, done) = match work {
            MixWork::Order(id, order) => {
                let done = lane.perform(&order, depot);
                let told = |done| match forger {
                    Some(forger) => forger.done(&order, done, depot),
                    None => done,
                };
                (id, done.map(told))
            }
            MixWork::BeginSave => {
                lane.begin_save();
                continue;
            }
            MixWork::Save(id, half) => {
                let saved = half.zip(saver).map_or(Ok(None), |(half, saver)| {
                    half.and_then(|half| saver.finish(half, &lane))
                });
                if let Ok(Some(text)) = &saved {
                    let _ = answers.blocking_send(Answer::Note(text.clone()));
                }
                (id, Some(saved.map_or_else(Done::Failed, |_| Done::Saved)))
            }
            MixWork::Best(best) => {
                let kept = saver.map_or(Ok(()), |saver| saver.keep_best(&best, &lane));
                if let Err(error) = kept {
                    let text = format!("the best parameters were not kept: {error}");
                    let _ = answers.blocking_send(Answer::Note(text));
                }
                continue;
            }
        };
        if let Some(done) = done {
            let _ = answers.blocking_send(Answer::Done(id, done));
        }
    }
    lane.close();
}
