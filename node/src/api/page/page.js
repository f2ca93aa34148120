// Asks /api/v1 of the daemon that serves the page once a second and follows its events. Under `murmurate
// local` one page shows all daemons: it asks the process that started them, which passes questions below
// /daemons/N on to daemon N. Everything from the network is set as text, never as markup.
const SECOND = 1000, OF_KIND_SHOWN = 40, POINTS_MAX = 4096;
const STRIP = { c: "█", p: "▄", l: "▁", k: "↷", a: "·", n: "×", m: "~", "?": "?" };
const CHARTS = ["loss", "accuracy", "time", "bytes"];

const LOCAL = document.body.dataset.swarm === "local";
// Of a local swarm: what its process says, the daemon that is asked, and its events.
let local = null, chosen = 0, source = null, timer = null;
let points = [], shown = null, answered = 0, last = null;
let events = new Map();
const isNews = speaker();

const path = (rest) => (LOCAL ? `/daemons/${chosen}` : "") + "/api/v1/" + rest;

function list(id, pairs) {
  show(id, ...pairs.map(([name, value, key]) => {
    const row = element("div", { "data-key": key || name });
    row.append(element("dt", {}, name), element("dd", {}, value));
    return row;
  }));
}

function strip(letters) {
  const all = element("span", { class: "strip", role: "img" });
  const counted = [...letters].filter((one) => one === "c").length;
  all.setAttribute("aria-label", `${counted} of ${letters.length} rounds counted`);
  for (const letter of letters) all.append(element("span", { class: /[a-z]/.test(letter) ? letter : "u" }, STRIP[letter] || "?"));
  return all;
}

// A daemon by its name. The id is behind it if the user wants ids, and in the tooltip. A name is isolated,
// because it may run from right to left.
function named(id, more) {
  const all = element("span", { title: id }), name = names.get(id);
  all.append(element("bdi", {}, label(id)), name ? element("span", { class: "id" }, " " + short(id)) : "", more || "");
  return all;
}

const started = (peer) => local && local.daemons.find((daemon) => daemon.peer === peer.peer || daemon.node === peer.node);
const stateOf = (peer) => state(peer, started(peer));

// A table of rows, each with a key and the texts or nodes of its cells. A column is left out of all rows at once.
function table(id, columns, rows) {
  const head = element("tr"), [thead, body] = [$(id).tHead, $(id).tBodies[0]];
  const used = columns.filter(Boolean);
  used.forEach(([name, , kind]) => head.append(element("th", { scope: "col", class: kind || "" }, name)));
  fill(thead, [head]);
  fill(body, rows.map((row) => {
    const line = element("tr", { class: row.linked ? "" : "gone", "data-key": row.peer || `node-${row.node}`, "data-peer": row.peer || "" });
    for (const [, of, kind, stale] of used) {
      const cell = element("td", { class: `${kind || ""}${stale && row.says && row.says.stale ? " stale" : ""}` });
      cell.append(of(row));
      line.append(cell);
    }
    return line;
  }));
}

// All daemons, this one first. What a daemon says of itself is grey once it is old.
function peers(swarm) {
  const me = swarm.daemon, unit = me.bytes_per_token;
  const own = {
    peer: me.peer, me: true, linked: true, round: me.round, lag: 0, strip: me.strip, share: me.share,
    says: { phase: me.phase, inner_steps_per_s: me.inner_steps_per_s, loss: me.loss, version: me.version,
      accuracy: me.evaluation && me.evaluation.accuracy },
  };
  const seen = new Set([own, ...swarm.peers].map((peer) => peer.peer));
  const unseen = (local ? local.daemons : []).filter((daemon) => !seen.has(daemon.peer));
  const others = unseen.map((daemon) => ({ peer: daemon.peer || "", node: daemon.node, linked: false, strip: "" }));
  const rows = [own, ...swarm.peers, ...others];
  const says = (peer) => peer.says || {}, all = swarm.totals.inner_steps_per_s;
  const state = (peer) => {
    const words = element("span"), [text, bad] = stateOf(peer);
    words.append(element("b", { class: bad ? "bad" : "" }, text));
    if (peer.linked && says(peer).phase && !says(peer).stale) words.append(element("span", { class: "extra" }, `, ${says(peer).phase}`));
    if (!peer.linked && says(peer).age_s) words.append(element("span", { class: "note extra" }, `, heard ${time(says(peer).age_s)} ago`));
    return words;
  };
  const lag = (peer) => (peer.lag > 0 ? ` (${peer.lag} behind)` : peer.lag < 0 ? ` (${-peer.lag} ahead)` : "");
  const part = (rate, stale) => (all && rate && !stale ? ` (${percent(rate / all)})` : "");
  const versions = new Set(rows.map((peer) => says(peer).version).filter(Boolean));
  table("peers", [
    ["Daemon", (peer) => (peer.peer ? named(peer.peer, peer.me ? " (this)" : "") : `node-${peer.node}`)],
    ["State", state, "state"],
    ["Round", (peer) => known(peer.round ?? says(peer).round, String) + lag(peer)],
    ["Share", (peer) => known(peer.share, percent), "extra"],
    ["Last 32 rounds", (peer) => strip(peer.strip || ""), "under"],
    ["Steps/s", (peer) => known(says(peer).inner_steps_per_s, fixed(1)) + part(says(peer).inner_steps_per_s, says(peer).stale), "extra", true],
    ["Loss", (peer) => known(says(peer).loss, fixed(3)), "", true],
    unit ? ["Bits/byte", (peer) => known(bitsPerByte(says(peer).loss, unit), fixed(3)), "", true]
      : ["Accuracy", (peer) => known(says(peer).accuracy, accuracy), "", true],
    versions.size > 1 && ["Version", (peer) => known(says(peer).version, String), "extra", true],
  ], rows);
  table("links", [
    ["Daemon", (peer) => named(peer.peer)],
    ["Waited for it", (peer) => known(peer.waited_s, time)],
    ["Round trip", (peer) => known(peer.rtt_s, time)],
    ["Bytes lost", (peer) => known(peer.loss, percent), "extra"],
    ["Rate", (peer) => known(peer.bytes_per_s, bits)],
    ["Path", (peer) => known(peer.path, String), "extra"],
  ], swarm.peers.filter((peer) => !peer.heard_of));
}

