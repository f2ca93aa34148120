// The page of a daemon, in three parts that are served as one script: figures.js makes words and numbers, and
// knows no document; chart.js draws; page.js asks the daemon and shows its answers.
"use strict";

// Numbers for people. What is unknown is a dash.
const known = (value, words) => (value === null || value === undefined || Number.isNaN(value) ? "–" : words(value));
const fixed = (digits) => (value) => value.toFixed(digits);
const percent = (value) => (100 * value).toFixed(value > 0 && value < 0.01 ? 2 : 0) + " %";
// An accuracy: near its end each hundredth counts.
const accuracy = (value) => (100 * value).toFixed(value > 0.99 && value < 1 ? 2 : 1) + " %";
const whole = (value) => value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
function time(s) {
  if (s < 0.0095) return (s * 1000).toFixed(1) + " ms";
  if (s < 0.95) return (s * 1000).toFixed(0) + " ms";
  if (s < 120) return s.toFixed(1) + " s";
  if (s < 7200) return (s / 60).toFixed(0) + " min";
  return s < 48 * 3600 ? (s / 3600).toFixed(1) + " h" : (s / 86400).toFixed(1) + " days";
}
function scaled(value, unit) {
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const step = steps.find(([size]) => value >= size);
  return step ? (value / step[0]).toFixed(1) + " " + step[1] + unit : value.toFixed(0) + " " + unit;
}
const bytes = (value) => scaled(value, "B");
const bits = (value) => scaled(8 * value, "bit/s");
const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
// The time of day of a Unix time, as `murmurate log` and `murmurate top` print it.
const utc = (unix) => new Date(unix * 1000).toISOString().slice(11, 19);
// The same with the date, on the clock of the one who looks.
const here = (unix) => new Date(unix * 1000).toLocaleString() + " here";

// Of language models, whose tokens have this many bytes of text.
const bitsPerByte = (loss, bytes) => (Number.isFinite(loss) ? loss / Math.LN2 / bytes : null);

// Round numbers from below `low` to above `high`, about `most` of them. The scale between them stands still
// while values move within it.
function ticks(low, high, most) {
  const span = high > low ? high - low : Math.abs(high) || 1;
  const size = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].find((factor) => factor * size * most >= span * (1 - 1e-9)) * size;
  const first = Math.floor(low / step + 1e-9), last = Math.max(Math.ceil(high / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}
// The same for a logarithmic scale: 1, 2 and 5 times powers of ten.
function logTicks(low, high) {
  const all = [];
  for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of [1, 2, 5]) all.push(Number((factor * 10 ** power).toPrecision(3)));
  }
  const first = all.findLastIndex((tick) => tick <= low), last = all.findIndex((tick) => tick >= high);
  return all.slice(first, Math.max(last, first + 1) + 1);
}
// Digits that tell numbers at this distance apart.
const digitsFor = (step) => Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 6);

// The points of one curve: of each stretch of rounds the lowest and the highest, so that no spike is lost, and
// of a curve with few points all. Stretches begin at multiples of a power of two, so that points stay while
// more come.
function thinned(points, of, most) {
  const some = points.filter((point) => Number.isFinite(of(point)));
  if (some.length <= most) return some;
  const last = some[some.length - 1], kept = new Set([last]);
  let size = 1, stretch = null, low = null, high = null;
  while ((last.round - some[0].round) / size > most / 2) size *= 2;
  const keep = () => low && kept.add(low).add(high);
  for (const point of some) {
    if (Math.floor(point.round / size) !== stretch) {
      keep();
      [stretch, low, high] = [Math.floor(point.round / size), point, point];
    }
    if (of(point) < of(low)) low = point;
    if (of(point) > of(high)) high = point;
  }
  keep();
  return some.filter((point) => kept.has(point));
}

// Says that the held-out loss rises while the training loss falls.
function rising(points) {
  const found = points.filter((point) => Number.isFinite(point.eval_loss) && Number.isFinite(point.loss));
  const best = found.reduce((a, b) => (a && a.eval_loss <= b.eval_loss ? a : b), null);
  const after = best ? found.slice(found.indexOf(best) + 1).slice(-3) : [];
  const mean = (of) => after.reduce((sum, point) => sum + of(point), 0) / after.length;
  const now = mean((point) => point.eval_loss);
  if (after.length < 3 || now < 1.05 * best.eval_loss || mean((point) => point.loss) >= best.loss) return "";
  return `The held-out loss has risen from ${best.eval_loss.toFixed(3)} after round ${best.round} to ${now.toFixed(3)}, `
    + "while the training loss fell: the model learns its data by heart. More data or an earlier end helps.";
}

