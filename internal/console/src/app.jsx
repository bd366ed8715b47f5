// The page: its frame, and what it shows at each address.
import { h, render, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { attention, freeze, frozen, lastBeat, live, pools, problem, run, totals, version, waiting } from "./store.js";
import { base, go, route, to } from "./route.js";
import { Code, Heading, Link, Meter } from "./parts.jsx";
import { Boxes, Legend, Nodes, chosen } from "./nodes.jsx";
import { Node, Pod, Pods, Pool, Pools } from "./details.jsx";
import { History, Recent } from "./history.jsx";
import { bytes, clock, cores, count, perHour, utc } from "./text.js";

const themes = ["auto", "light", "dark"];
const stored = () => { try { return localStorage.getItem("theme") || "auto"; } catch { return "auto"; } };
const theme = signal(stored());
const paint = () => { document.documentElement.dataset.theme = theme.value; };
const turn = () => {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length];
  try { localStorage.setItem("theme", theme.value); } catch { /* it holds until the page is left */ }
  paint();
};

const help = signal(false);

const Tab = ({ at, page, children, parts }) => <Link parts={parts} aria-current={page === at ? "page" : undefined}>{children}</Link>;

function Top() {
  const t = totals.value, [page] = route.value.parts;
  return (
    <header>
      <Link parts={[]} class="brand"><img src={base + "icon.svg"} alt="" width="20" height="20" /> Joiner</Link>
      <nav aria-label="Pages">
        <Tab page={page} parts={[]}>Overview</Tab>
        <Tab page={page} parts={["nodes"]} at="nodes">Nodes</Tab>
        <Tab page={page} parts={["pods"]} at="pods">Waiting{t?.waiting ? <span class={"badge" + (waiting.value.some((w) => w.state === "Held") ? "" : " soft")}>{t.waiting.toLocaleString("en")}</span> : null}</Tab>
        <Tab page={page} parts={["pools"]} at="pools">Pools</Tab>
        <Tab page={page} parts={["history"]} at="history">History</Tab>
      </nav>
      <div class="right">
        <Live />
        <button onClick={() => freeze(!frozen.value)} aria-pressed={frozen.value} title="Stop showing what is new">Freeze</button>
        <button onClick={turn} title="Colours: automatic, light, dark">Theme: {theme.value}</button>
        <button onClick={() => { help.value = true; }} aria-label="Help">?</button>
      </div>
    </header>
  );
}

function Live() {
  const at = lastBeat.value, state = live.value;
  if (state === "connecting") return <span class="live">○ connecting</span>;
  if (state === "stale") return <span class="live stale" title={utc(at)}>○ stale since {clock(at)}</span>;
  return <span class="live" title={utc(at)}>{frozen.value ? "❄ frozen" : "● live"} {clock(at)}</span>;
}

const leads = (a) => a.what === "pods" ? { parts: ["pods"], query: { cause: a.code, pool: a.pool } }
  : a.what === "pool" ? { parts: ["pools", a.pool] } : { parts: ["nodes"], query: { cause: a.code, pool: a.pool } };
const whom = (a) => a.what === "pods" ? count(a.count, "pod waits", "pods wait") : a.what === "pool" ? "pool " + a.pool
  : count(a.count, "node", "nodes") + (a.pools > 1 ? ` of ${a.pools} pools` : a.pool ? " of " + a.pool : "");

// Equal messages for nodes of many pools become one line: with twenty pools, a line for each would hide all else.
const fewPools = 3;
const merged = (list) => {
  const by = new Map(), key = (a) => a.code + "\n" + a.text;
  for (const a of list) if (a.what === "nodes") by.set(key(a), [...(by.get(key(a)) || []), a]);
  const out = [];
  for (const a of list) {
    const same = a.what === "nodes" ? by.get(key(a)) : [];
    if (same.length <= fewPools) out.push(a);
    else if (same[0] === a) out.push({ ...a, pool: "", pools: same.length, count: same.reduce((sum, o) => sum + o.count, 0) });
  }
  return out;
};