function charts() {
  const unit = shown && shown.daemon.bytes_per_token, log = $("log").checked;
  const plain = (value, step) => value.toFixed(step ? digitsFor(step) : 3);
  const short = (words) => (value, step) => (step ? (value ? words(value).replace(/\.0(?= )/, "") : "0") : words(value));
  chart("loss", points, [{ name: "training", color: "a", of: (p) => p.loss }, { name: "held-out", color: "b", dashed: true, of: (p) => p.eval_loss }], plain, { log });
  say("rising", rising(points));
  say("accuracy-title", unit ? "Bits per byte" : "Accuracy");
  const bits = (of) => (p) => bitsPerByte(of(p), unit);
  chart("accuracy", points, unit
    ? [{ name: "training", color: "a", of: bits((p) => p.loss) }, { name: "held-out", color: "b", dashed: true, of: bits((p) => p.eval_loss) }]
    : [{ name: "held-out", color: "b", of: (p) => p.accuracy }],
  unit ? plain : (value, step) => (step ? (100 * value).toFixed(digitsFor(100 * step)) + " %" : accuracy(value)));
  chart("time", points, [{ name: "train", color: "a", of: (p) => p.train_s }, { name: "exchange", color: "b", of: (p) => p.exchange_s },
    { name: "wait", color: "e", of: (p) => p.wait_s },
    { name: "other", color: "d", of: (p) => Math.max(p.seconds - p.train_s - p.exchange_s - p.wait_s, 0) }], short(time), { bars: true });
  chart("bytes", points, [{ name: "sent", color: "a", of: (p) => p.bytes_sent }, { name: "received", color: "b", of: (p) => p.bytes_received }], short(bytes), { bars: true });
}

// How far the goal is.
function goal(it) {
  const parts = [known(it.accuracy, (v) => `accuracy ${Number((100 * v).toFixed(2))} %`), known(it.loss, (v) => "loss " + v)].filter((part) => part !== "–");
  const when = it.reached ? "reached" : it.eta_s === null ? "time unknown" : "about " + time(it.eta_s);
  return ["Goal: " + parts.join(", "), when, "goal"];
}

// The accuracies of all daemons that say one, each on its own data.
function sites(it) {
  const one = (peer, value) => `${accuracy(value)} (${label(peer)})`;
  return [`Accuracy of ${count(it.daemons, "daemon")}`, `${accuracy(it.mean)} ± ${accuracy(it.deviation)}, from ${one(it.worst_peer, it.worst)} to ${one(it.best_peer, it.best)}`, "sites"];
}

// What contributions have cost of the privacy of this daemon's data.
function privacy(it) {
  const left = known(it.left, (left) => `, ${count(left, "contribution")} left`).replace("–", "");
  return ["Privacy, epsilon", it.epsilon === null ? "none: without noise" : fixed(2)(it.epsilon) + known(it.budget, (of) => ` of ${of}`).replace("–", "") + left, "privacy"];
}

