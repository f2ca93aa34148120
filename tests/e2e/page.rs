//! The page of a daemon, and that of all daemons of `murmurate local`, in a real browser. Set
//! `MURMURATE_SCREENSHOTS` to a directory to keep pictures.

use murmurate_tests::{Browser, Daemon, Settings, Turn, get, program, quiet_turn, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The window.
const WINDOW: (u32, u32) = (1280, 1720);

/// How soon the page shows that a peer is gone.
const SHOWN_WAIT: Duration = Duration::from_secs(3);

/// How long it must be shown without a break.
const SHOWN_FOR: Duration = Duration::from_secs(1);

/// How long the page may take for everything else.
const USUAL_WAIT: Duration = Duration::from_secs(30);

/// The state of a peer in the table.
fn state(browser: &Browser, peer: &str) -> String {
    let script = format!(
        "const row = document.querySelector('tr[data-peer=\"{peer}\"] .state');\
         return row ? row.textContent : '';"
    );
    browser.run(&script).as_str().unwrap_or_default().to_owned()
}

/// Waits until the curve of the accuracy has a point.
fn until_evaluated(browser: &Browser) {
    wait_until("an evaluation", USUAL_WAIT, || {
        let found = browser.run("return document.querySelector('#accuracy svg') !== null;");
        found.as_bool().filter(|found| *found)
    });
}

/// Whether one of the page's banners is shown: `lost` or `over`.
fn shows(browser: &Browser, banner: &str) -> bool {
    let script = format!("return document.getElementById('{banner}').hidden;");
    browser.run(&script).as_bool() == Some(false)
}

/// Waits until the page says that the run ended in order, and no alarm beside it.
fn until_over(browser: &Browser) {
    wait_until("an end in order", USUAL_WAIT, || {
        shows(browser, "over").then_some(())
    });
    assert!(!shows(browser, "lost"), "an end in order is no alarm");
}

/// Points of the curve of the training loss.
fn points_of_loss(browser: &Browser) -> u64 {
    let script = "const line = document.querySelector('#loss polyline');\
                  return line ? line.getAttribute('points').split(' ').length : 0;";
    browser.run(script).as_u64().unwrap_or(0)
}

fn picture(browser: &Browser, dir: &Path, name: &str) {
    let file = dir.join(name);
    browser.picture(&file);
    let bytes = std::fs::read(&file).unwrap();
    assert!(
        bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000,
        "{name}"
    );
}

/// Takes pictures of the page in light, dark and on a phone.
fn in_all_forms(browser: &Browser, pictures: &Path) {
    picture(browser, pictures, "page-light.png");
    browser.prefer("dark");
    picture(browser, pictures, "page-dark.png");
    browser.prefer("light");
    browser.resize((390, 3600));
    let wide = browser.run("return document.documentElement.scrollWidth;");
    assert!(wide.as_u64().unwrap() <= 390, "wider than a phone: {wide}");
    picture(browser, pictures, "page-phone.png");
    browser.resize(WINDOW);
}

/// Where pictures are kept.
fn pictures(dir: &Path) -> PathBuf {
    let kept = std::env::var_os("MURMURATE_SCREENSHOTS");
    let kept = kept.map_or_else(|| dir.to_owned(), PathBuf::from);
    std::fs::create_dir_all(&kept).unwrap();
    kept
}

#[test]
fn the_page_shows_a_swarm_and_the_death_of_a_peer() {
    let turn = quiet_turn();
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromium or chromedriver is not installed");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        start_with: 4,
        evaluate_every: 4,
        ..Settings::default()
    };
    let mut first = Daemon::start(&turn, &settings, &dir.path().join("0"), &[]);
    let (_, address, http) = first.listening();
    let others = (1..4).map(|index| {
        let dir = dir.path().join(index.to_string());
        Daemon::start(&turn, &settings.shard(index), &dir, &[&address])
    });
    let mut others: Vec<Daemon> = others.collect();
    let (victim, _, _) = others[2].listening();
    first.reaches(3);

    browser.open(&format!("http://{http}/"), WINDOW);
    wait_until("a linked peer", USUAL_WAIT, || {
        state(&browser, &victim).contains("linked").then_some(())
    });
    let before = wait_until("a curve", USUAL_WAIT, || {
        Some(points_of_loss(&browser)).filter(|points| *points > 2)
    });
    wait_until("a longer curve", USUAL_WAIT, || {
        (points_of_loss(&browser) > before).then_some(())
    });
    until_evaluated(&browser);

    let killed = Instant::now();
    others[2].signal(Signal::KILL);
    let mut since = None;
    // Rounds wait for a living peer for a moment too, so it must be shown for a while.
    let shown = wait_until("a peer that is gone", SHOWN_WAIT, || {
        let state = state(&browser, &victim);
        let words = ["no link", "silent", "awaited"];
        match words.iter().any(|word| state.contains(word)) {
            true => since.get_or_insert_with(Instant::now),
            false => return since.take().and(None),
        };
        since.filter(|since| since.elapsed() > SHOWN_FOR)
    });
    let after = shown.saturating_duration_since(killed);
    println!("the page shows the death after {after:?}");
    wait_until("what to do", USUAL_WAIT, || {
        let action = browser.run("return document.getElementById('action').textContent;");
        let named = action
            .as_str()
            .is_some_and(|text| text.contains(&victim[..8]));
        named.then_some(())
    });
    assert_eq!(browser.complaints(), Vec::<String>::new());
    picture(&browser, &pictures(dir.path()), "page-killed.png");

    first.interrupt().polite();
    until_over(&browser);
}

