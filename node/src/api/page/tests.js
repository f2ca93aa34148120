// Tries the page's script in Node.js, with as much of a document as it needs. `cargo test` runs it.
"use strict";
const assert = require("node:assert/strict"), fs = require("node:fs"), vm = require("node:vm");
const { test } = require("node:test");
const file = (name) => fs.readFileSync(`${__dirname}/${name}`, "utf8");

// Nodes that count how often one below a shown element is changed.
let shown = [], changes = 0;
function touch(node) {
  for (let at = node; at; at = at.parent) if (shown.includes(at)) return void (changes += 1);
}
class Node {
  constructor(name, type, data) {
    Object.assign(this, { nodeName: name, nodeType: type, data, parent: null, childNodes: [], kept: new Map(), heard: {}, dataset: {}, hidden: false });
    this.classList = { toggle: () => {} };
  }
  get firstChild() { return this.childNodes[0] || null; }
  get nextSibling() { return this.parent.childNodes[this.parent.childNodes.indexOf(this) + 1] || null; }
  get tHead() { return this.childNodes[0]; }
  get tBodies() { return [this.childNodes[1]]; }
  get className() { return this.getAttribute("class") || ""; }
  set className(value) { this.setAttribute("class", value); }
  get textContent() { return this.nodeType === 3 ? this.data : this.childNodes.map((child) => child.textContent).join(""); }
  set textContent(text) {
    touch(this);
    this.childNodes = [];
    if (text !== "") this.append(text);
  }
  append(...all) { all.forEach((child) => this.insertBefore(typeof child === "object" ? child : new Node("#text", 3, String(child)), null)); }
  insertBefore(child, before) {
    if (child.parent) child.remove();
    touch(this);
    child.parent = this;
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    this.childNodes.splice(at, 0, child);
  }
  remove() {
    touch(this);
    this.parent.childNodes.splice(this.parent.childNodes.indexOf(this), 1);
    this.parent = null;
  }
  getAttribute(name) { return this.kept.has(name) ? this.kept.get(name) : null; }
  hasAttribute(name) { return this.kept.has(name); }
  getAttributeNames() { return [...this.kept.keys()]; }
  setAttribute(name, value) { touch(this); this.kept.set(name, String(value)); }
  removeAttribute(name) { touch(this); this.kept.delete(name); }
  querySelectorAll(wanted) {
    const fits = (node) => node.nodeName === wanted || node.className.split(" ").includes(wanted.slice(1));
    return this.childNodes.flatMap((child) => [...(fits(child) ? [child] : []), ...child.querySelectorAll(wanted)]);
  }
  querySelector(wanted) { return this.querySelectorAll(wanted)[0] || null; }
  addEventListener(kind, act) { this.heard[kind] = act; }
  getBoundingClientRect() { return { left: 0 }; }
}

// A page whose daemon answers from `answers`; `call` runs a text in it.
function page(answers, local) {
  const ids = new Map(), html = file("index.html");
  for (const [, name, id] of html.matchAll(/<(\w+)[^>]* id="([\w-]+)"/g)) {
    const node = new Node(name, 1);
    node.hidden = new RegExp(`id="${id}"[^>]* hidden`).test(html);
    if (name === "table") node.append(new Node("thead", 1), new Node("tbody", 1));
    ids.set(id, node);
  }
  const sources = [], timers = [];
  const world = {
    document: {
      getElementById: (id) => { assert.ok(ids.has(id), `no element ${id}`); return ids.get(id); },
      createElement: (name) => new Node(name, 1), createElementNS: (_, name) => new Node(name, 1),
      createTextNode: (text) => new Node("#text", 3, text),
      body: Object.assign(new Node("body", 1), { dataset: local ? { swarm: "local" } : {} }),
    },
    fetch: async (path) => {
      const found = Object.entries(answers).find(([start]) => path.replace(/^\/daemons\/\d+/, "").startsWith(start));
      if (!found) throw new Error("no answer");
      return { ok: true, json: async () => structuredClone(typeof found[1] === "function" ? found[1](path) : found[1]) };
    },
    EventSource: class { constructor() { sources.push(this); } close() {} },
    AbortSignal: { timeout: () => null }, setTimeout: (act) => timers.push(act), clearTimeout: () => {}, console,
  };
  vm.createContext(world);
  vm.runInContext(file("figures.js") + file("chart.js") + file("page.js"), world);
  const settle = () => new Promise((done) => setImmediate(done));
  return {
    node: (id) => ids.get(id), text: (id) => ids.get(id).textContent,
    call: (text) => vm.runInContext(text, world),
    // The next look at the daemon, and what waits for it.
    look: async () => { await settle(); timers.splice(0).forEach((act) => act()); await settle(); },
    happens: (entry) => sources.at(-1).onmessage({ lastEventId: String(entry.seq), data: JSON.stringify(entry) }),
  };
}

