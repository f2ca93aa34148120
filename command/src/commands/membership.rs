//! The commands about members of a run: run-key, invite, admit, revoke, members, id.

use crate::cli::{AdmitArgs, IdArgs, InviteArgs, MembersArgs, OfficeArgs, RevokeArgs, RunKeyArgs};
use crate::commands::daemon_http;
use crate::exit::Ended;
use crate::out;
use comfy_table::{Table, presets};
use murmurate_node::api::Swarm;
use murmurate_node::api::words::short;
use murmurate_node::events::{unix_s, utc};
use murmurate_node::membership::{Office, Source, found, members as all_members};
use murmurate_node::store::Store;
use murmurate_trust::{Invite, Terms};
use serde_json::json;
use std::path::PathBuf;

pub(crate) fn run_key(args: &RunKeyArgs) -> anyhow::Result<()> {
    let to = args.to.clone();
    if let (None, Some(name)) = (&to, args.name.strip_suffix(".key")) {
        return Err(Ended::usage(format!(
            "NAME: `{}` is the name of the run, not of a file; `murmurate run-key {name}` writes {name}.key",
            args.name
        )));
    }
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
    let key = office.revoke(&args.whom)?.to_hex();
    let dir = &args.office.dir;
    let runs = daemon_http::get(dir, "/healthz").is_ok();
    let dir = dir.display();
    if runs {
        out::line(format_args!(
            "{key} is revoked: the daemon in {dir} tells the others now"
        ))
    } else {
        out::line(format_args!(
            "{key} will be revoked when the daemon in {dir} runs, which tells the others; until then it takes part"
        ))
    }
}

pub(crate) fn members(args: &MembersArgs) -> anyhow::Result<()> {
    let all = all_members(&args.dir)?;
    let swarm = daemon_http::swarm(&args.dir);
    if args.json {
        let rows = all.iter().map(|member| {
            let mut row = serde_json::to_value(member)?;
            row["name"] = json!(name_of(swarm.as_ref(), &member.peer));
            row["linked"] = json!(swarm.as_ref().map(|swarm| swarm.is_here(&member.peer)));
            Ok(row)
        });
        let rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
        return out::line(&serde_json::to_string_pretty(&json!({ "members": rows }))?);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "member",
        "name",
        "role",
        "let in by",
        "for another",
        "state",
    ]);
    for member in &all {
        let by = match (&member.by, member.invited) {
            (None, _) => "the owner".to_owned(),
            (Some(by), true) => format!("invite {}", short(by)),
            (Some(by), false) => short(by),
        };
        let left = member.until_s.saturating_sub(unix_s() as u64);
        let state = match (&member.banned, member.revoked, left) {
            (Some(what), ..) => format!("banned: {what}"),
            (None, true, _) => "revoked".to_owned(),
            (None, false, 0) => "ended".to_owned(),
            _ => {
                let here = swarm.as_ref().map(|swarm| presence(swarm, &member.peer));
                here.unwrap_or_default().to_owned()
            }
        };
        let name = name_of(swarm.as_ref(), &member.peer).unwrap_or_default();
        let days = format!("{} days", left / 86_400);
        table.add_row([
            short(&member.peer),
            name,
            member.role.clone(),
            by,
            days,
            state,
        ]);
    }
    out::table(&table)?;
    if swarm.is_none() {
        let dir = args.dir.display();
        out::tell(format_args!(
            "no daemon answers in {dir}, so this is what was written last, without who is here"
        ));
    }
    Ok(())
}

/// The name of a daemon, as the running one knows it.
fn name_of(swarm: Option<&Swarm>, peer: &str) -> Option<String> {
    let found = swarm?.names().find(|(id, _)| *id == peer);
    found.map(|(_, name)| name.to_owned())
}

fn presence(swarm: &Swarm, peer: &str) -> &'static str {
    match (swarm.daemon.peer == peer, swarm.is_here(peer)) {
        (true, _) => "this daemon",
        (false, true) => "linked",
        (false, false) => "not linked",
    }
}

pub(crate) fn id(args: &IdArgs) -> anyhow::Result<()> {
    let new = !args.dir.join("identity.key").exists();
    let id = Store::identity_of(&args.dir)?.peer().to_hex();
    if new {
        let dir = args.dir.display();
        out::tell(format_args!(
            "a new identity is in {dir}: start the daemon with --dir {dir}"
        ));
    }
    if args.json {
        out::line(json!({ "peer": id }))
    } else {
        out::line(&id)
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
    let (uses, until_s) = (invite.uses(), invite.until_s());
    if as_json {
        let addresses = invite.addresses().len();
        return out::line(json!({
            "run": office.name(),
            "invite": line,
            "addresses": addresses,
            "uses": uses.unwrap_or(1),
            "until_s": until_s,
        }));
    }
    let hint = if invite.addresses().is_empty() {
        "; it has no address, because no daemon of this directory has listened yet: it works on the same \
             local network, or with --join ADDRESS"
    } else {
        ""
    };
    let machines = match uses {
        None => "for this one machine".to_owned(),
        Some(1) => "for one machine, whichever uses it first".to_owned(),
        Some(uses) => format!("for {uses} machines, whichever use it first"),
    };
    let until = utc(until_s as f64);
    let until = until.get(..16).unwrap_or_default();
    out::tell(format_args!(
        "Write this line into a file on the other machine, and start there with `murmurate run --invite FILE` \
         ({machines}, until {until} UTC{hint}):"
    ));
    out::line(&line)
}