function facts(swarm) {
  const me = swarm.daemon, totals = swarm.totals, measured = swarm.measured, found = me.evaluation || {};
  const linked = swarm.peers.filter((peer) => peer.linked).length, steps = swarm.control && swarm.control.inner_steps;
  const within = $("within"), part = me.phase === "train" && steps ? Math.min(me.round_steps / steps, 1) : 0;
  if (within.value !== part) within.value = part;
  list("facts", [
    ["Round", me.rounds ? `${me.round} of ${me.rounds}` : String(me.round)],
    ["Phase", me.phase],
    ["Steps of this round", me.round_steps ? String(me.round_steps) + (steps ? ` of ${steps}` : "") : "–"],
    ["Elapsed", known(me.wall_s, time)],
    ["Time left, at most", known(swarm.eta_s, time)],
    ...(swarm.goal ? [goal(swarm.goal)] : []),
    ["Daemons", `${totals.daemons}, ${linked} linked`],
    [`Steps/s of ${count(totals.counted, "daemon")}`, known(totals.inner_steps_per_s, fixed(1)), "steps"],
    ["Loss", known(me.loss, fixed(3))],
    ["Held-out loss", known(found.loss, fixed(3))],
    ...(me.bytes_per_token ? [["Perplexity", known(found.perplexity, fixed(2))], ["Bits per byte", known(found.bits_per_byte, fixed(3))]]
      : [["Accuracy", known(found.accuracy, accuracy)]]),
    ...Object.entries(found.named || {}).map(([name, value]) => [name, String(Number(value.toPrecision(4))), "score-" + name]),
    ...(totals.accuracy && totals.accuracy.best > totals.accuracy.worst ? [sites(totals.accuracy)] : []),
    ["Bytes an hour", known(measured && measured.bytes_per_hour, bytes)],
  ]);
  const cost = (of) => (swarm[of] ? `${time(swarm[of].round_s)}, ${bytes(swarm[of].bytes_sent)}` : "–");
  list("self", [
    ["Memory", known(me.rss_bytes, bytes)], ["Reachable", me.reachability || "–"],
    ["Saved round", known(me.saved_round, String)],
    ...(swarm.privacy && swarm.privacy.contributions !== undefined ? [privacy(swarm.privacy)] : []),
    ...(swarm.privacy && swarm.privacy.masked ? [["Contributions", `masked, in sums of ${swarm.privacy.masked} or more`]] : []),
    ["Round predicted", cost("predicted")], ["Round measured", cost("measured")],
    ["Addresses", me.addresses.join(" ") || "–"],
  ]);
}

function showSwarm(swarm) {
  shown = swarm;
  const me = swarm.daemon, verdict = swarm.verdict;
  const byId = new Map((local ? local.daemons : []).filter((daemon) => daemon.peer).map((daemon) => [daemon.peer, "node-" + daemon.node]));
  if (me.name) byId.set(me.peer, me.name);
  for (const peer of swarm.peers) if (peer.says && peer.says.name) byId.set(peer.peer, peer.says.name);
  const before = JSON.stringify([...names]);
  called([...byId]);
  if (JSON.stringify([...names]) !== before) showEvents();
  swarm.peers.sort((a, b) => label(a.peer).localeCompare(label(b.peer), undefined, { numeric: true }));
  say("run", me.run || "Murmurate");
  document.title = `${me.run}: round ${me.round}`;
  show("identity", document.createTextNode("daemon "), named(me.peer), document.createTextNode(
    `, ${[me.preset, me.task, me.parameters ? whole(me.parameters) + " parameters" : "", "version " + me.version].filter(Boolean).join(", ")}`));
  say("clock", utc(swarm.unix_s) + " UTC");
  if ($("clock").title !== here(swarm.unix_s)) $("clock").title = here(swarm.unix_s);
  const acts = !verdict.action.startsWith("Nothing"), action = withNames(verdict.action);
  say("verdict", withNames(verdict.sentences.join(" ")));
  say("action", action);
  // What is waited for changes in every round. Only what there is to do is spoken.
  if (isNews(action)) say("spoken", acts ? action : `The run goes on. ${action}`);
  const kind = "verdict" + (acts ? " acts" : swarm.waiting.length ? " waits" : "");
  if ($("verdicts").className !== kind) $("verdicts").className = kind;
  facts(swarm);
  peers(swarm);
  map(swarm, stateOf);
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(4 * SECOND) });
  if (!answer.ok) throw new Error(path + " " + answer.status);
  return answer.json();
}

// Says that no daemon answers: calmly where the run has ended in order.
function lost(is) {
  const ended = is && shown ? farewell(shown.daemon, shown.goal) : "";
  $("over").hidden = !ended;
  say("over", ended ? `${ended} The page shows how it was at ${utc(answered / SECOND)} UTC.` : "");
  $("lost").hidden = !is || Boolean(ended);
  $("lost-age").hidden = $("lost").hidden;
  if (is) say("lost-age", `What you see was true ${answered ? time((Date.now() - answered) / SECOND) : "some time"} ago.`);
}