const ID = (digit) => digit.repeat(64);
const point = (round, more) => ({ round, unix_s: 1000 + round, seconds: 1, train_s: 0.5, wait_s: 0.1, exchange_s: 0.2, loss: 2 / (round + 1),
  eval_loss: null, accuracy: null, bytes_sent: 1000, bytes_received: 2000, ...more });
const range = (rounds, of = () => ({})) => Array.from({ length: rounds }, (_, round) => point(round, of(round)));
function daemon(more) {
  return { peer: ID("a"), name: "gpu-1", run: "moby", preset: "diloco", version: "1.0.0", task: "image-classifier, cnn", parameters: 203530,
    round: 5, rounds: 30, phase: "train", wall_s: 60, round_steps: 0, bytes_per_token: null, strip: "ccc", share: 0.5, loss: 0.3,
    evaluation: { loss: 0.2, accuracy: 0.9712 }, addresses: [], reachability: "public", rss_bytes: 1e6, saved_round: 4, ...more };
}
function answers(more, peers, points) {
  return {
    "/api/v1/swarm": { daemon: daemon(more), unix_s: 5000, verdict: { sentences: ["Round 5 waits for daemon bbbbbbbb."], action: "Nothing to do." },
      peers: peers || [{ peer: ID("b"), linked: true, strip: "ccl", says: { name: "gpu-2", version: "1.0.0", phase: "train", loss: 0.4, accuracy: 0.96, age_s: 1 } }],
      totals: { daemons: 2, counted: 1, inner_steps_per_s: 3 }, waiting: [], control: { inner_steps: 500 }, goal: null, eta_s: 90 },
    "/api/v1/history": { points: points || range(10) },
    "/api/v1/why": { sentences: ["Counted."], action: "Nothing to do." },
  };
}

test("a curve keeps its rare points and its spikes, and its points stay while more come", () => {
  const { call } = page({});
  const thinned = (points, key) => call("thinned")(points, (p) => p[key], 400);
  const many = range(4000, (round) => ({ eval_loss: round % 6 === 5 ? 1 : null, loss: round === 1777 ? 9 : 1 / (round + 1) }));
  assert.equal(thinned(many.slice(0, 900), "eval_loss").length, 150, "every held-out point");
  const kept = thinned(many, "loss");
  assert.ok(kept.length <= 401 && kept.some((p) => p.loss === 9), "the spike");
  const more = new Set(thinned(many.concat(point(4000)), "loss").map((p) => p.round));
  assert.ok(kept.slice(0, -1).every((p) => more.has(p.round)), "one more round moves no other");
});

test("scales have round numbers and stand still", () => {
  const { call } = page({});
  const same = (made, expected) => assert.equal(JSON.stringify(made), JSON.stringify(expected));
  same(call("ticks(0.001, 1.884, 4)"), [0, 0.5, 1, 1.5, 2]);
  same(call("ticks(0.002, 1.9, 4)"), call("ticks(0.001, 1.884, 4)"));
  same(call("ticks(0.5, 0.5, 4)"), [0.4, 0.6]);
  same(call("logTicks(0.03, 1.9)"), [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]);
  same(call("[0.5, 0.02, 5].map(digitsFor)"), [1, 2, 0]);
});