function Attention() {
  const list = merged(attention.value), [all, show] = useState(false);
  return (
    <section aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {totals.value.paused ? <p class="note">{totals.value.paused}.</p> : null}
      {list.length ? <ul class="groups">{(all ? list : list.slice(0, 6)).map((a) => (
        <li key={a.what + a.code + a.pool} class="group Held"><Link {...leads(a)}>
          <span class="number">{whom(a)}</span> <Code code={a.code} state="Held" /> <span>{a.text}</span>
        </Link></li>
      ))}</ul> : <p class="good">Nothing does.</p>}
      {list.length > 6 ? <button onClick={() => show(!all)}>{all ? "Show fewer" : `Show ${list.length - 6} more`}</button> : null}
    </section>
  );
}

const Figure = ({ name, children }) => <div><dt>{name}</dt><dd>{children}</dd></div>;

function Overview() {
  const t = totals.value, s = t.states, way = (s.launching || 0) + (s.joining || 0) + (s.initializing || 0);
  const leaving = (s.chosen || 0) + (s.draining || 0), query = {};
  return (
    <Fragment>
      <Heading title="Overview">Overview</Heading>
      <dl class="figures">
        <Figure name="Price">{perHour(t.pricePerHour)} <small>{t.unpriced ? `+${t.unpriced} unpriced` : "every machine has a price"}</small></Figure>
        <Figure name="Nodes"><Link parts={["nodes"]}>{t.nodes.toLocaleString("en")}</Link> <small>{[way && way + " on the way", leaving && leaving + " leaving", s.not_ready && s.not_ready + " not ready"].filter(Boolean).join(", ") || "all ready"}</small></Figure>
        <Figure name="Pods">{t.running.toLocaleString("en")} <small>{t.waiting ? <Link parts={["pods"]}>{t.waiting.toLocaleString("en")} wait</Link> : "none waits"}</small></Figure>
        <Figure name="CPU requested"><Meter pair={t.cpu} /> <small>{cores(t.cpu[0])} of {cores(t.cpu[1])}</small></Figure>
        <Figure name="Memory requested"><Meter pair={t.memory} /> <small>{bytes(t.memory[0])} of {bytes(t.memory[1])}</small></Figure>
        <Figure name="To go">{t.staysKnown ? <Fragment>{t.going} <small>{t.staying ? <Link parts={["nodes"]} query={{ state: "stays" }}>{t.staying} stay</Link> : "none is kept"}</small></Fragment> : <small>being asked</small>}</Figure>
      </dl>
      <Attention />
      <div class="two">
        <section aria-labelledby="pools">
          <h2 id="pools">Pools</h2>
          <ul class="pools">{pools.value.map((p) => <PoolRow key={p.name} p={p} />)}</ul>
          {pools.value.length ? null : <p>There is no NodePool.</p>}
        </section>
        <section aria-labelledby="nodes">
          <h2 id="nodes">Nodes</h2>
          <Boxes list={chosen(query)} query={query} />
          <Legend />
        </section>
      </div>
      <Recent />
    </Fragment>
  );
}

function PoolRow({ p }) {
  const bound = p.limits.find((b) => b.resource === "nodes");
  const held = waiting.value.some((w) => w.pool === p.name && w.state === "Held");
  const most = p.replicas ?? (bound ? Number(bound.limit) : null);
  return (
    <li><Link parts={["pools", p.name]}>
      <span class="name">{p.name}{p.cause || p.waiting ? <span class={"badge" + (p.cause || held ? "" : " soft")}>{p.cause ? "not ready" : p.waiting + " wait"}</span> : null}</span>
      <span class="number">{p.nodes.toLocaleString("en")}{most != null ? " of " + most.toLocaleString("en") + (bound?.hard ? " hard" : p.replicas != null ? " static" : "") : ""}</span>
      <span class="number">{perHour(p.pricePerHour, p.unpriced)}</span>
      {most != null ? <span class="bar" aria-hidden="true"><span style={{ width: Math.min(100, (100 * p.nodes) / Math.max(1, most)) + "%" }} /></span> : null}
    </Link></li>
  );
}

function About() {
  return (
    <Fragment>
      <Heading title="About">About this page</Heading>
      <p>It shows how the cluster stands as the controller that leads sees it: the picture that it plans with, and the causes that joinerctl explain tells. It changes nothing, keeps nothing but the theme, and loads nothing from elsewhere.</p>
      <dl class="facts">
        <dt>Snapshot of the engine</dt><dd>version {version.value}</dd>
        <dt>Last heard</dt><dd>{utc(lastBeat.value)}</dd>
        <dt>Which nodes stay and why</dt><dd>{totals.value.staysKnown ? "known" : "being asked"}; asked again every ten seconds at most</dd>
        <dt>Licences</dt><dd><a href={base + "LICENCES.txt"}>of the libraries in this page</a></dd>
      </dl>
    </Fragment>
  );
}

