//! Files and flags that are accepted, and the error lines of those that are not.

use super::*;
use crate::tests::{assert_begins, assert_ends};
use murmurate_net::congestion::Congestion;

fn line(text: &str, overrides: &Overrides) -> String {
    Config::from_text(Path::new("node.toml"), text, overrides)
        .unwrap_err()
        .to_string()
}

#[test]
fn nothing_said_is_the_default() {
    let config = Config::load(None, &Overrides::default()).unwrap();
    assert_eq!(config.run.name, "murmurate");
    assert_eq!(config.daemon.http.to_string(), "127.0.0.1:0");
    assert_eq!(config.network.listen.len(), 2);
    assert!(config.network.mdns && config.network.join.is_empty());
}

#[test]
fn islands_that_cannot_be_are_named_by_line() {
    let cases = [
        (
            "[island]\nranks = 0\n",
            "node.toml:2: `island.ranks` is 0: give 1, for one trainer, to 64, for as many that sum here",
        ),
        (
            "[strategy]\npreset = \"gradient-tracking\"\n[strategy.inner]\ncorrection = \"momentum-tracking\"\n\
             [island]\nranks = 2\n",
            "node.toml:6: `island.ranks` is 2, but preset gradient-tracking has `strategy.inner.correction` = \
             \"momentum-tracking\", which keeps a momentum of every inner step of one trainer (set ranks = 1, or \
             take another correction)",
        ),
        (
            "[island]\nranks = 65\n",
            "node.toml:2: `island.ranks` is 65: give 1, for one trainer, to 64, for as many that sum here",
        ),
        (
            "[island]\nranks = -1\n",
            "node.toml:2: `ranks`: give a whole number from 0 on in place of integer `-1`",
        ),
        (
            "[island]\nrank = 4\n",
            "node.toml:2: unknown key `rank`; did you mean `ranks`? There are: ranks",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(line(text, &Overrides::default()), expected);
    }
    let ranks = |text: &str| {
        let config = Config::from_text(Path::new("node.toml"), text, &Overrides::default());
        config.unwrap().island.ranks
    };
    assert_eq!((ranks(""), ranks("[island]\nranks = 64\n")), (1, 64));
}

#[test]
fn wrong_files_are_named_by_line() {
    let cases = [
        (
            "[run]\nrouns = 3\n",
            "node.toml:2: unknown key `rouns`; did you mean `rounds`?",
        ),
        (
            "\n[netwrk]\n",
            "node.toml:2: unknown key `netwrk`; did you mean `network`?",
        ),
        (
            "[run]\nseed = \"x\"\n",
            "node.toml:2: `seed`: give a whole number from 0 on in place of \"x\"",
        ),
        (
            "[run]\nstart_with = 0\n",
            "node.toml:2: `run.start_with` counts this daemon: at least 1",
        ),
        (
            "[daemon]\nhttp = \"0.0.0.0:80\"\n",
            "node.toml:2: 0.0.0.0:80 can be reached from outside, and anyone may read it; \
             say so with --http-public (or http_public = true), or use 127.0.0.1",
        ),
        (
            "[shards]\nindex = 4\nof = 4\n",
            "node.toml:2: `shards.index` is 4, it counts from 0 and must be below \
             `shards.of` = 4",
        ),
        (
            "[task]\nkind = \"image-classifier\"\nhiden = 3\n",
            "node.toml:3: `task.hiden` is no key of kind = \"image-classifier\"; \
             did you mean `hidden`?",
        ),
        (
            "[shards]\nkind = \"by-lable\"\n",
            "node.toml:2: `shards.kind` = \"by-lable\" is not known; did you mean `by-label`?",
        ),
        (
            "[daemon]\ndevice = \"cpux\"\n",
            "node.toml:2: there is no device `cpux`; did you mean `cpu`? \
             There are: flex, cpu, wgpu, wgpu:N, cuda, cuda:N",
        ),
        (
            "[daemon]\nname = \"a/b\"\n",
            "node.toml:2: `daemon.name` is `a/b`: a name has 1 to 32 bytes of letters, digits, `-`, `_`, \
             `.` and spaces, and no space at its ends",
        ),
        (
            "[daemon]\nname = \"a\\u001b[2J\"\n",
            "node.toml:2: `daemon.name` is `a\\u{1b}[2J`: a name has 1 to 32 bytes of letters, digits, `-`, \
             `_`, `.` and spaces, and no space at its ends",
        ),
        (
            "[daemon]\nsave_every_s = -1.0\n",
            "node.toml:2: `daemon.save_every_s` must be 0 to 31536000 seconds",
        ),
    ];
    let preset = line("[strategy]\npreset = \"dilocco\"\n", &Overrides::default());
    let start = "node.toml:2: preset `dilocco` does not exist; did you mean `diloco`? \
                 There are: none, ";
    assert!(preset.starts_with(start), "{preset}");
    for (text, expected) in cases {
        let said = line(text, &Overrides::default());
        assert!(said.starts_with(expected), "{said}");
    }
    let broken = line("[run\n", &Overrides::default());
    assert_begins(&broken, "node.toml:1: ");
    assert!(!broken.contains('\n'), "{broken}");
}

#[test]
fn wrong_keys_of_a_strategy_are_named_by_line() {
    let cases = [
        (
            "\n[strategy]\npreset = \"diloco\"\nfoo = 3\n",
            "node.toml:4: key `foo` does not exist",
        ),
        (
            "\n[strategy]\n[strategy.outr]\nlr = 1\n",
            "node.toml:3: key `outr` does not exist; did you mean `outer`?",
        ),
        (
            "[strategy.synchronization]\ninner_steps = \"x\"\n",
            "node.toml:2: `synchronization.inner_steps`: give a whole number from 0 on in place of \"x\"",
        ),
    ];
    for (text, expected) in cases {
        assert_begins(&line(text, &Overrides::default()), expected);
    }
}

#[test]
fn wrong_values_of_a_task_are_named_by_line() {
    let cases = [
        (
            "[task]\nkind = \"image-classifier\"\nhidden = \"x\"\n",
            "node.toml:3: `hidden`: give a whole number from 0 on in place of \"x\"",
        ),
        (
            "[task]\nkind = \"image-classifier\"\nclasses = true\n",
            "node.toml:3: `classes` must be a number of classes or a list of their names",
        ),
        (
            "[task]\nkind = \"tabular\"\nobjective = \"regression\"\ntarget = \"y\"\nscale = { a = 3 }\n",
            "node.toml:5: `scale.a`: give an array of length 2 in place of integer `3`",
        ),
    ];
    for (text, expected) in cases {
        let said = line(text, &Overrides::default());
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn wrong_keys_of_the_network_are_named_by_line() {
    let cases = [
        (
            "[network]\ncongestion = \"reno\"\n",
            "node.toml:2: `network.congestion`: unknown congestion control \"reno\": \
             use \"bbr3\" or \"cubic\"",
        ),
        (
            "[network]\nsite = \"new york\"\n",
            "node.toml:2: `network.site` is `new york`: give 1 to 32 letters, digits, `.`, `_` and \
             `-`, or leave it out to have it measured",
        ),
        (
            "[network]\nmdns = false\nmax_rate = \"10 MB/h\"\n",
            "node.toml:3: `network.max_rate` must be bytes a second above 0, or a number with a \
             unit such as \"10 MB/s\" or \"80 Mbit/s\"; leave it out for no limit",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(line(text, &Overrides::default()), expected);
    }
}

#[test]
fn a_proxy_is_the_only_way_and_its_password_is_not_shown() {
    let of = |text: &str| line(text, &Overrides::default());
    let proxied = "[network]\nproxy = \"http://me:secret@proxy.example:3128\"\n";
    assert_begins(
        &of(&format!("{proxied}bulk = \"tls\"\n")),
        "node.toml:3: `network.bulk` is `tls`, which dials others directly",
    );
    let wrong = of("[network]\nproxy = \"ftp://me:secret@x:1\"\n");
    assert_begins(
        &wrong,
        "node.toml:2: `network.proxy` cannot be read: give http://HOST:PORT",
    );
    if std::env::var_os("HTTPS_PROXY").is_none() && std::env::var_os("https_proxy").is_none() {
        let unset = of("[network]\nproxy = \"env\"\n");
        assert_begins(
            &unset,
            "node.toml:2: HTTPS_PROXY cannot be read: the variable is not set",
        );
    }
    let config = Config::from_text(Path::new("node.toml"), proxied, &Overrides::default());
    let shown = config.unwrap().effective;
    assert!(shown.contains("http://proxy.example:3128"), "{shown}");
    assert!(
        !shown.contains("secret") && !wrong.contains("secret"),
        "{wrong}"
    );
}

#[test]
fn wrong_flags_are_named_by_flag() {
    let join = Overrides {
        join: vec!["10.0.0.1:4001".to_owned()],
        ..Overrides::default()
    };
    let said = line("", &join);
    assert_begins(&said, "--join: `10.0.0.1:4001` is not a multiaddress");
    let http = Overrides {
        http: Some("localhost".to_owned()),
        ..Overrides::default()
    };
    assert_eq!(
        line("", &http),
        "--http: `localhost` is not an address and port such as 127.0.0.1:9100"
    );
}

#[test]
fn a_missing_file_names_the_command_that_writes_one() {
    let path = Path::new("no/such/node.toml");
    let said = Config::load(Some(path), &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("no/such/node.toml: "), "{said}");
    assert_ends(&said, "`murmurate init --to no/such/node.toml` writes one");
}

#[test]
fn flags_win_and_the_effective_configuration_reads_back_the_same() {
    let overrides = Overrides {
        preset: Some("bsp".to_owned()),
        seed: Some(9),
        join: vec!["/ip4/127.0.0.1/udp/9/quic-v1".to_owned()],
        http: Some("0.0.0.0:9".to_owned()),
        http_public: true,
        ..Overrides::default()
    };
    let path = Path::new("node.toml");
    let text = "[run]\nseed = 3\nrounds = 4\n[network]\ncongestion = \"cubic\"\nsite = \"berlin\"\n\
         max_rate = \"8 Mbit/s\"\n";
    let config = Config::from_text(path, text, &overrides).unwrap();
    assert_eq!(config.network.congestion, Congestion::Cubic);
    assert_eq!(
        config.network.site.as_ref().map(Site::as_str),
        Some("berlin")
    );
    assert_eq!(config.network.max_rate.daemon, Some(1_000_000));
    assert_eq!(config.network.max_rate.peer, None);
    assert_eq!((config.run.seed, config.run.rounds), (9, 4));
    assert_eq!(config.strategy.name(), "bsp");
    assert!(!config.network.join.is_empty() && config.run.start_with <= 1);
    let again = Config::from_text(path, &config.effective, &Overrides::default()).unwrap();
    assert_eq!(again.effective, config.effective);
    assert_eq!(again.run, config.run);
    assert_eq!(again.network, config.network);
}

#[test]
fn runs_of_different_names_are_strangers() {
    assert_ne!(RunConfig::id_of("a"), RunConfig::id_of("b"));
}

#[test]
fn what_checkpoints_keep_of_the_configuration_says_nothing_of_the_machine() {
    let text = "[run]\nname = \"r\"\nrounds = 3\n[network]\njoin = [\"/ip4/192.0.2.7/tcp/9\"]\n\
                [daemon]\ndir = \"/home/somebody/node\"\n[task]\nkind = \"causal-lm\"\n\
                data = \"book.txt\"\n";
    let asking = format!("{text}choices = \"asked.jsonl\"\n");
    let path = Path::new("node.toml");
    let config = Config::from_text(path, text, &Overrides::default()).unwrap();
    let kept = config.portable();
    assert!(
        !kept.contains("192.0.2.7") && !kept.contains("somebody"),
        "{kept}"
    );
    // Nor of the questions that it asks.
    let asking = Config::from_text(path, &asking, &Overrides::default()).unwrap();
    assert_ne!(asking.task, config.task);
    assert_eq!(asking.portable(), kept);
    let again = Config::from_text(path, &kept, &Overrides::default()).unwrap();
    assert_eq!((again.run.id, again.run.rounds), (config.run.id, 3));
    assert_eq!(again.task, config.task);
    assert_eq!(again.strategy, config.strategy);
}

#[test]
fn wire_versions_are_some_of_those_that_the_program_speaks() {
    let of = |text: &str| {
        let config = Config::from_text(Path::new("node.toml"), text, &Overrides::default());
        config.map(|config| config.network.wire)
    };
    assert_eq!(of("").unwrap(), WireVersions::OURS);
    let before = of("[network]\nwire_versions = [7, 7]\n").unwrap();
    assert_eq!(before.to_string(), "wire version 7");
    for wrong in ["[6, 8]", "[8, 7]", "[7, 9]"] {
        let text = format!("[network]\nwire_versions = {wrong}\n");
        let expected = format!(
            "node.toml:2: `network.wire_versions` is {wrong}: give the oldest and the newest of wire versions \
             7 to 8, which this program speaks, or leave it out for all of them"
        );
        assert_eq!(line(&text, &Overrides::default()), expected);
    }
}