test("numbers are said as people say them", () => {
  const { call } = page({});
  const said = ["time(1020.7 * 3600)", "time(5400)", "accuracy(0.9712)", "accuracy(0.99876)", "count(1, 'daemon')", "count(2, 'daemon')",
    "known(null, time)", "whole(203530)", "utc(0)", "bitsPerByte(Math.LN2 * 8, 4)"].map((text) => call(text));
  assert.deepEqual(said, ["42.5 days", "90 min", "97.1 %", "99.88 %", "1 daemon", "2 daemons", "–", "203,530", "00:00:00", 2]);
});

test("an overfitted model is named", () => {
  const { call } = page({});
  const rising = (of) => call("rising")(range(12, of));
  assert.match(rising((round) => ({ eval_loss: 0.097 + 0.005 * Math.max(round - 6, 0) })), /risen from 0.097 after round 0 to 0.117/);
  assert.equal(rising((round) => ({ eval_loss: 1 / (round + 1) })), "");
  assert.equal(rising((round) => ({ eval_loss: 0.1 + 0.1 * round, loss: 1 + round })), "");
});

test("a daemon has one name everywhere, and an id on demand", async () => {
  const it = page(answers());
  it.happens({ v: 1, seq: 1, time: 4000, round: 2, kind: "suspected", peer: ID("b") });
  await it.look();
  await it.look();
  assert.equal(it.text("verdict"), "Round 5 waits for gpu-2.");
  assert.match(it.text("events"), /01:06:40 round 2 ⚠ suspected peer=gpu-2/);
  const cell = it.node("peers").tBodies[0].childNodes[1].childNodes[0].firstChild;
  assert.equal(cell.getAttribute("title"), ID("b"));
  assert.equal(cell.querySelector(".id").textContent, " bbbbbbbb");
  it.call(`called([["${ID("b")}", "x"], ["${ID("c")}", "x"], ["${ID("d")}", "y"]])`);
  assert.equal(it.call(`[label("${ID("b")}"), label("${ID("d")}"), label("${ID("e")}")].join()`), "x bbbbbbbb,y,eeeeeeee");
});

test("sites and privacy have a row where there is something to say", async () => {
  const all = answers(), it = page(all);
  await it.look();
  assert.doesNotMatch(it.text("facts") + it.text("self"), /Privacy|Accuracy of/);
  const swarm = all["/api/v1/swarm"];
  swarm.totals.accuracy = { daemons: 2, mean: 0.9, deviation: 0.05, best: 0.95, best_peer: ID("a"), worst: 0.85, worst_peer: ID("b") };
  swarm.daemon.evaluation.named = { f1: 0.81237, "<b>": 2 };
  swarm.privacy = { epsilon: 1.234, delta: 1e-5, budget: 8, contributions: 3, left: 1, members: 1 };
  await it.look();
  assert.match(it.text("facts"), /Accuracy of 2 daemons90.0 % ± 5.0 %, from 85.0 % \(gpu-2\) to 95.0 % \(gpu-1\)/);
  assert.match(it.text("facts"), /f10.8124<b>2/);
  assert.match(it.text("self"), /Privacy, epsilon1.23 of 8, 1 contribution left/);
  Object.assign(swarm.privacy, { epsilon: null, budget: null, left: null });
  await it.look();
  assert.match(it.text("self"), /Privacy, epsilonnone: without noise/);
  swarm.privacy = { masked: 3 };
  await it.look();
  assert.match(it.text("self"), /Contributionsmasked, in sums of 3 or more/);
  assert.doesNotMatch(it.text("self"), /epsilon/);
  swarm.totals.accuracy.best = 0.85;
  await it.look();
  assert.doesNotMatch(it.text("facts"), /Accuracy of/, "all the same");
});

