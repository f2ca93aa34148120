// The page of a daemon. It asks /api/v1 of the same daemon once a second and follows its events.
// Under `murmurate local` one page shows all daemons: it asks the process that started them, which passes
// questions below /daemons/N on to daemon N.
// Everything from the network is set as text, never as markup.
"use strict";

const SECOND = 1000, EVENTS_MAX = 300, POINTS_MAX = 4096, CHART = { w: 560, h: 180, left: 52, bottom: 20, top: 6 };
const $ = (id) => document.getElementById(id);
const short = (id) => (id || "").slice(0, 8);
const SVG = "http://www.w3.org/2000/svg";
const STRIP = { c: "█", p: "▄", l: "▁", k: "↷", a: "·", n: "×", m: "~", "?": "?" };
const STEPS = new Set(["phase", "trained", "group", "decided", "round_ended", "evaluated", "saved", "mixed", "waited", "seated"]);
const BAD = new Set(["peer_down", "suspected", "misbehaved", "lied", "work_failed", "voided", "alone", "absent", "waiting",
  "join_failed", "clock_off", "lost", "refused", "refused_by", "differs"]);

const LOCAL = document.body.dataset.swarm === "local";
// Of a local swarm: what its process says, the daemon that is asked, and its events.
let local = null, chosen = 0, source = null, timer = null;
let points = [], shown = null, answered = 0, last = null;
const names = new Map();

const path = (rest) => (LOCAL ? `/daemons/${chosen}` : "") + "/api/v1/" + rest;

function element(name, attributes, text) {
  const it = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) it.setAttribute(key, value);
  if (text !== undefined) it.textContent = text;
  return it;
}
function drawn(name, attributes, text) {
  const it = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) it.setAttribute(key, value);
  if (text !== undefined) it.textContent = text;
  return it;
}

// Numbers for people. What is unknown is a dash.
const known = (value, words) => (value === null || value === undefined || Number.isNaN(value) ? "–" : words(value));
const fixed = (digits) => (value) => value.toFixed(digits);
const percent = (value) => (100 * value).toFixed(value > 0 && value < 0.01 ? 2 : 0) + " %";
function time(s) {
  if (s < 0.0095) return (s * 1000).toFixed(1) + " ms";
  if (s < 0.95) return (s * 1000).toFixed(0) + " ms";
  if (s < 120) return s.toFixed(1) + " s";
  return s < 7200 ? (s / 60).toFixed(0) + " min" : (s / 3600).toFixed(1) + " h";
}
function scaled(value, unit) {
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const step = steps.find(([size]) => value >= size);
  return step ? (value / step[0]).toFixed(1) + " " + step[1] + unit : value.toFixed(0) + " " + unit;
}
const bytes = (value) => scaled(value, "B");
const bits = (value) => scaled(8 * value, "bit/s");

function list(id, pairs) {
  const rows = pairs.map(([name, value]) => {
    const row = element("div");
    row.append(element("dt", {}, name), element("dd", {}, value));
    return row;
  });
  $(id).replaceChildren(...rows);
}

function strip(letters) {
  const whole = element("span", { class: "strip" });
  const count = (letter) => [...letters].filter((one) => one === letter).length;
  whole.setAttribute("role", "img");
  whole.setAttribute("aria-label", `${count("c")} of ${letters.length} rounds counted`);
  for (const letter of letters) whole.append(element("span", { class: /[a-z]/.test(letter) ? letter : "u" }, STRIP[letter] || "?"));
  return whole;
}

// A daemon's name beside the beginning of its id. A name is isolated, because it may run from right to left.
function named(id, more) {
  const whole = element("span"), name = names.get(id);
  if (name) whole.append(element("bdi", {}, name), " ");
  whole.append(element("span", { class: name ? "note" : "" }, short(id)), more || "");
  return whole;
}
const label = (id) => names.get(id) || short(id);

// What the process that started a local swarm says of a daemon.
const GONE = { killed: "✕ killed", stopped: "✕ stopped", gone: "✕ gone", waiting: "○ not started yet", starting: "○ starts", finished: "■ finished" };
const started = (id) => local && local.daemons.find((daemon) => daemon.peer === id);

