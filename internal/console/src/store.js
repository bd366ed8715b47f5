// The read model from the controller: first the whole model, then changes.
import { signal, batch } from "@preact/signals";
import { base } from "./route.js";
import { byText } from "./text.js";

export const totals = signal(null);
export const attention = signal([]);
export const waiting = signal([]);
export const pools = signal([]);
export const revision = signal(0); // of nodes: which there are, and what they say
export const version = signal(0);
export const told = signal(0); // how often something was
export const live = signal("connecting"); // connecting, live, stale
export const lastBeat = signal(0);
export const problem = signal("");
export const frozen = signal(false);

export const nodes = new Map(); // by id: a signal of the node
export let ids = [];
let id = "";

const keyed = (list, key) => new Map(list.map((row) => [row[key], row]));

function snapshot(m) {
  batch(() => {
    const seen = new Set();
    for (const n of m.nodes) {
      seen.add(n.id);
      setNode(n);
    }
    for (const name of [...nodes.keys()]) if (!seen.has(name)) nodes.delete(name);
    pools.value = m.pools;
    whole(m);
    order();
  });
}

function setNode(n) {
  const known = nodes.get(n.id);
  if (known) known.value = n; else nodes.set(n.id, signal(n));
}

function order() {
  ids = [...nodes.keys()].sort(byText);
  revision.value++;
}

function whole(m) {
  if (m.totals) totals.value = m.totals;
  if (m.attention) attention.value = m.attention;
  if (m.waiting) waiting.value = m.waiting;
  version.value = m.version;
  told.value++;
  id = m.id;
}

// delta applies changes. It returns false if they are for another version than this one.
function delta(d) {
  if (d.from !== id) return false;
  batch(() => {
    whole(d);
    if (d.pools) {
      const all = keyed(pools.value, "name");
      for (const p of d.pools.set || []) all.set(p.name, p);
      for (const name of d.pools.gone || []) all.delete(name);
      pools.value = [...all.values()].sort((a, b) => byText(a.name, b.name));
    }
    if (d.nodes) {
      for (const n of d.nodes.set || []) setNode(n);
      for (const name of d.nodes.gone || []) nodes.delete(name);
      order();
    }
  });
  return true;
}

// While the page is frozen, changes are kept. They are shown when it is no longer frozen.
let kept = [];
function take(event, data) {
  beat();
  if (event === "beat") return true;
  if (frozen.value) {
    if (event === "snapshot") kept = [];
    kept.push([event, data]);
    return true;
  }
  return apply(event, data);
}
function apply(event, data) {
  if (event === "snapshot") snapshot(data);
  else if (event === "delta" && !delta(data)) { id = ""; return false; }
  return true;
}
export function freeze(on) {
  frozen.value = on;
  if (on) return;
  for (const [event, data] of kept) if (!apply(event, data)) { running?.abort(); break; }
  kept = [];
}
const current = () => (kept.length ? kept[kept.length - 1][1].id : id);

let heard = 0; // when the stream was heard of last

function beat() {
  heard = Date.now();
  lastBeat.value = Date.now();
  live.value = "live";
  problem.value = "";
}

const sleep = (ms, stop) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  stop?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

const silence = 15000, buffered = 5000, pollEvery = 2000, hiddenFor = 60000;
let running = null;

// stream reads events until they end. It returns "buffered" if a proxy on the way holds them back.
async function stream(stop) {
  const answer = await fetch(base + "joiner/v1/stream?since=" + encodeURIComponent(current()), { signal: stop.signal, cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim() || "the controller answers " + answer.status);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", seen = false, held = false;
  const watch = setInterval(() => { if (Date.now() - heard > silence) stop.abort(); }, 1000);
  const first = setTimeout(() => { if (!seen) { held = true; stop.abort(); } }, buffered);
  heard = Date.now();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "";
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        let event = "", data = "";
        for (const line of text.slice(0, end).split("\n")) {
          if (line.startsWith("event: ")) event = line.slice(7);
          else if (line.startsWith("data: ")) data += line.slice(6);
        }
        if (!event) continue;
        seen = true;
        if (!take(event, JSON.parse(data))) return "";
      }
    }
  } catch (error) {
    if (held) return "buffered";
    throw error;
  } finally {
    clearInterval(watch);
    clearTimeout(first);
  }
}

// poll fetches changes repeatedly while streams do not get through.
async function poll(stop) {
  for (;;) {
    const m = await ask("?since=" + encodeURIComponent(current()), stop.signal);
    if (m.deltas) for (const d of m.deltas) take("delta", d);
    else take("snapshot", m);
    beat();
    await sleep(pollEvery, stop.signal);
    if (stop.signal.aborted) return;
  }
}

// ask fetches a part of the model, or something else below the same address.
export async function ask(path, signal, of = "view") {
  const answer = await fetch(base + "joiner/v1/" + of + path, { signal, cache: "no-store" });
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(text.trim() || "the controller answers " + answer.status), { status: answer.status });
  return JSON.parse(text);
}

export async function run() {
  let wait = 1000, held = false;
  for (;;) {
    while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    const stop = (running = new AbortController());
    let hide;
    const seen = () => {
      clearTimeout(hide);
      if (document.hidden) hide = setTimeout(() => stop.abort(), hiddenFor);
    };
    document.addEventListener("visibilitychange", seen);
    const began = Date.now();
    let failed = false;
    try {
      if (held) await poll(stop); else held = (await stream(stop)) === "buffered";
    } catch (error) {
      failed = true;
      if (!stop.signal.aborted) problem.value = String(error.message || error);
    }
    document.removeEventListener("visibilitychange", seen);
    clearTimeout(hide);
    if (Date.now() - began > 30000) wait = 1000;
    if ((failed || !held) && !document.hidden) { // held without a failure: polling begins at once
      await sleep(wait);
      wait = Math.min(30000, wait * 2);
    }
  }
}

// The page shows how old it is.
setInterval(() => {
  if (lastBeat.value && Date.now() - lastBeat.value > silence) live.value = "stale";
}, 1000);
addEventListener("online", () => running?.abort());