test("what stays the same is not touched", async () => {
  const all = answers(), it = page(all);
  await it.look();
  const row = it.node("peers").tBodies[0].childNodes[1], mark = it.node("map").querySelectorAll(".node")[0];
  shown = ["peers", "links", "map", "facts", "self", "loss", "time", "identity", "verdict", "events"].map((id) => it.node(id));
  changes = 0;
  await it.look();
  assert.equal(changes, 0, "an answer that is the same");
  shown = [];
  all["/api/v1/swarm"].peers[0].says.loss = 0.35;
  all["/api/v1/swarm"].peers.unshift({ peer: ID("0"), linked: true, strip: "" });
  await it.look();
  const rows = it.node("peers").tBodies[0].childNodes;
  assert.ok(rows.includes(row) && rows.length === 3 && row.textContent.includes("0.350"), "a row keeps its node");
  assert.ok(it.node("map").querySelectorAll(".node").includes(mark), "and a mark of the map");
});

test("the held-out loss of a round that was read before is taken", async () => {
  const all = answers({ round: 10 }, [], range(10)), it = page(all);
  all["/api/v1/history"] = (path) => {
    const since = /since=(\d+)/.exec(path);
    return { points: range(10, (round) => ({ eval_loss: since && round === 9 ? 0.25 : null })).filter((p) => !since || p.round > Number(since[1])) };
  };
  await it.look();
  await it.look();
  assert.match(it.text("loss"), /held-out 0.250/);
});

test("events are kept by kind", async () => {
  const it = page(answers());
  let seq = 0;
  const happens = (kind, more) => it.happens({ v: 1, seq: ++seq, time: 4000 + seq, round: seq, kind, ...more });
  happens("peer_down", { peer: ID("b") });
  happens("peer_left", { peer: ID("b") });
  for (let round = 0; round < 2000; round++) happens("voided", { fragment: 0 });
  for (let round = 0; round < 2000; round++) happens("phase", { phase: "train" });
  await it.look();
  assert.equal(it.node("events").childNodes.length, 42);
  assert.match(it.text("events"), /⚠ peer down peer=gpu-2/);
  assert.match(it.text("events"), /round 2 peer left/, "one that left is no trouble");
  it.node("all-events").checked = true;
  it.node("all-events").heard.change();
  assert.match(it.text("events"), /phase phase=train/, "steps from before show too");
});

test("only what there is to do is spoken, and not in every second", async () => {
  const all = answers(), it = page(all), spoken = new Set();
  for (let second = 0; second < 30; second++) {
    all["/api/v1/swarm"].verdict.sentences = [`Round ${second} waits.`];
    await it.look();
    spoken.add(it.text("spoken"));
  }
  assert.deepEqual([...spoken], ["", "The run goes on. Nothing to do."]);
  all["/api/v1/swarm"].verdict.action = "Look at the machine of daemon bbbbbbbb: silent for 3.1 s.";
  await it.look();
  all["/api/v1/swarm"].verdict.action = "Nothing to do.";
  for (let second = 0; second < 4; second++) await it.look();
  assert.equal(it.text("spoken"), "The run goes on. Nothing to do.", "what passes is not spoken");
});

test("an end in order looks like one, and a lost connection does not", async () => {
  for (const [kind, more, expected] of [["left", { round: 228, rounds: 600 }, /left in order in round 229 of 600/], ["left", { round: 30 }, /All 30 rounds are complete/],
    ["train", {}, null]]) {
    const all = answers(more), it = page(all);
    await it.look();
    it.happens({ v: 1, seq: 9, time: 5001, round: (more.round || 4) + (more.rounds ? 1 : 0), kind: "phase", phase: kind });
    for (const key of Object.keys(all)) delete all[key];
    await it.look();
    assert.equal(it.node("lost").hidden, Boolean(expected), kind);
    assert.equal(it.node("over").hidden, !expected);
    if (expected) assert.match(it.text("over"), expected);
    const alarm = it.text("lost");
    await it.look();
    assert.equal(it.text("lost"), alarm, "an alarm does not repeat itself");
  }
});