// Names of daemons by id. Of two with one name, each has the beginning of its id behind it.
const short = (id) => (id || "").slice(0, 8);
let names = new Map();
function called(all) {
  const times = new Map();
  for (const [, name] of all) times.set(name, (times.get(name) || 0) + 1);
  names = new Map(all.map(([id, name]) => [id, times.get(name) > 1 ? `${name} ${short(id)}` : name]));
}
const label = (id) => names.get(id) || short(id);
// A sentence of the daemon, with names in place of ids.
function withNames(text) {
  const byStart = new Map([...names].map(([id, name]) => [short(id), name]));
  return text.replace(/\bdaemon ([0-9a-f]{8})\b/g, (all, start) => byStart.get(start) || all);
}

// Kinds of events that every round has, and those that say that something went wrong.
const STEPS = new Set(["phase", "trained", "group", "decided", "round_ended", "evaluated", "saved", "mixed", "waited", "seated"]);
const BAD = new Set(["peer_down", "suspected", "misbehaved", "lied", "work_failed", "voided", "alone", "absent", "waiting",
  "join_failed", "clock_off", "lost", "refused", "refused_by", "differs"]);
const OF_KIND_MAX = 256;

// Adds an event to those of its kind: what happens in every round pushes out nothing that happens seldom.
function keepByKind(kept, entry) {
  const alike = kept.get(entry.kind) || [];
  alike.push(entry);
  if (alike.length > OF_KIND_MAX) alike.shift();
  kept.set(entry.kind, alike);
}
// The newest of each kind, newest first.
function newest(kept, withSteps, ofKind) {
  const wanted = [...kept].filter(([kind]) => withSteps || !STEPS.has(kind)).flatMap(([, entries]) => entries.slice(-ofKind));
  return wanted.sort((a, b) => b.seq - a.seq);
}
function eventWords(entry) {
  const rest = Object.entries(entry).filter(([key]) => !["v", "seq", "time", "daemon", "round", "kind"].includes(key));
  const value = (v) => (typeof v === "string" && /^[0-9a-f]{64}$/.test(v) ? label(v) : Array.isArray(v) ? v.map(value).join(" ")
    : typeof v === "number" && !Number.isInteger(v) ? v.toPrecision(4) : String(v));
  return `${entry.kind.replaceAll("_", " ")} ${rest.map(([key, v]) => `${key}=${value(v)}`).join(" ")}`;
}

// What a daemon does, each with whether that is bad.
const STARTED = { killed: ["✕ killed", true], stopped: ["✕ stopped", true], gone: ["✕ gone", true], waiting: ["○ not started yet", false],
  starting: ["○ starts", false], finished: ["■ finished", false], interrupted: ["■ left", false] };
function state(peer, started) {
  if (started && STARTED[started.state]) return STARTED[started.state];
  if (peer.me) return ["● this one", false];
  if (peer.heard_of) return ["○ no link, heard of", false];
  if (peer.left) return ["○ left", false];
  if (!peer.linked) return ["✕ no link", true];
  if (peer.suspected) return ["⚠ silent", true];
  return peer.awaited ? ["▸ awaited", true] : ["● linked", false];
}

// How a run ended in order, in a sentence; nothing while it goes on or where it broke off.
function farewell(daemon, goal) {
  if (!["finished", "leaving", "left"].includes(daemon.phase)) return "";
  if (daemon.rounds && (daemon.round >= daemon.rounds || daemon.phase === "finished")) return `All ${daemon.rounds} rounds are complete.`;
  const of = daemon.rounds ? ` of ${daemon.rounds}` : "";
  return `The daemon left in order in round ${daemon.round}${of}${goal && goal.reached ? ": the goal is reached" : ""}.`;
}

// Decides when to speak: of what has been so for some looks, and not of figures that move.
const LOOKS_TO_SPEAK = 3;
function speaker() {
  const kind = (text) => text.replace(/[0-9]+/g, "#");
  let spoken = null, coming = null, looks = 0;
  return (text) => {
    looks = kind(text) === coming ? looks + 1 : 1;
    coming = kind(text);
    if (coming === spoken || looks < LOOKS_TO_SPEAK) return false;
    spoken = coming;
    return true;
  };
}
