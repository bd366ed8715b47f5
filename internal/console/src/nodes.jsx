// Nodes as boxes or as a table.
import { h, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { nodes, ids, revision, totals } from "./store.js";
import { route, change, to, follow } from "./route.js";
import { Link, Meter, State, Heading } from "./parts.jsx";
import { age, byText, bytes, cores, count, dollars, percent, perHour, share, sign, states, stays } from "./text.js";

const groups = { pool: (n) => n.pool || "no pool", zone: (n) => n.zone || "no zone", type: (n) => n.type || "no type", none: () => "" };
const amounts = { price: (n) => n.pricePerHour || 0, cpu: (n) => n.cpu[1], memory: (n) => n.memory[1], equal: () => 1 };
const words = { pool: "pool", zone: "zone", type: "type", none: "nothing", price: "price", cpu: "CPU", memory: "memory", pods: "pods", equal: "all equal" };
const orders = {
  name: (a, b) => byText(a.id, b.id), price: (a, b) => (b.pricePerHour ?? -1) - (a.pricePerHour ?? -1),
  cpu: (a, b) => share(b.cpu) - share(a.cpu), memory: (a, b) => share(b.memory) - share(a.memory), pods: (a, b) => b.pods[0] - a.pods[0],
  age: (a, b) => a.created - b.created, state: (a, b) => byText(a.state, b.state), pool: (a, b) => byText(a.pool || "", b.pool || ""),
};

const is = (q) => (n) =>
  (!q.pool || n.pool === q.pool) && (!q.zone || n.zone === q.zone) && (!q.cause || n.stays?.code === q.cause) &&
  (!q.state || (q.state === "stays" ? stays(n) : n.state === q.state)) &&
  (!q.q || [n.id, n.claim, n.type, n.zone, n.pool].some((t) => t && t.includes(q.q)));

export const chosen = (q) => {
  revision.value;
  return ids.map((id) => nodes.get(id).value).filter(is(q));
};

const say = (n) => [n.id, n.pool && "pool " + n.pool, n.type, n.zone, stays(n) ? "stays: " + n.stays.code : states[n.state],
  perHour(n.pricePerHour), "CPU " + percent(n.cpu), "memory " + percent(n.memory), n.pods[0] + " pods"].filter(Boolean).join(", ");

const side = (value, most) => Math.round(18 + 38 * Math.sqrt(most > 0 ? value / most : 0));

function Box({ id, size, fill, most, current, tab }) {
  const own = nodes.get(id);
  if (!own) return null;
  const n = own.value, px = side(amounts[size](n), most) + "px";
  return (
    <a class={"box " + n.state + (stays(n) ? " stays" : "")} href={to(["nodes", n.id], route.value.query)} onClick={follow}
      style={{ width: px, height: px }} title={say(n)} aria-label={say(n)} aria-current={current ? "page" : undefined} tabIndex={tab ? 0 : -1}>
      <span class="fill" style={{ height: 100 * share(n[fill]) + "%" }} />
      <span class="sign" aria-hidden="true">{sign(n)}</span>
    </a>
  );
}

// Arrow keys go from box to box; Tab leaves the boxes.
const arrows = (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: "down", ArrowUp: "up", Home: "first", End: "last" }[event.key];
  const all = [...event.currentTarget.querySelectorAll(".box")];
  const at = all.indexOf(document.activeElement);
  if (!step || at < 0) return;
  event.preventDefault();
  let next = at + step;
  if (step === "first") next = 0;
  else if (step === "last") next = all.length - 1;
  else if (step === "down" || step === "up") {
    const own = all[at].getBoundingClientRect();
    const far = (b) => { const r = b.getBoundingClientRect(); return { y: r.bottom - own.bottom, x: Math.abs(r.left - own.left) }; };
    const rows = all.map((b, i) => ({ i, ...far(b) })).filter((r) => (step === "down" ? r.y > 4 : r.y < -4));
    if (!rows.length) return;
    rows.sort((a, b) => Math.abs(a.y) - Math.abs(b.y) || a.x - b.x);
    const nearest = rows.filter((r) => Math.abs(r.y - rows[0].y) < 4).sort((a, b) => a.x - b.x);
    next = nearest[0].i;
  }
  const target = all[Math.max(0, Math.min(all.length - 1, next))];
  for (const box of all) box.tabIndex = box === target ? 0 : -1;
  target.focus();
};