// Lists the daemons of a local swarm, and takes another one if the chosen one does not run.
function choose() {
  const runs = (daemon) => daemon.state === "running";
  show("chosen", ...local.daemons.map((daemon) => {
    const again = daemon.restarts ? `, started ${daemon.restarts + 1} times` : "";
    return element("option", { value: daemon.node }, `node-${daemon.node} (${daemon.state}${again})`);
  }));
  const now = local.daemons.find((daemon) => daemon.node === chosen);
  const next = local.daemons.find(runs);
  if (now && runs(now)) {
    if (!source) follow();
  } else if (next) {
    say("switched", now ? `node-${chosen} is ${now.state}: node-${next.node} is asked now.` : "");
    take(next.node);
  }
  if ($("chosen").value !== String(chosen)) $("chosen").value = String(chosen);
}

// Asks another daemon from now on.
function take(node) {
  if (node === chosen && source) return;
  chosen = node;
  points = [];
  last = null;
  events = new Map();
  showEvents();
  follow();
}

function askLocal() {
  return ask("/api/v1/local").then((found) => {
    local = found;
    choose();
    const keys = ["until_accuracy", "until_loss"].filter((key) => local[key] !== null);
    return "?" + keys.map((key) => `${key}=${local[key]}`).join("&");
  });
}

async function look() {
  timer = null;
  try {
    const question = LOCAL ? await askLocal() : "", asked = chosen;
    const swarm = await ask(path("swarm" + question));
    // Another life of the daemon counts its rounds from memory that is empty again. A full list is asked for
    // again as a whole, because the daemon has thinned it.
    const newest = points.length ? points[points.length - 1].round : null;
    const restarted = shown && (shown.daemon.peer !== swarm.daemon.peer || (newest !== null && swarm.daemon.round < newest));
    if (restarted || points.length > POINTS_MAX) points = [];
    // The newest round may have been evaluated since it was read.
    const since = points.length > 1 ? points[points.length - 2].round : null;
    const [page, mine, slow] = await Promise.all([ask(path("history" + (since === null ? "" : "?since=" + since))),
      ask(path("why?what=contribution")), ask(path("why?what=slow"))]);
    // The user may have chosen another daemon meanwhile.
    if (asked !== chosen) return void look();
    points = points.filter((point) => since !== null && point.round <= since).concat(page.points);
    answered = Date.now();
    lost(false);
    showSwarm(swarm);
    say("mine", withNames(mine.sentences.concat(mine.action).join(" ")));
    say("slow", withNames(slow.sentences.concat(slow.action).join(" ")));
    charts();
  } catch (error) {
    // The daemons of a local swarm may be killed: another one is asked in a moment.
    lost(!LOCAL || Date.now() - answered > 3 * SECOND);
  }
  timer = setTimeout(look, document.hidden ? 5 * SECOND : SECOND);
}

// Looks at once, unless a look is under way, which begins again by itself.
function lookNow() {
  if (timer === null) return;
  clearTimeout(timer);
  look();
}

function showEvents() {
  show("events", ...newest(events, $("all-events").checked, OF_KIND_SHOWN).map((entry) => {
    const bad = BAD.has(entry.kind), item = element("li", { class: bad ? "bad" : "", "data-key": entry.seq });
    item.append(element("time", { title: here(entry.time) }, utc(entry.time)), ` round ${entry.round} ${bad ? "⚠ " : ""}${eventWords(entry)}`);
    return item;
  }));
}

// The browser connects again by itself, and tells the last event that it saw.
function follow() {
  if (source) source.close();
  const mine = new EventSource(path("events"));
  let drawing = null;
  source = mine;
  source.onmessage = (message) => {
    if (message.lastEventId === last) return;
    last = message.lastEventId;
    const entry = JSON.parse(message.data);
    keepByKind(events, entry);
    // The last words of a daemon may come after its last answer.
    if (entry.kind === "phase" && shown && entry.time >= shown.unix_s) Object.assign(shown.daemon, { phase: entry.phase, round: entry.round });
    // Events come in bursts.
    drawing = drawing || setTimeout(() => { drawing = null; showEvents(); }, SECOND / 4);
  };
  source.onerror = () => {
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && follow(), 3 * SECOND);
  };
}

for (const id of CHARTS) readable(id);
$("log").addEventListener("change", charts);
$("all-events").addEventListener("change", showEvents);
$("ids").addEventListener("change", () => document.body.classList.toggle("ids", $("ids").checked));
if (LOCAL) {
  $("switch").hidden = false;
  show("more", element("a", { href: "/api/v1/local" }, "API"));
  $("chosen").addEventListener("change", (event) => {
    say("switched", "");
    take(Number(event.target.value));
    lookNow();
  });
} else {
  follow();
}
look();