function state(peer) {
  const known = started(peer.peer);
  if (known && GONE[known.state]) return [[GONE[known.state], !["waiting", "starting", "finished"].includes(known.state)]];
  if (peer.heard_of) return [["○ no link, heard of", false]];
  const words = [];
  if (!peer.linked) words.push(["✕ no link", true]);
  else if (peer.suspected) words.push(["⚠ silent", true]);
  else words.push(["● linked", false]);
  if (peer.awaited) words.push(["▸ awaited", true]);
  return words;
}

// A row of cells, each with the name of its column for narrow screens.
function cells(row, pairs) {
  for (const [name, content, kind] of pairs) {
    const it = element("td", { "data-name": name, class: kind || "" });
    it.append(content);
    row.append(it);
  }
  return row;
}

// All daemons, this one first. What a daemon says of itself is grey once it is old.
function peers(swarm) {
  const me = swarm.daemon;
  const own = {
    peer: me.peer, me: true, linked: true, round: me.round, lag: 0, strip: me.strip, share: me.share,
    says: { phase: me.phase, inner_steps_per_s: me.inner_steps_per_s, loss: me.loss, version: me.version,
      accuracy: me.evaluation && me.evaluation.accuracy },
  };
  const seen = new Set([own, ...swarm.peers].map((peer) => peer.peer));
  const unseen = (local ? local.daemons : []).filter((daemon) => !seen.has(daemon.peer));
  const others = unseen.map((daemon) => ({ peer: daemon.peer || "", node: daemon.node, linked: false, strip: "" }));
  const rows = [own, ...swarm.peers, ...others].map((peer) => {
    const says = peer.says || {}, old = says.stale ? "stale" : "";
    const row = element("tr", { class: peer.linked ? "" : "gone", "data-peer": peer.peer });
    const states = peer.me ? [["● this one", false]] : peer.node !== undefined && !peer.peer ? [[GONE[local.daemons[peer.node].state] || "○", false]] : state(peer);
    const words = element("span");
    states.forEach(([text, bad]) => words.append(element("b", { class: bad ? "bad" : "" }, text + " ")));
    const round = known(peer.round ?? says.round, (r) => r);
    const lag = peer.lag > 0 ? ` (${peer.lag} behind)` : peer.lag < 0 ? ` (${-peer.lag} ahead)` : "";
    const steps = known(says.inner_steps_per_s, fixed(1));
    const all = swarm.totals.inner_steps_per_s;
    const part = all && says.inner_steps_per_s && !says.stale ? ` (${percent(says.inner_steps_per_s / all)})` : "";
    return cells(row, [
      ["Daemon", peer.peer ? named(peer.peer, peer.me ? " (this)" : "") : `node-${peer.node}`],
      ["State", words, "state"],
      ["Round", round + lag, peer.round === null || peer.round === undefined ? old : ""],
      ["Share", known(peer.share, percent)],
      ["Last 32 rounds", strip(peer.strip || "")],
      ["Phase", known(says.phase, String), old],
      ["Steps/s", steps + part, old],
      ["Loss", known(says.loss, fixed(3)), old],
      ["Accuracy", known(says.accuracy, percent), old],
      ["Version", known(says.version, String), old],
      ["Said", peer.me ? "now" : says.stale ? `stale, ${time(says.age_s)} ago` : known(says.age_s, (s) => time(s) + " ago"), old],
    ]);
  });
  $("peers").tBodies[0].replaceChildren(...rows);
  const links = swarm.peers.filter((peer) => !peer.heard_of).map((peer) => cells(element("tr", { class: peer.linked ? "" : "gone" }), [
    ["Daemon", named(peer.peer)],
    ["Waited for it", known(peer.waited_s, time)],
    ["Round trip", known(peer.rtt_s, time)],
    ["Bytes lost", known(peer.loss, percent)],
    ["Rate", known(peer.bytes_per_s, bits)],
    ["Path", known(peer.path, String)],
  ]));
  $("links").tBodies[0].replaceChildren(...links);
}

