//! The daemon's right to take part in its run, and the end of that right.

use super::finding::{Code, Finding};
use super::subject::Subject;
use murmurate_node::membership::{MemberView, MembershipError, members, run_of};
use murmurate_protocol::PeerId;
use murmurate_trust::{Flaw, InviteError};

const DAY_S: u64 = 86_400;

/// A certificate that ends within this time is worth a warning.
const SOON_S: u64 = 14 * DAY_S;

/// How a member that is out gets in again.
const NEW_INVITE: &str = "ask a member for a new invite, and enter with it in a new directory: \
                    murmurate run --dir NEW --invite FILE";

pub(super) fn membership(subject: &Subject) -> Finding {
    let open = subject
        .config
        .as_ref()
        .is_some_and(|config| config.run.open);
    if open {
        return Finding::ok("membership", "the run is open to everyone");
    }
    if let Some(finding) = of_other_run(subject) {
        return finding;
    }
    match members(&subject.dir) {
        Ok(all) => {
            let me = subject.me().map(|me| me.to_hex());
            match all.iter().find(|member| Some(&member.peer) == me.as_ref()) {
                Some(member) => own(member, subject.now_s),
                None => Finding::ok("membership", "a certificate is there"),
            }
        }
        Err(MembershipError::NoMember(_)) => outside(subject),
        Err(error @ MembershipError::Register { .. }) => {
            let finding = Finding::failed("membership", Code::Register, error.to_string());
            finding.fix(
                "restore the file `register` from a copy, or remove it where another member is there",
            )
        }
        Err(error) => {
            let finding = Finding::failed("membership", Code::Certificate, error.to_string());
            finding.fix(NEW_INVITE)
        }
    }
}

/// An invite of another run than that of the directory.
fn of_other_run(subject: &Subject) -> Option<Finding> {
    let invite = subject.invite.as_ref()?;
    let run = run_of(&subject.dir).ok()?;
    (run != invite.run()).then(|| {
        let (name, dir) = (invite.name(), subject.dir.display());
        let text = format!("the invite is of the run `{name}`, and {dir} belongs to another one");
        Finding::failed("membership", Code::Invite, text).fix("give another directory: --dir NEW")
    })
}

fn own(member: &MemberView, now_s: u64) -> Finding {
    let failed =
        |text: String| Finding::failed("membership", Code::Certificate, text).fix(NEW_INVITE);
    if let Some(what) = &member.banned {
        return failed(format!("this daemon is banned: it {what}"));
    }
    if member.revoked {
        return failed("the membership of this daemon was revoked".to_owned());
    }
    let Some(left_s) = member.until_s.checked_sub(now_s).filter(|left| *left > 0) else {
        let ago = days(now_s - member.until_s);
        return failed(format!("the certificate of this daemon ended {ago} ago"))
            .because("certificates have an end, or the clock of this machine is ahead");
    };
    let text = format!(
        "a member with the role {}, for {} more",
        member.role,
        days(left_s)
    );
    if left_s < SOON_S {
        Finding::warning("membership", Code::CertificateEnds, text)
            .because("certificates have an end")
            .fix(NEW_INVITE)
    } else {
        Finding::ok("membership", text)
    }
}

/// A daemon that is no member yet.
fn outside(subject: &Subject) -> Finding {
    if let Some(invite) = &subject.invite {
        // An invite for anybody does not depend on the id.
        let me = subject.me().unwrap_or(PeerId::from_bytes([0; 32]));
        return match invite.accept(me, subject.now_s) {
            Ok(_) => {
                let name = invite.name();
                Finding::ok(
                    "membership",
                    format!("the invite lets this daemon into `{name}`"),
                )
            }
            Err(error) => refused(&error),
        };
    }
    let config = subject.config.as_ref();
    let has_key = config.is_some_and(|config| config.run.key.is_some());
    let has = |file: &str| subject.dir.join(file).exists();
    if subject.joins().is_empty() && !has_key && !has("run.key") && has("checkpoint.json") {
        let dir = subject.dir.clone();
        let lost = MembershipError::Lost(dir);
        let fix = format!("give --open, here too, if its run is open; else {NEW_INVITE}");
        return Finding::failed("membership", Code::NoMember, lost.to_string()).fix(fix);
    }
    if subject.joins().is_empty() || has_key {
        let text = if has_key {
            "this daemon has the key of its run"
        } else {
            "this daemon is in no run: it will found one"
        };
        return Finding::ok("membership", text);
    }
    let text = "this daemon has addresses to join and nothing that lets it in";
    Finding::failed("membership", Code::NoMember, text).fix(
        "run `murmurate invite DIR` on a machine of the run and start with --invite FILE here; or \
         start all daemons of the run with --open",
    )
}

pub(super) fn refused(error: &InviteError) -> Finding {
    if let InviteError::Flaw(Flaw::Early { ahead_s }) = error {
        let text = format!("the invite is valid only in {ahead_s} s");
        return Finding::failed("clock", Code::Clock, text)
            .because("the clock of this machine is behind, or that of the inviting one is ahead")
            .fix("set the clocks of both machines by NTP: timedatectl set-ntp true");
    }
    Finding::failed("membership", Code::Invite, error.to_string())
        .fix("ask a member for a new line: murmurate invite DIR")
}

fn days(seconds: u64) -> String {
    match seconds {
        0..DAY_S => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / DAY_S),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::State;

    fn member(until_s: u64) -> MemberView {
        MemberView {
            peer: "ab".to_owned(),
            role: "train".to_owned(),
            until_s,
            by: None,
            invited: false,
            revoked: false,
            banned: None,
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_told_before_and_after() {
        let now = 100 * DAY_S;
        let of = |until_s| {
            let finding = own(&member(until_s), now);
            (finding.state, finding.code, finding.text)
        };
        let ok = of(now + 20 * DAY_S);
        assert_eq!(ok.0, State::Ok);
        assert_eq!(ok.2, "a member with the role train, for 20 days more");
        let soon = of(now + 7200);
        assert_eq!((soon.0, soon.1.as_deref()), (State::Warning, Some("M032")));
        assert!(soon.2.ends_with("for 2 hours more"), "{}", soon.2);
        for until in [now, now - 3 * DAY_S] {
            let ended = of(until);
            assert_eq!((ended.0, ended.1.as_deref()), (State::Failed, Some("M031")));
        }
        let revoked = MemberView {
            revoked: true,
            ..member(now + DAY_S)
        };
        assert_eq!(own(&revoked, now).code.as_deref(), Some("M031"));
    }

    #[test]
    fn an_invite_of_the_future_is_a_matter_of_clocks() {
        let early = refused(&InviteError::Flaw(Flaw::Early { ahead_s: 900 }));
        assert_eq!(early.code.as_deref(), Some("M030"));
        let ended = refused(&InviteError::Flaw(Flaw::Expired { ago_s: 5 }));
        assert_eq!(ended.code.as_deref(), Some("M033"));
    }
}
