//! The commands about members of a run: run-key, invite, admit, revoke, members, id.

use crate::cli::{AdmitArgs, IdArgs, InviteArgs, MembersArgs, OfficeArgs, RevokeArgs, RunKeyArgs};
use crate::out;
use comfy_table::{Table, presets};
use murmurate_node::membership::{Office, Source, found, members as all_members};
use murmurate_node::store::Store;
use murmurate_trust::{Invite, Terms};
use serde_json::json;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn run_key(args: &RunKeyArgs) -> anyhow::Result<()> {
    let to = args.to.clone();
    let to = to.unwrap_or_else(|| PathBuf::from(format!("{}.key", args.name.replace('/', "-"))));
    let key = found(&to, &args.name)?;
    out::line(format_args!(
        "{} is the key of the run `{}` (public key {}). Keep it: anyone who has it decides who takes part.\n\
         Start a daemon of the run with `murmurate run --key {}`, and let other machines in with \
         `murmurate invite`.",
        to.display(),
        args.name,
        key.public().to_hex(),
        to.display(),
    ))
}

pub(crate) fn invite(args: &InviteArgs) -> anyhow::Result<()> {
    let line = &args.line;
    let office = office(&line.office)?;
    let terms = Terms {
        role: line.role,
        uses: args.uses,
        life_s: args.expires,
    };
    let invite = office.invite(terms, &line.address)?;
    show(&invite, &office, line.json)
}

pub(crate) fn admit(args: &AdmitArgs) -> anyhow::Result<()> {
    let line = &args.line;
    let office = office(&line.office)?;
    let invite = office.admit(&args.peer, line.role, &line.address)?;
    show(&invite, &office, line.json)
}

pub(crate) fn revoke(args: &RevokeArgs) -> anyhow::Result<()> {
    let office = office(&args.office)?;
    let key = office.revoke(&args.whom)?;
    out::line(format_args!(
        "{} is revoked; the daemon in {} tells the others now, or when it runs again",
        key.to_hex(),
        args.office.dir.display(),
    ))
}

pub(crate) fn members(args: &MembersArgs) -> anyhow::Result<()> {
    let all = all_members(&args.dir)?;
    if args.json {
        return out::line(&serde_json::to_string_pretty(&json!({ "members": all }))?);
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["member", "role", "let in by", "for another", ""]);
    for member in &all {
        let by = match (&member.by, member.invited) {
            (None, _) => "the owner".to_owned(),
            (Some(by), true) => format!("invite {}", short(by)),
            (Some(by), false) => short(by).to_owned(),
        };
        let left = member.until_s.saturating_sub(now.as_secs());
        let state = match (&member.banned, member.revoked, left) {
            (Some(what), ..) => format!("banned: {what}"),
            (None, true, _) => "revoked".to_owned(),
            (None, false, 0) => "ended".to_owned(),
            _ => String::new(),
        };
        let days = format!("{} days", left / 86_400);
        table.add_row([short(&member.peer), &member.role, &by, &days, &state]);
    }
    out::table(&table)
}

pub(crate) fn id(args: &IdArgs) -> anyhow::Result<()> {
    let id = Store::identity_of(&args.dir)?.peer().to_hex();
    match args.json {
        true => out::line(json!({ "peer": id })),
        false => out::line(&id),
    }
}

fn office(args: &OfficeArgs) -> anyhow::Result<Office> {
    Ok(Office::of(&source(args))?)
}

pub(super) fn source(args: &OfficeArgs) -> Source {
    Source {
        dir: args.dir.clone(),
        key: args.key.clone(),
    }
}

/// Prints an invite. Only the line is on stdout, so that a script can take it.
fn show(invite: &Invite, office: &Office, as_json: bool) -> anyhow::Result<()> {
    let line = invite.to_line();
    if as_json {
        let addresses = invite.addresses().len();
        return out::line(json!({ "run": office.name(), "invite": line, "addresses": addresses }));
    }
    let hint = match invite.addresses().is_empty() {
        true => {
            "it has no address, because no daemon of this directory has listened yet: it works on the same local \
             network, or with --join ADDRESS"
        }
        false => "anyone who reads it can use it",
    };
    out::tell(format_args!(
        "Start the other machine with `murmurate run --invite LINE` ({hint}):"
    ));
    out::line(&line)
}

fn short(id: &str) -> &str {
    id.get(..16).unwrap_or(id)
}