// The links of this daemon: itself in the middle, the peers around it.
function map(swarm) {
  const svg = drawn("svg", { viewBox: "0 0 560 250" });
  const all = swarm.peers.filter((peer) => !peer.heard_of).slice(0, 64), middle = [280, 116];
  all.forEach((peer, index) => {
    const angle = (2 * Math.PI * index) / Math.max(all.length, 1) - Math.PI / 2;
    const [x, y] = [middle[0] + 200 * Math.cos(angle), middle[1] + 88 * Math.sin(angle)];
    const link = !peer.linked ? "down" : peer.awaited || peer.suspected ? "slow" : "up";
    svg.append(drawn("line", { x1: middle[0], y1: middle[1], x2: x, y2: y, class: link }));
    const node = drawn("circle", { cx: x, cy: y, r: 9, class: "node" + (peer.linked ? "" : " gone") + (peer.awaited ? " awaited" : "") });
    const words = state(peer).map(([text]) => text).join(", ");
    node.append(drawn("title", {}, `${label(peer.peer)}: ${words}`));
    const below = y + (y < middle[1] ? -14 : 22);
    svg.append(node, drawn("text", { x, y: below, "text-anchor": "middle" },
      label(peer.peer) + (peer.linked ? known(peer.rtt_s, (rtt) => " " + time(rtt)) : " ✕")));
  });
  svg.append(drawn("circle", { cx: middle[0], cy: middle[1], r: 11, class: "node me" }),
    drawn("text", { x: middle[0], y: middle[1] + 26, "text-anchor": "middle" }, label(swarm.daemon.peer) + " (this)"));
  $("map").replaceChildren(svg);
  const linked = all.filter((peer) => peer.linked).length;
  $("map").setAttribute("aria-label", `Linked with ${linked} of ${all.length} known peers`);
}

// Points that fit the width: the last of each column.
function thinned(of, most) {
  const step = Math.ceil(of.length / most);
  return of.filter((_, index) => (of.length - 1 - index) % step === 0);
}

// Curves over rounds; `stacked` ones are bars on top of each other.
function chart(id, curves, words, stacked) {
  const present = points.filter((point) => curves.some((curve) => curve.of(point) !== null && curve.of(point) !== undefined));
  if (present.length === 0) {
    $(id).replaceChildren(element("p", { class: "empty" }, "Nothing measured yet."));
    return;
  }
  const some = stacked ? present.slice(-120) : thinned(present, 400);
  const total = (point) => curves.reduce((sum, curve) => sum + (curve.of(point) || 0), 0);
  const values = stacked ? some.map(total) : some.flatMap((p) => curves.map((c) => c.of(p))).filter((v) => Number.isFinite(v));
  const high = Math.max(...values, stacked ? 1e-9 : -Infinity), low = stacked ? 0 : Math.min(...values);
  const span = high - low || Math.abs(high) || 1;
  const first = some[0].round, end = Math.max(some[some.length - 1].round, first + 1);
  const { w, h, left, bottom, top } = CHART;
  const x = (round) => left + ((w - left - 8) * (round - first)) / (end - first);
  const y = (value) => h - bottom - ((h - bottom - top) * (value - low)) / span;
  const svg = drawn("svg", { viewBox: `0 0 ${w} ${h}`, role: "img" });
  const newestOf = (curve) => known(curve.of(present.findLast((p) => Number.isFinite(curve.of(p))) || {}), words);
  const newest = curves.map((c) => `${c.name} ${newestOf(c)}`).join(", ");
  svg.setAttribute("aria-label", `Rounds ${first} to ${end}; last: ${newest}`);
  for (const share of [0, 0.5, 1]) {
    const value = low + share * span;
    svg.append(drawn("line", { x1: left, x2: w - 8, y1: y(value), y2: y(value), class: "grid" }),
      drawn("text", { x: left - 4, y: y(value) + 4, "text-anchor": "end", class: "axis" }, words(value)));
  }
  for (const round of [first, end]) {
    svg.append(drawn("text", { x: x(round), y: h - 4, "text-anchor": round === first ? "start" : "end", class: "axis" }, "round " + round));
  }
  if (stacked) {
    const width = Math.max(1, (w - left - 8) / some.length - 1);
    some.forEach((point, index) => {
      let base = 0;
      const at = left + (index * (w - left - 8)) / some.length;
      curves.forEach((curve) => {
        const value = Math.max(curve.of(point) || 0, 0);
        const bar = drawn("rect", { x: at, y: y(base + value), width, height: Math.max(y(base) - y(base + value), 0), class: "f" + curve.color });
        bar.append(drawn("title", {}, `round ${point.round}: ${curve.name} ${words(value)}`));
        svg.append(bar);
        base += value;
      });
    });
  } else {
    curves.forEach((curve) => {
      const line = some.filter((p) => Number.isFinite(curve.of(p))).map((p) => `${x(p.round).toFixed(1)},${y(curve.of(p)).toFixed(1)}`);
      svg.append(drawn("polyline", { points: line.join(" "), class: `curve s${curve.color}${curve.dashed ? " dashed" : ""}` }));
      if (line.length === 1) svg.append(drawn("circle", { cx: line[0].split(",")[0], cy: line[0].split(",")[1], r: 3, class: "f" + curve.color }));
    });
  }
  const legend = element("p", { class: "legend" });
  curves.forEach((c) => legend.append(element("b", { class: "l" + c.color }, c.name), ` ${newestOf(c)}  `));
  $(id).replaceChildren(svg, legend);
}

