//! The page of a daemon in a real browser. Set `MURMURATE_SCREENSHOTS` to a directory to keep pictures.

use murmurate_tests::{Browser, Daemon, Settings, turn, wait_until};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
    browser.resize((390, 2600));
    let wide = browser.run("return document.documentElement.scrollWidth;");
    assert!(wide.as_u64().unwrap() <= 390, "wider than a phone: {wide}");
    picture(browser, pictures, "page-phone.png");
    browser.resize((1280, 1560));
}

#[test]
fn the_page_shows_a_swarm_and_the_death_of_a_peer() {
    let turn = turn();
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: chromium or chromedriver is not installed");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pictures = std::env::var_os("MURMURATE_SCREENSHOTS");
    let pictures = pictures.map_or_else(|| dir.path().to_owned(), PathBuf::from);
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

    browser.open(&format!("http://{http}/"), (1280, 1560));
    wait_until("a linked peer", USUAL_WAIT, || {
        state(&browser, &victim).contains("linked").then_some(())
    });
    let before = wait_until("a curve", USUAL_WAIT, || {
        Some(points_of_loss(&browser)).filter(|points| *points > 2)
    });
    wait_until("a longer curve", USUAL_WAIT, || {
        (points_of_loss(&browser) > before).then_some(())
    });
    wait_until("an evaluation", USUAL_WAIT, || {
        let found = browser.run("return document.querySelector('#accuracy svg') !== null;");
        found.as_bool().filter(|found| *found)
    });
    in_all_forms(&browser, &pictures);

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
    picture(&browser, &pictures, "page-killed.png");

    // The daemon ends: the page says that what it shows is old.
    first.interrupt().polite();
    wait_until("a banner", USUAL_WAIT, || {
        let hidden = browser.run("return document.getElementById('lost').hidden;");
        hidden.as_bool().filter(|hidden| !hidden)
    });
}