test("a round shows its progress, and a language model its figures", async () => {
  const it = page(answers({ round_steps: 140, bytes_per_token: 4, evaluation: { loss: 2.7726, perplexity: 16, bits_per_byte: 1 } }, undefined,
    range(10, (round) => ({ eval_loss: round % 2 ? 2.7726 : null }))));
  await it.look();
  assert.match(it.text("facts"), /Steps of this round140 of 500/);
  assert.equal(it.node("within").value, 0.28);
  assert.match(it.text("facts"), /Perplexity16.00Bits per byte1.000/);
  assert.equal(it.text("accuracy-title"), "Bits per byte");
  assert.match(it.text("accuracy"), /held-out 1.000/);
  assert.match(it.text("facts"), /Steps\/s of 1 daemon3.0/);
  assert.match(it.text("identity"), /image-classifier, cnn, 203,530 parameters/);
});

test("a pointer and the arrow keys read a chart", async () => {
  const it = page(answers());
  await it.look();
  const place = it.node("loss"), read = () => place.querySelector("output").textContent;
  place.heard.pointermove({ clientX: 58 });
  assert.match(read(), /^round 0, 00:16:40 UTC: training 2.000, held-out –$/);
  place.heard.keydown({ key: "ArrowRight", preventDefault: () => {} });
  assert.match(read(), /^round 1,/);
  await it.look();
  assert.match(read(), /^round 1,/, "it stays through an answer");
  place.heard.pointerleave();
  assert.equal(read(), "");
  it.node("log").checked = true;
  it.node("log").heard.change();
  assert.match(place.textContent, /^0\.20\.512/, "a logarithmic scale");
});

test("forty daemons have a map that can be read", async () => {
  const peers = Array.from({ length: 40 }, (_, at) => ({ peer: ID("b").slice(2) + (10 + at), linked: at !== 7, awaited: at === 9, strip: "c" }));
  const it = page(answers({}, peers));
  await it.look();
  assert.equal(it.node("map").querySelectorAll("text").length, 3, "the lost one, the awaited one and this one");
  assert.equal(it.node("map").querySelectorAll("title").length, 40);
  assert.equal(it.text("map-note"), "Linked with 39 of 40 known peers. Names are in the tooltips.");
});

test("the page of a local swarm goes on with a daemon that runs", async () => {
  const all = answers(), daemons = [{ node: 0, state: "killed", peer: ID("a"), restarts: 0 }, { node: 1, state: "running", peer: ID("b"), restarts: 0 }];
  const it = page({ "/api/v1/local": { daemons, until_accuracy: null, until_loss: null }, ...all }, true);
  await it.look();
  assert.match(it.text("switched"), /node-0 is killed: node-1 is asked now/);
  assert.equal(it.call("state({ left: true }, { state: 'running' })[0]"), "○ left");
  assert.equal(it.call("state({}, { state: 'interrupted' })[0]"), "■ left");
});

test("words and lines stand out from what is behind them", () => {
  const css = file("page.css");
  const light = (hex) => {
    const parts = hex.match(/\w\w/g).map((two) => parseInt(two, 16) / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  for (const block of css.match(/:root \{[^}]*\}/g)) {
    const colour = Object.fromEntries([...block.matchAll(/--([\w-]+): #(\w{6})/g)].map(([, name, hex]) => [name, hex]));
    for (const name of ["text", "dim", "a", "b", "c", "d", "e", "bad"]) {
      const [one, other] = [light(colour[name]), light(colour.card)].sort((a, b) => b - a);
      const contrast = (one + 0.05) / (other + 0.05);
      assert.ok(contrast >= 4.5, `${name}: ${contrast.toFixed(2)}`);
    }
  }
});