/// A running `murmurate local`, which is told to end when it is dropped.
struct Local {
    child: Child,
    /// The address of its page, without a path.
    http: String,
}

impl Local {
    fn start(_turn: &Turn, dir: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program())
            .args(["local", "--baseline", "0", "--dir", "swarm"])
            .args(arguments)
            .current_dir(dir)
            .env_remove("MURMURATE_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let http = lines.find_map(|line| {
            let line = line.unwrap();
            let found = line.split_once("the swarm in a browser: http://");
            let http = found.map(|(_, rest)| rest.trim_end_matches('/').to_owned());
            said.push_str(&line);
            http
        });
        // The pipe must not fill.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            http: http.unwrap_or_else(|| panic!("no page: {said}")),
        }
    }

    /// The daemons as `murmurate local` sees them.
    fn daemons(&self) -> Vec<Value> {
        let local: Value = serde_json::from_str(&get(&self.http, "/api/v1/local")).unwrap();
        local["daemons"].as_array().unwrap().clone()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(pid.unwrap(), Signal::INT);
        let _ = self.child.wait();
    }
}

/// Selects a name, and checks that answers of the daemon leave it selected.
fn a_selection_lives_on(browser: &Browser) {
    browser.run(
        "window.mark = document.querySelector('#peers tbody bdi');\
         getSelection().selectAllChildren(window.mark); return true;",
    );
    let clock = || browser.run("return document.getElementById('clock').textContent;");
    let before = clock();
    wait_until("another answer", USUAL_WAIT, || {
        (clock() != before).then_some(())
    });
    let kept = browser.run(
        "return window.mark.isConnected && getSelection().toString() === window.mark.textContent;",
    );
    assert_eq!(kept, true);
}

/// The cells of the table of daemons, row by row.
fn rows(browser: &Browser) -> Vec<Vec<String>> {
    let script = "return [...document.querySelectorAll('#peers tbody tr')]\
                  .map((row) => [...row.cells].map((cell) => cell.textContent));";
    serde_json::from_value(browser.run(script)).unwrap()
}

#[test]
fn one_page_shows_all_daemons_of_local_and_stays_when_they_die() {
    let turn = quiet_turn();
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromium or chromedriver is not installed");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let swarm = [
        "--nodes",
        "4",
        "--rounds",
        "1000000",
        "--until-accuracy",
        "0.9999",
        "--kill-every",
        "25s",
    ];
    let local = Local::start(&turn, dir.path(), &swarm);
    browser.open(&format!("http://{}/", local.http), WINDOW);
    let named = wait_until("four daemons that say how they are", USUAL_WAIT, || {
        let rows = rows(&browser);
        let known = |row: &Vec<String>| row[0].starts_with("node-") && row[6] != "–";
        (rows.len() == 4 && rows.iter().all(known)).then_some(rows)
    });
    println!("{named:#?}");
    until_evaluated(&browser);
    a_selection_lives_on(&browser);
    // Those that trained when they spoke last are in the sum.
    let figures = wait_until("the sum over all daemons", USUAL_WAIT, || {
        let figures = browser.run("return document.getElementById('facts').textContent;");
        let figures = figures.as_str()?.to_owned();
        figures.contains("Steps/s of 4 daemons").then_some(figures)
    });
    assert!(figures.contains("Goal: accuracy 99.99 %"), "{figures}");
    wait_until("a curve", USUAL_WAIT, || {
        (points_of_loss(&browser) > 10).then_some(())
    });
    in_all_forms(&browser, &pictures(dir.path()));
    assert_eq!(browser.complaints(), Vec::<String>::new());

    // Any of them is killed, the one that is asked included, and starts again.
    let victim = wait_until("a kill", 2 * USUAL_WAIT, || {
        let daemons = local.daemons();
        let killed = daemons.iter().find(|daemon| daemon["state"] == "killed");
        killed.map(|daemon| daemon["peer"].as_str().unwrap().to_owned())
    });
    let killed = Instant::now();
    wait_until("a mark at the killed daemon", SHOWN_WAIT, || {
        state(&browser, &victim).contains("killed").then_some(())
    });
    println!("the page marks the kill after {:?}", killed.elapsed());
    wait_until("the killed daemon to come back", USUAL_WAIT, || {
        let state = state(&browser, &victim);
        let back = state.contains("linked") || state.contains("this one");
        back.then_some(())
    });
    let again = local.daemons();
    assert!(
        again.iter().any(|daemon| daemon["restarts"] == 1),
        "{again:?}"
    );
    assert!(!shows(&browser, "lost"));

    // Seen by another daemon, on the same page.
    let choose = "const list = document.getElementById('chosen'); list.value = '2';\
                  list.dispatchEvent(new Event('change')); return list.value;";
    assert_eq!(browser.run(choose), "2");
    wait_until("another daemon's view", USUAL_WAIT, || {
        let identity = browser.run("return document.getElementById('identity').textContent;");
        identity
            .as_str()
            .filter(|text| text.contains("node-2"))
            .map(|_| ())
    });
    drop(local);
    until_over(&browser);
}
