//! What peers agree on beside the parameters: the roll, the ledger of the data, the losses that a pace
//! follows, and the codec of the round where they choose it. It changes with every round that is applied, and it is in states and checkpoints.

use crate::data::{Counted, Me, Turn};
use crate::limits::{DATA_LEDGER_BYTES_MAX, RATINGS_BYTES_MAX, ROLL_BYTES_MAX, SHARED_HEAD_BYTES};
use crate::peer::Peer;
use crate::wire::{decode_limited, encode_value};
use crate::{
    Blocks, Chosen, Ledger, Losses, PeerId, Pool, Ratings, Roll, Round, Taken, TrainSummary,
};
use serde::{Deserialize, Serialize};

/// Bytes of roll and ledger in states and checkpoints.
const SHARED_BYTES_MAX: usize =
    ROLL_BYTES_MAX + DATA_LEDGER_BYTES_MAX + RATINGS_BYTES_MAX + SHARED_HEAD_BYTES;

/// As bytes, each of them empty where there is none.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Shared {
    pub(super) roll: Vec<u8>,
    /// Where the pace follows losses, [`WithLosses`]; where members choose the codec, [`WithChosen`] of that;
    /// where contributions are scored, [`WithRatings`] of that.
    pub(super) ledger: Vec<u8>,
}

/// The ledger's bytes and the losses.
#[derive(Default, Serialize, Deserialize)]
struct WithLosses(Vec<u8>, Losses);

/// The bytes of the ledger, perhaps with losses, and the codec of the round.
#[derive(Default, Serialize, Deserialize)]
struct WithChosen(Vec<u8>, Chosen);

/// The bytes of the ledger, perhaps with losses and codec, and the ratings.
#[derive(Default, Serialize, Deserialize)]
struct WithRatings(Vec<u8>, Ratings);

impl Peer {
    /// Which blocks of data are to be trained, where the peers agree on that.
    pub fn ledger(&self) -> &Ledger {
        &self.cx.data.ledger
    }

    /// The peers that have other data than this one, where the peers agree on the data.
    pub fn with_other_data(&self) -> Vec<PeerId> {
        let pool = self.pool();
        pool.map_or(Vec::new(), |pool| self.cx.data.ledger.outside(pool))
    }

    /// Roll and ledger as they are now.
    pub(super) fn shared(&self) -> Shared {
        let roll = self.cx.rolls.roll.as_ref();
        Shared {
            roll: roll.map_or(Vec::new(), |roll| roll.to_bytes()),
            ledger: self.ledger_bytes(),
        }
    }

    fn ledger_bytes(&self) -> Vec<u8> {
        let ledger = self.cx.data.ledger.to_bytes();
        let ledger = match self.losses() {
            None => ledger,
            Some(losses) => encode_value(&WithLosses(ledger, *losses)),
        };
        let ledger = match self.chosen() {
            None => ledger,
            Some(chosen) => encode_value(&WithChosen(ledger, *chosen)),
        };
        match self.ratings() {
            None => ledger,
            Some(ratings) => encode_value(&WithRatings(ledger, ratings.clone())),
        }
    }

    /// Roll and ledger, for states; empty where there is neither.
    pub(super) fn shared_bytes(&self) -> Vec<u8> {
        let shared = self.shared();
        match shared.roll.is_empty() && shared.ledger.is_empty() {
            true => Vec::new(),
            false => encode_value(&shared),
        }
    }

    /// Takes over roll and ledger of a state.
    pub(super) fn take_shared(&mut self, bytes: &[u8]) {
        let shared = decode_limited::<Shared, SHARED_BYTES_MAX>(bytes).unwrap_or_default();
        self.cx.data.mine.drop_training(Round(u64::MAX));
        self.share(&shared.roll, &shared.ledger);
    }