const Key = ({ k, children }) => <Fragment><dt>{k.split(" ").map((x, i) => <Fragment key={i}><kbd>{x}</kbd> </Fragment>)}</dt><dd>{children}</dd></Fragment>;

function Help() {
  const own = useRef();
  useEffect(() => { if (help.value) own.current.showModal(); else own.current.close(); }, [help.value]);
  return (
    <dialog ref={own} onClose={() => { help.value = false; }} aria-labelledby="help">
      <h2 id="help">Keys</h2>
      <dl>
        <Key k="/">filter</Key><Key k="g o">overview</Key><Key k="g n">nodes</Key><Key k="g w">waiting pods</Key><Key k="g p">pools</Key><Key k="g h">history</Key><Key k="g a">about this page</Key>
        <Key k="← → ↑ ↓">from node to node</Key><Key k="Enter">open</Key><Key k="Esc">back to the list</Key><Key k="?">this list</Key>
      </dl>
      <button onClick={() => { help.value = false; }}>Close</button>
    </dialog>
  );
}

// Tells screen readers what needs attention, at most every ten seconds.
function Announce() {
  const [text, set] = useState(""), last = useRef(0), list = merged(attention.value);
  const now = list.length ? list.slice(0, 3).map((a) => `${whom(a)}: ${a.code}`).join("; ") : "Nothing needs attention";
  useEffect(() => {
    const timer = setTimeout(() => { last.current = Date.now(); set(now); }, Math.max(0, 10000 - (Date.now() - last.current)));
    return () => clearTimeout(timer);
  }, [now]);
  return <div class="aloud" aria-live="polite">{totals.value && !frozen.value ? text : ""}</div>;
}

function Page() {
  const [page, first, second] = route.value.parts;
  switch (page) {
    case undefined: return <Overview />;
    case "nodes": return first ? <div class="beside"><div class="picture"><Nodes current={first} /></div><Node key={first} name={first} /></div> : <Nodes />;
    case "pods": return first && second ? <Pod key={first + "/" + second} namespace={first} name={second} /> : <Pods key={route.value.query.cause + "/" + route.value.query.pool} />;
    case "pools": return first ? <Pool key={first} name={first} /> : <Pools />;
    case "history": return <History />;
    case "about": return <About />;
  }
  return <Fragment><Heading title="Nothing here">Nothing is here</Heading><p><Link parts={[]}>Overview</Link></p></Fragment>;
}

function App() {
  return (
    <Fragment>
      <a class="skip" href="#main">To the content</a>
      <Top />
      {problem.value && live.value !== "live" ? <p class="problem" role="status">{problem.value}</p> : null}
      <main id="main" class={live.value === "stale" ? "stale" : ""}>{totals.value ? <Page /> : <p class="dim" role="status">{problem.value ? "Nothing is known yet." : "Asking the controller …"}</p>}</main>
      <Announce />
      <Help />
    </Fragment>
  );
}

// Keyboard shortcuts, except while a field has the focus.
let after = "";
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.value) return;
  const field = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape") {
    if (field) { field.blur(); return; }
    const { parts, query } = route.value;
    if (parts.length > 1) go(to(parts.slice(0, 1), query));
    else if (parts.length && Object.keys(query).length) go(to(parts));
    else if (parts.length) go(to([]));
    return;
  }
  if (field) return;
  const pages = { o: [], n: ["nodes"], w: ["pods"], p: ["pools"], h: ["history"], a: ["about"] };
  if (after === "g" && pages[event.key]) {
    after = "";
    event.preventDefault();
    go(to(pages[event.key]));
    return;
  }
  after = event.key;
  if (event.key === "/") {
    const filter = document.getElementById("filter");
    event.preventDefault();
    if (filter) filter.focus();
    else { go(to(["nodes"])); requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("filter")?.focus())); }
  } else if (event.key === "?") {
    event.preventDefault();
    help.value = true;
  }
});

paint();
render(<App />, document.getElementById("app"));
run();
