// Elements. A tree is built anew for each answer, and what is shown is made equal to it: a node that stays the
// same is not touched, so a selection and a tooltip live on.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function made(it, attributes, text) {
  for (const [key, value] of Object.entries(attributes || {})) it.setAttribute(key, value);
  if (text !== undefined) it.textContent = text;
  return it;
}
const element = (name, attributes, text) => made(document.createElement(name), attributes, text);
const drawn = (name, attributes, text) => made(document.createElementNS(SVG, name), attributes, text);

const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute("data-key") : null);

function morph(old, fresh) {
  if (old.nodeType !== 1) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const name of old.getAttributeNames()) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const name of fresh.getAttributeNames()) {
    const value = fresh.getAttribute(name);
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  fill(old, [...fresh.childNodes]);
}

// Makes the children of a node equal to fresh ones. What has a key is found by it.
function fill(parent, fresh) {
  const keyed = new Map(), wanted = new Set(fresh.map(keyOf));
  for (const child of [...parent.childNodes]) {
    const key = keyOf(child);
    if (key && !wanted.has(key)) child.remove();
    else if (key) keyed.set(key, child);
  }
  let at = parent.firstChild;
  for (const child of fresh) {
    const key = keyOf(child), old = key ? keyed.get(key) : at && !keyOf(at) ? at : null;
    if (!old || old.nodeName !== child.nodeName) {
      parent.insertBefore(child, at);
      continue;
    }
    if (old === at) at = at.nextSibling;
    else parent.insertBefore(old, at);
    morph(old, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
const show = (id, ...nodes) => fill($(id), nodes);
function say(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

// Charts have the width of their place, so that their words keep their size.
const CHART = { h: 180, left: 58, right: 8, bottom: 20, top: 8 };
const BARS_MAX = 120, POINTS_SHOWN = 400;
const widthOf = (id) => Math.max($(id).clientWidth || 560, 260);
// Where the pointer or the keys are: a chart, and a round of it.
let hover = null;
// For each chart, how to find the round at a place, and the words for a round.
const readings = new Map();

// A scale from values to rows.
function scale(values, log) {
  const low = Math.min(...values), high = Math.max(...values);
  const marks = log ? logTicks(low, high) : ticks(low, high, 4);
  const of = log ? Math.log10 : (value) => value;
  const [first, last] = [of(marks[0]), of(marks[marks.length - 1])];
  const y = (value) => CHART.h - CHART.bottom - ((CHART.h - CHART.bottom - CHART.top) * (of(value) - first)) / (last - first);
  return { marks: log ? marks.filter((_, at) => marks.length < 8 || at % Math.ceil(marks.length / 6) === 0) : marks, y };
}

// Curves over rounds; `bars` are stacked. `words` takes a value, and for a scale the distance of its marks.
function chart(id, points, curves, words, { bars, log } = {}) {
  const has = (point) => curves.some((curve) => Number.isFinite(curve.of(point)) && (!log || curve.of(point) > 0));
  const present = points.filter(has);
  if (present.length === 0) {
    readings.delete(id);
    return show(id, element("p", { class: "empty" }, "Nothing measured yet."));
  }
  const sets = bars ? [present.slice(-BARS_MAX)] : curves.map((curve) => thinned(present, (p) => (log && curve.of(p) <= 0 ? NaN : curve.of(p)), POINTS_SHOWN));
  const total = (point) => curves.reduce((sum, curve) => sum + Math.max(curve.of(point) || 0, 0), 0);
  const values = bars ? [0, 1e-9, ...sets[0].map(total)] : sets.flatMap((set, at) => set.map(curves[at].of));
  const { marks, y } = scale(values, log);
  const first = bars ? sets[0][0].round : present[0].round, w = widthOf(id), right = w - CHART.right;
  const newestRound = present[present.length - 1].round;
  const end = bars ? Math.max(first + BARS_MAX, newestRound + 1) : ticks(first, Math.max(newestRound, first + 1), 8).pop();
  const x = (round) => CHART.left + ((right - CHART.left) * (round - first)) / (end - first);
  const svg = drawn("svg", { viewBox: `0 0 ${w} ${CHART.h}`, role: "img" });
  const newestOf = (curve) => known(curve.of(present.findLast((p) => Number.isFinite(curve.of(p))) || {}), words);
  svg.setAttribute("aria-label", `Rounds ${first} to ${newestRound}; last: ${curves.map((c) => `${c.name} ${newestOf(c)}`).join(", ")}`);
  for (const mark of marks) {
    const row = y(mark).toFixed(1), text = words(mark, log ? mark : marks[1] - marks[0]);
    svg.append(drawn("line", { x1: CHART.left, x2: right, y1: row, y2: row, class: "grid" }),
      drawn("text", { x: CHART.left - 4, y: Number(row) + 4, "text-anchor": "end", class: "axis" }, text));
  }
  for (const [round, anchor] of [[first, "start"], [end, "end"]]) {
    svg.append(drawn("text", { x: x(round), y: CHART.h - 4, "text-anchor": anchor, class: "axis" }, "round " + round));
  }
  if (bars) {
    const each = (0.8 * (right - CHART.left)) / (end - first), base = new Map();
    curves.forEach((curve) => {
      const parts = sets[0].map((point) => {
        const from = base.get(point) || 0, to = from + Math.max(curve.of(point) || 0, 0);
        base.set(point, to);
        return `M${x(point.round).toFixed(1)} ${y(from).toFixed(1)}h${each.toFixed(1)}V${y(to).toFixed(1)}h-${each.toFixed(1)}z`;
      });
      svg.append(drawn("path", { d: parts.join(""), class: "f" + curve.color }));
    });
  } else {
    curves.forEach((curve, at) => {
      const line = sets[at].map((p) => `${x(p.round).toFixed(1)},${y(curve.of(p)).toFixed(1)}`);
      svg.append(drawn("polyline", { points: line.join(" "), class: `curve s${curve.color}${curve.dashed ? " dashed" : ""}` }));
      if (line.length === 1) svg.append(drawn("circle", { cx: line[0].split(",")[0], cy: line[0].split(",")[1], r: 3, class: "f" + curve.color }));
    });
  }
  readings.set(id, { rounds: present.filter((p) => p.round >= first), x, left: CHART.left, right, first, end, curves, words });
  const [place, text] = reading(id);
  svg.append(drawn("line", { class: "cross", x1: place, x2: place, y1: CHART.top, y2: CHART.h - CHART.bottom }));
  const legend = element("p", { class: "legend" });
  curves.forEach((c) => legend.append(element("b", { class: "l" + c.color }, c.name), ` ${newestOf(c)}  `));
  show(id, svg, legend, element("output", { class: "legend" }, text));
}

// Where the pointer's round is in a chart, and its values; outside of it where there is none.
function reading(id) {
  const of = readings.get(id), point = hover && hover.id === id ? nearest(of.rounds, hover.round) : null;
  if (!point) return ["-9", ""];
  const values = of.curves.map((curve) => `${curve.name} ${known(curve.of(point), of.words)}`).join(", ");
  return [of.x(point.round).toFixed(1), `round ${point.round}, ${utc(point.unix_s)} UTC: ${values}`];
}
function read(id) {
  const cross = $(id).querySelector(".cross");
  if (!cross) return;
  const [place, text] = reading(id);
  cross.setAttribute("x1", place);
  cross.setAttribute("x2", place);
  $(id).querySelector("output").textContent = text;
}
const nearest = (rounds, round) => rounds.reduce((a, b) => (a && Math.abs(a.round - round) <= Math.abs(b.round - round) ? a : b), null);

// The pointer over a chart, or the arrow keys in it, read its values.
function readable(id) {
  const place = $(id);
  const to = (round) => {
    hover = round === null ? null : { id, round };
    if (readings.has(id)) read(id);
  };
  place.addEventListener("pointermove", (event) => {
    const of = readings.get(id);
    if (!of) return;
    const at = (event.clientX - place.getBoundingClientRect().left - of.left) / (of.right - of.left);
    to(of.first + Math.min(Math.max(at, 0), 1) * (of.end - of.first));
  });
  place.addEventListener("pointerleave", () => to(null));
  place.addEventListener("blur", () => to(null));
  place.addEventListener("keydown", (event) => {
    const of = readings.get(id), by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!of || !by) return;
    event.preventDefault();
    const rounds = of.rounds, point = hover && hover.id === id ? nearest(rounds, hover.round) : null;
    const next = point ? rounds.indexOf(point) + by : rounds.length - 1;
    to(rounds[Math.min(Math.max(next, 0), rounds.length - 1)].round);
  });
}

// The links of this daemon: itself in the middle, the peers around it. Where there is no room for all names,
// those that need a look have one, and a tooltip has the others.
const MAP_MAX = 200;
function map(swarm, stateOf) {
  const w = widthOf("map"), middle = [w / 2, 116], met = swarm.peers.filter((peer) => !peer.heard_of), all = met.slice(0, MAP_MAX);
  const svg = drawn("svg", { viewBox: `0 0 ${w} 250` }), roomy = all.length <= w / 40;
  all.forEach((peer, index) => {
    const angle = (2 * Math.PI * index) / Math.max(all.length, 1) - Math.PI / 2;
    const [x, y] = [middle[0] + (w / 2 - 70) * Math.cos(angle), middle[1] + 88 * Math.sin(angle)].map((at) => at.toFixed(1));
    const link = peer.left ? "left" : !peer.linked ? "down" : peer.awaited || peer.suspected ? "slow" : "up";
    const kind = (peer.left ? " left" : peer.linked ? "" : " gone") + (peer.awaited ? " awaited" : "");
    const whole = drawn("g", { "data-key": peer.peer });
    const node = drawn("circle", { cx: x, cy: y, r: roomy ? 9 : 5, class: "node" + kind });
    node.append(drawn("title", {}, `${label(peer.peer)}: ${stateOf(peer)[0]}`));
    whole.append(drawn("line", { x1: middle[0], y1: middle[1], x2: x, y2: y, class: link }), node);
    if (roomy || link === "down" || link === "slow") {
      const more = peer.linked ? known(peer.rtt_s, (rtt) => " " + time(rtt)) : peer.left ? " left" : " ✕";
      whole.append(drawn("text", { x, y: Number(y) + (y < middle[1] ? -14 : 22), "text-anchor": "middle" }, label(peer.peer) + more));
    }
    svg.append(whole);
  });
  svg.append(drawn("circle", { cx: middle[0], cy: middle[1], r: 11, class: "node me" }),
    drawn("text", { x: middle[0], y: middle[1] + 26, "text-anchor": "middle" }, label(swarm.daemon.peer) + " (this)"));
  show("map", svg);
  const linked = met.filter((peer) => peer.linked).length, text = `Linked with ${linked} of ${count(met.length, "known peer")}.`;
  if ($("map").getAttribute("aria-label") !== text) $("map").setAttribute("aria-label", text);
  const rest = met.length > all.length ? ` ${met.length - all.length} more are in the table and not drawn.` : "";
  say("map-note", text + (roomy ? "" : " Names are in the tooltips.") + rest);
}