const many = 1000;

export function Boxes({ list, query, current, level = "h3" }) {
  const H = level;
  const size = amounts[query.size] ? query.size : "price", fill = ["cpu", "memory", "pods"].includes(query.fill) ? query.fill : "cpu";
  const by = groups[query.group] ? query.group : "pool";
  let most = 0;
  const sorted = new Map();
  for (const n of list) {
    most = Math.max(most, amounts[size](n));
    const key = groups[by](n);
    if (!sorted.has(key)) sorted.set(key, []);
    sorted.get(key).push(n);
  }
  if (!list.length) return <p class="dim">No node.</p>;
  let first = true;
  return (
    <div class="boxes" role="group" aria-label="Nodes; arrows go from one to the next" onKeyDown={arrows}>
      {[...sorted.keys()].sort(byText).map((key) => (
        <section key={key}>
          {by === "none" ? null : <H class="group-name">{key} <span class="dim">{count(sorted.get(key).length, "node", "nodes")}</span></H>}
          <div class="row">
            {list.length > many ? <Bundles list={sorted.get(key)} query={query} fill={fill} tab={() => { const t = first; first = false; return t; }} /> :
              sorted.get(key).map((n) => {
                const tab = current ? n.id === current : first;
                first = false;
                return <Box key={n.id} id={n.id} size={size} fill={fill} most={most} current={n.id === current} tab={tab} />;
              })}
          </div>
        </section>
      ))}
    </div>
  );
}

// If there are very many nodes, those with the same pool, type and state share a box. It shows their number and a
// bar for their total use, and leads to a list of these nodes only.
function Bundles({ list, query, fill, tab }) {
  const all = new Map();
  for (const n of list) {
    const state = stays(n) ? "stays" : n.state, key = [n.pool, n.type, state].join("\n");
    if (!all.has(key)) all.set(key, { pool: n.pool, type: n.type, state, n, number: 0, use: [0, 0] });
    const b = all.get(key);
    b.number++;
    b.use[0] += n[fill][0];
    b.use[1] += n[fill][1];
  }
  return [...all.entries()].map(([key, b]) => (
    <a key={key} class={"box bundle " + b.n.state + (b.state === "stays" ? " stays" : "")} tabIndex={tab() ? 0 : -1} onClick={follow}
      href={to(["nodes"], { ...query, pool: b.pool, state: b.state, q: b.type })}
      aria-label={`${b.number} nodes, pool ${b.pool || "none"}, ${b.type || "no type"}, ${states[b.state] || b.state}, ${words[fill]} ${percent(b.use)}`}
      title={words[fill] + " requested: " + percent(b.use)}>
      <span class="fill" style={{ width: 100 * share(b.use) + "%" }} />
      <b>{b.number.toLocaleString("en")}</b> {b.type || "no type"} <span class="dim">{states[b.state] || b.state}</span>
    </a>
  ));
}

const pageOfRows = 200;

const rising = ["name", "state", "pool", "age"];

// Components are defined outside of those that draw them: a component that is defined anew would lose the focus.
const Head = ({ by, sort, children, number }) => (
  <th scope="col" class={number ? "number" : ""} aria-sort={sort === by ? (rising.includes(by) ? "ascending" : "descending") : undefined}>
    <button class="plain" onClick={() => change({ sort: by })}>{children}{sort === by ? " ▾" : ""}</button>
  </th>
);