    /// Takes over roll and ledger. What cannot be read is as if there were none.
    pub(super) fn share(&mut self, roll: &[u8], ledger: &[u8]) {
        if self.has_rolls() {
            let roll = Roll::from_bytes(roll).ok();
            let roll = roll.map(|roll| self.cx.rolls.shared.share(roll));
            self.cx.hold(roll);
        }
        let WithRatings(ledger, ratings) = match self.cx.plan.scores() {
            true => decode_limited::<_, SHARED_BYTES_MAX>(ledger).unwrap_or_default(),
            false => WithRatings(ledger.to_vec(), Ratings::default()),
        };
        self.cx.data.ratings = match ratings.fits() {
            true => ratings,
            false => Ratings::default(),
        };
        let WithChosen(ledger, chosen) = match self.ladder().is_some() {
            true => decode_limited::<_, SHARED_BYTES_MAX>(&ledger).unwrap_or_default(),
            false => WithChosen(ledger, Chosen::default()),
        };
        self.take_chosen(chosen);
        let ledger = ledger.as_slice();
        let WithLosses(ledger, losses) = match self.cx.follows_losses() {
            true => decode_limited::<_, SHARED_BYTES_MAX>(ledger).unwrap_or_default(),
            false => WithLosses(ledger.to_vec(), Losses::default()),
        };
        self.cx.data.losses = losses;
        self.cx.data.ledger = Ledger::from_bytes(&ledger).unwrap_or_default();
    }

    /// A round is over and applied: what it has decided beside the parameters is in force, and new mates
    /// are dialled. The peer is in the next round already. `kept` says whether what this peer trained in the
    /// round, and was not counted, is part of its next contribution.
    pub(super) fn turn(&mut self, round: Round, kept: bool) {
        let plan = &self.cx.plan;
        let history = self.exchange.history();
        let decided = history.zip(plan.fragments_of(round).next());
        let loss = decided.and_then(|(history, first)| history.loss(plan.exchange, round, first));
        let decided = decided.map(|(history, first)| history.counted(plan.exchange, round, first));
        let note = self.cx.rolls.take_note();
        let counted = self.cx.counted(note.as_ref()).or(decided);
        self.settle_losses(counted.as_ref(), loss);
        self.settle_ratings(round, counted.as_ref());
        if let Some(counted) = counted {
            let me = self.cx.me();
            let is_in = |peers: &[(PeerId, Taken)]| peers.iter().any(|(peer, _)| *peer == me);
            let goes_on = matches!(&counted, Counted::Of(peers) if is_in(peers));
            if !goes_on && !kept {
                self.cx.data.mine.drop_training(round);
            }
            self.cx.settle_data(round, &counted);
        }
        if self.cx.turn_roll(&note.unwrap_or_default().change) {
            self.dial_mates();
        }
    }

    /// This peer in the deal, if the peers agree on the data.
    fn in_the_deal(&self) -> Option<Me> {
        let pool = self.pool()?;
        let roll = self.cx.rolls.roll.as_ref();
        let seat = roll.and_then(|roll| Some((roll.place_of(self.cx.me())?, roll.len())));
        let place = match seat {
            Some((place, all)) => (place as u32, all as u32),
            None => {
                let all = self.cx.participants();
                (u32::from(all.place()), u32::from(all.count()))
            }
        };
        let id = self.cx.me();
        Some(Me { id, pool, place })
    }

    /// The pool of this peer's data, where rounds settle the ledger.
    fn pool(&self) -> Option<Pool> {
        let settles = self.cx.plan.settles_data();
        self.cx.config.pool.filter(|_| settles)
    }

    /// The blocks to train in this round, or in the next one while this one is decided.
    pub(super) fn tell_blocks(&mut self, round: Round) -> Option<Blocks> {
        let me = self.in_the_deal()?;
        let (now, data) = (self.cx.round, &mut self.cx.data);
        let told = Turn::with(&self.cx.plan, now, |turn| {
            data.mine.tell(&data.ledger, &me, turn, round)
        });
        Some(told)
    }

    /// The round's contribution is ready: it says what it took.
    pub(super) fn claim_blocks(&mut self, round: Round, summary: &TrainSummary) {
        self.cx.data.mine.finish(round, summary.blocks);
        self.cx.data.taken = None;
        let Some(me) = self.in_the_deal().filter(|_| summary.samples > 0) else {
            return;
        };
        let (now, data) = (self.cx.round, &mut self.cx.data);
        let claimed = Turn::with(&self.cx.plan, now, |turn| {
            data.mine.claim(&data.ledger, &me, turn)
        });
        data.taken = Some(claimed);
    }
}
