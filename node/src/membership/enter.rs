//! How a daemon enters a run when it starts.

use super::MembershipError;
use super::card::Card;
use super::key_file::{found, read_key};
use super::roll::{find_register, write_register};
use crate::config::Config;
use crate::net::{Membership, now_s};
use crate::store::Store;
use libp2p::Multiaddr;
use murmurate_protocol::PeerId;
use murmurate_trust::{Chain, Flaw, Invite, Register, Run, RunKey};
use std::path::Path;
use std::sync::Arc;

/// The name of a run for which the configuration names none.
const USUAL_NAME: &str = "murmurate";

/// What lets the owner of a run in.
const RUN_KEY: &str = "run key";

/// A daemon's membership, and what to tell the operator.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) membership: Arc<Membership>,
    pub(crate) note: Option<String>,
    /// Set where another one let this daemon in.
    pub(crate) invited: bool,
}

struct Right {
    name: String,
    run: Run,
    chain: Chain,
    /// What says so, in words.
    given: &'static str,
    note: Option<String>,
}

/// Enters the run: by the invite, by the run key, or as before. A daemon with none of them and no
/// address to join founds a run of its own. Sets the run's name and id in the configuration, and
/// adds the invite's addresses.
///
/// # Errors
/// Why it cannot enter. Nothing was written then, except the key of a new run.
pub(crate) fn enter(
    config: &mut Config,
    store: &Store,
    invite: Option<&Invite>,
) -> Result<Entered, MembershipError> {
    let (dir, me) = (store.dir(), store.identity().peer());
    let card = Card::read(dir)?;
    if config.run.open {
        return enter_open(config, dir, me, (card.as_ref(), invite));
    }
    let right = right(config, dir, me, (card.as_ref(), invite))?;
    if let Some(card) = card.as_ref().filter(|card| card.run != right.run) {
        return Err(MembershipError::OtherRun {
            dir: dir.to_owned(),
            name: card.name.clone(),
            given: right.given,
        });
    }
    let configured = &config.run.name;
    if configured != USUAL_NAME && *configured != right.name {
        return Err(MembershipError::OtherName {
            configured: configured.clone(),
            name: right.name,
            given: right.given,
        });
    }
    let path = Card::path(dir);
    let ended = |flaw| match flaw {
        Flaw::OtherPeer => MembershipError::OtherKey(path),
        flaw => MembershipError::Ended { path, flaw },
    };
    right.chain.check(&right.run, &me, now_s()).map_err(ended)?;
    let fresh = Card {
        name: right.name,
        run: right.run,
        chain: right.chain,
    };
    let register = find_register(dir, &fresh.run)?;
    // A member has a register from its first start on.
    let lost = (register.is_none() && card.is_some()).then(|| {
        format!(
            "the register of members in {} is gone: until another member has told this daemon who was revoked, \
             they can get in here",
            dir.display()
        )
    });
    let register = match register {
        Some(register) => register,
        None => {
            let empty = Register::new(fresh.run.clone());
            write_register(dir, &empty)?;
            empty
        }
    };
    if card.as_ref() != Some(&fresh) {
        fresh.write(dir)?;
    }
    if let Some(invite) = invite {
        let addresses = invite.addresses().iter();
        let addresses = addresses.filter_map(|bytes| Multiaddr::try_from(bytes.clone()).ok());
        config.network.join.extend(addresses);
    }
    config.run.id = fresh.run.id;
    config.run.name = fresh.name;
    Ok(Entered {
        membership: Arc::new(Membership::new(me, fresh.chain, register)),
        note: lost.or(right.note),
        invited: right.given != RUN_KEY,
    })
}

fn enter_open(
    config: &Config,
    dir: &Path,
    me: PeerId,
    (card, invite): (Option<&Card>, Option<&Invite>),
) -> Result<Entered, MembershipError> {
    if invite.is_some() || config.run.key.is_some() {
        return Err(MembershipError::OpenAndMore);
    }
    if let Some(card) = card {
        return Err(MembershipError::Closed {
            dir: dir.to_owned(),
            name: card.name.clone(),
        });
    }
    let note = "this run is open: everyone who knows its name and an address can take part, read the \
                model and spoil it (leave --open out to let in only whom you invite)";
    Ok(Entered {
        membership: Arc::new(Membership::open(config.run.id, me)),
        note: Some(note.to_owned()),
        invited: false,
    })
}

fn right(
    config: &Config,
    dir: &Path,
    me: PeerId,
    (card, invite): (Option<&Card>, Option<&Invite>),
) -> Result<Right, MembershipError> {
    let own_key = dir.join("run.key");
    if let Some(invite) = invite {
        let run = invite.run();
        // An invite is not used up by a member that is still one.
        let still =
            card.filter(|card| card.run == run && card.chain.check(&run, &me, now_s()).is_ok());
        let chain = match still {
            Some(card) => card.chain.clone(),
            None => invite.accept(me, now_s())?,
        };
        return Ok(Right {
            name: invite.name().to_owned(),
            run,
            chain,
            given: "invite",
            note: None,
        });
    }
    if let Some(path) = &config.run.key {
        return Ok(owner(&read_key(path)?, me, None));
    }
    if own_key.exists() {
        return Ok(owner(&read_key(&own_key)?, me, None));
    }
    if let Some(card) = card {
        return Ok(Right {
            name: card.name.clone(),
            run: card.run.clone(),
            chain: card.chain.clone(),
            given: "directory",
            note: None,
        });
    }
    if !config.network.join.is_empty() {
        return Err(MembershipError::NoInvite);
    }
    if dir.join("checkpoint.json").exists() {
        return Err(MembershipError::Lost(dir.to_owned()));
    }
    let key = found(&own_key, &config.run.name)?;
    let note = format!(
        "this daemon founded a closed run. To let another machine in, run `murmurate invite {}` here and \
         start it there with `murmurate run --invite FILE`",
        dir.display()
    );
    Ok(owner(&key, me, Some(note)))
}

fn owner(key: &RunKey, me: PeerId, note: Option<String>) -> Right {
    let run = key.run();
    Right {
        name: key.name().to_owned(),
        chain: key.certify_self(&run, me, now_s()),
        run,
        given: RUN_KEY,
        note,
    }
}