function Table({ list, query }) {
  const [rows, more] = useState(pageOfRows);
  const sort = orders[query.sort] ? query.sort : "name", now = Date.now() / 1000;
  const sorted = list.slice().sort(orders[sort]);
  return (
    <Fragment>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of nodes">
        <table>
          <thead><tr>
            <Head sort={sort} by="name">Node</Head><Head sort={sort} by="state">State</Head><Head sort={sort} by="pool">Pool</Head><th scope="col">Type</th><th scope="col">Zone</th>
            <Head sort={sort} by="price" number>$/h</Head><Head sort={sort} by="cpu">CPU</Head><Head sort={sort} by="memory">Memory</Head><Head sort={sort} by="pods" number>Pods</Head>
            <Head sort={sort} by="age" number>Age</Head><th scope="col">Why</th>
          </tr></thead>
          <tbody>{sorted.slice(0, rows).map((n) => (
            <tr key={n.id}>
              <th scope="row"><Link parts={["nodes", n.id]} query={query}>{n.id}</Link></th><td><State node={n} /></td>
              <td>{n.pool ? <Link parts={["pools", n.pool]}>{n.pool}</Link> : "–"}</td><td>{n.type || "–"}</td>
              <td>{n.zone || "–"}{n.capacityType ? <span class="dim"> {n.capacityType}</span> : null}</td><td class="number">{dollars(n.pricePerHour)}</td>
              <td><Meter pair={n.cpu} text={cores(n.cpu[0]) + " of " + cores(n.cpu[1])} /></td>
              <td><Meter pair={n.memory} text={bytes(n.memory[0]) + " of " + bytes(n.memory[1])} /></td>
              <td class="number">{n.pods[0]}</td><td class="number">{n.created ? age(now - n.created) : "–"}</td>
              <td>{n.stays ? <Fragment><span class="code">{n.stays.code}</span> <span class="dim">{n.stays.text}</span></Fragment> : ""}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      {sorted.length > rows ? <p><button onClick={() => more(rows + pageOfRows)}>Show {Math.min(pageOfRows, sorted.length - rows)} more of {sorted.length - rows}</button></p> : null}
    </Fragment>
  );
}

const Choice = ({ name, label, options, value }) => (
  <label>{label} <select name={name} value={value} onChange={(e) => change({ [name]: e.currentTarget.value })}>
    {options.map((o) => <option key={o} value={o}>{words[o] || o}</option>)}
  </select></label>
);

const Tag = ({ name, value }) => (
  <span class="tag">{name} {value} <button onClick={() => change({ [name]: "" })} aria-label={`Remove the filter ${name} ${value}`}>×</button></span>
);

export function Controls({ query }) {
  const typing = useRef(), input = useRef(), [text, set] = useState(query.q || "");
  const type = (e) => {
    const typed = e.currentTarget.value;
    set(typed);
    clearTimeout(typing.current);
    typing.current = setTimeout(() => change({ q: typed }), 150);
  };
  useEffect(() => { if (document.activeElement !== input.current) set(query.q || ""); }, [query.q]); // by a link, or going back
  return (
    <div class="controls">
      <label>Filter <input type="search" id="filter" ref={input} value={text} onInput={type} placeholder="name, type, zone" /></label>
      <label>State <select value={query.state || ""} onChange={(e) => change({ state: e.currentTarget.value })}>
        <option value="">any</option><option value="stays">stays</option>
        {Object.entries(states).map(([k, v]) => <option key={k} value={k}>{v}</option>)}
      </select></label>
      {query.as === "table" ? null : <Fragment>
        <Choice name="group" label="Group" options={["pool", "zone", "type", "none"]} value={query.group || "pool"} />
        <Choice name="size" label="Size" options={["price", "cpu", "memory", "equal"]} value={query.size || "price"} />
        <Choice name="fill" label="Fill" options={["cpu", "memory", "pods"]} value={query.fill || "cpu"} />
      </Fragment>}
      <button aria-pressed={query.as === "table"} onClick={() => change({ as: query.as === "table" ? "" : "table" })}>Table</button>
      {["pool", "zone", "cause"].map((name) => (query[name] ? <Tag key={name} name={name} value={query[name]} /> : null))}
    </div>
  );
}

export const Legend = () => (
  <p class="legend dim"><span>… on its way</span> <span>⇢ chosen to go</span> <span>⇣ draining</span> <span>× not ready</span> <span>! stays</span> <span>○ not managed</span></p>
);

export function Nodes({ current }) {
  const query = route.value.query, list = chosen(query), all = totals.value;
  const price = list.reduce((sum, n) => sum + (n.pricePerHour || 0), 0);
  const unpriced = list.filter((n) => n.pricePerHour == null && n.claim && n.state !== "launching").length;
  const title = <Fragment>Nodes <span class="dim">{list.length === all.nodes ? "" : list.length.toLocaleString("en") + " of "}{all.nodes.toLocaleString("en")}, {perHour(price, unpriced)}</span></Fragment>;
  return (
    <Fragment>
      {current ? <h2>{title}</h2> : <Heading title="Nodes">{title}</Heading>}
      <Controls query={query} />
      {query.as === "table" ? <Table list={list} query={query} /> : <Fragment><Boxes list={list} query={query} current={current} level={current ? "h3" : "h2"} /><Legend /></Fragment>}
    </Fragment>
  );
}