function charts() {
  chart("loss", [{ name: "training", color: "a", of: (p) => p.loss }, { name: "held-out", color: "b", dashed: true, of: (p) => p.eval_loss }], fixed(3));
  chart("accuracy", [{ name: "held-out", color: "a", of: (p) => p.accuracy }], percent);
  chart("time", [{ name: "train", color: "a", of: (p) => p.train_s }, { name: "exchange", color: "b", of: (p) => p.exchange_s },
    { name: "wait", color: "c", of: (p) => p.wait_s },
    { name: "other", color: "d", of: (p) => Math.max(p.seconds - p.train_s - p.exchange_s - p.wait_s, 0) }], time, true);
  chart("bytes", [{ name: "sent", color: "a", of: (p) => p.bytes_sent }, { name: "received", color: "b", of: (p) => p.bytes_received }], bytes, true);
}

// How far the goal is.
function goal(swarm) {
  const it = swarm.goal;
  if (!it) return null;
  const parts = [known(it.accuracy, (v) => `accuracy ${Number((100 * v).toFixed(2))} %`), known(it.loss, (v) => "loss " + v)].filter((part) => part !== "–");
  const when = it.reached ? "reached" : it.eta_s === null ? "time unknown" : "about " + time(it.eta_s);
  return ["Goal: " + parts.join(", "), when];
}

function show(swarm) {
  shown = swarm;
  names.clear();
  for (const daemon of local ? local.daemons : []) if (daemon.peer) names.set(daemon.peer, "node-" + daemon.node);
  if (swarm.daemon.name) names.set(swarm.daemon.peer, swarm.daemon.name);
  for (const peer of swarm.peers) if (peer.says && peer.says.name) names.set(peer.peer, peer.says.name);
  const me = swarm.daemon, verdict = swarm.verdict;
  swarm.peers.sort((a, b) => label(a.peer).localeCompare(label(b.peer), undefined, { numeric: true }));
  $("run").textContent = me.run || "Murmurate";
  document.title = `${me.run}: round ${me.round}`;
  $("identity").replaceChildren("daemon ", named(me.peer), `, ${me.preset}, version ${me.version}`);
  $("verdict").textContent = verdict.sentences.join(" ");
  $("action").textContent = verdict.action;
  const acts = !verdict.action.startsWith("Nothing");
  document.querySelector(".verdict").className = "verdict" + (acts ? " acts" : swarm.waiting.length ? " waits" : "");
  const measured = swarm.measured, linked = swarm.peers.filter((peer) => peer.linked).length, totals = swarm.totals;
  list("facts", [
    ["Round", me.rounds ? `${me.round} of ${me.rounds}` : String(me.round)],
    ["Phase", me.phase],
    ["Time left, at most", known(swarm.eta_s, time)],
    ...[goal(swarm)].filter(Boolean),
    ["Daemons here", `${totals.daemons}, linked with ${linked}`],
    [`Steps/s of ${totals.counted} daemons`, known(totals.inner_steps_per_s, fixed(1))],
    ["Loss", known(me.loss, fixed(3))],
    ["Accuracy", known(me.evaluation && me.evaluation.accuracy, percent)],
    ["Bytes an hour", known(measured && measured.bytes_per_hour, bytes)],
  ]);
  const cost = (of) => (swarm[of] ? `${time(swarm[of].round_s)}, ${bytes(swarm[of].bytes_sent)}` : "–");
  list("self", [
    ["Memory", known(me.rss_bytes, bytes)], ["Reachable", me.reachability || "–"],
    ["Saved round", known(me.saved_round, String)],
    ["Round predicted", cost("predicted")], ["Round measured", cost("measured")],
    ["Addresses", me.addresses.join(" ") || "–"],
  ]);
  peers(swarm);
  map(swarm);
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(4 * SECOND) });
  if (!answer.ok) throw new Error(path + " " + answer.status);
  return answer.json();
}

function lost(is) {
  $("lost").hidden = !is;
  if (is) $("lost-age").textContent = answered ? time((Date.now() - answered) / 1000) : "some time";
}

// Lists the daemons of a local swarm, and takes another one if the chosen one does not run.
function choose() {
  const list = $("chosen"), runs = (daemon) => daemon.state === "running";
  const options = local.daemons.map((daemon) => {
    const again = daemon.restarts ? `, started ${daemon.restarts + 1} times` : "";
    return element("option", { value: daemon.node }, `node-${daemon.node} (${daemon.state}${again})`);
  });
  if (options.some((option, at) => !list.options[at] || list.options[at].textContent !== option.textContent)) list.replaceChildren(...options);
  const now = local.daemons.find((daemon) => daemon.node === chosen);
  const next = local.daemons.find(runs);
  if (now && runs(now)) {
    if (!source) follow();
  } else if (next) {
    $("switched").textContent = now ? `node-${chosen} is ${now.state}: node-${next.node} is asked now.` : "";
    take(next.node);
  }
  list.value = String(chosen);
}

// Asks another daemon from now on.
function take(node) {
  if (node === chosen && source) return;
  chosen = node;
  points = [];
  last = null;
  $("events").replaceChildren();
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
    // Another life of the daemon counts its rounds from memory that is empty again.
    const newest = points.length ? points[points.length - 1].round : null;
    const restarted = shown && (shown.daemon.peer !== swarm.daemon.peer || (newest !== null && swarm.daemon.round < newest));
    if (restarted) points = [];
    const since = points.length ? "?since=" + points[points.length - 1].round : "";
    const [page, mine, slow] = await Promise.all([ask(path("history" + since)), ask(path("why?what=contribution")), ask(path("why?what=slow"))]);
    // The user may have chosen another daemon meanwhile.
    if (asked !== chosen) return void look();
    points = points.concat(page.points).slice(-POINTS_MAX);
    answered = Date.now();
    lost(false);
    show(swarm);
    $("mine").textContent = mine.sentences.concat(mine.action).join(" ");
    $("slow").textContent = slow.sentences.concat(slow.action).join(" ");
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

function words(entry) {
  const rest = Object.entries(entry).filter(([key]) => !["v", "seq", "time", "daemon", "round", "kind"].includes(key));
  const value = (v) => (typeof v === "string" && /^[0-9a-f]{64}$/.test(v) ? short(v) : Array.isArray(v) ? v.map(value).join(" ")
    : typeof v === "number" && !Number.isInteger(v) ? v.toPrecision(4) : String(v));
  return `${entry.kind.replaceAll("_", " ")} ${rest.map(([key, v]) => `${key}=${value(v)}`).join(" ")}`;
}

function happened(entry) {
  if (STEPS.has(entry.kind) && !$("all-events").checked) return;
  const at = new Date(entry.time * 1000).toLocaleTimeString();
  const item = element("li", { class: BAD.has(entry.kind) ? "bad" : "" }, `${at} round ${entry.round} ${BAD.has(entry.kind) ? "⚠ " : ""}${words(entry)}`);
  $("events").prepend(item);
  while ($("events").childElementCount > EVENTS_MAX) $("events").lastElementChild.remove();
}

// The browser connects again by itself, and tells the last event that it saw.
function follow() {
  if (source) source.close();
  const mine = new EventSource(path("events"));
  source = mine;
  source.onmessage = (message) => {
    if (message.lastEventId === last) return;
    last = message.lastEventId;
    happened(JSON.parse(message.data));
  };
  source.onerror = () => {
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && follow(), 3 * SECOND);
  };
}

if (LOCAL) {
  $("switch").hidden = false;
  $("more").replaceChildren(element("a", { href: "/api/v1/local" }, "API"));
  $("chosen").addEventListener("change", (event) => {
    $("switched").textContent = "";
    take(Number(event.target.value));
    lookNow();
  });
} else {
  follow();
}
look();
