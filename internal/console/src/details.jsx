// One node, one pod, one pool; waiting pods; pools.
import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { nodes, pools, waiting, version, revision, totals } from "./store.js";
import { route, change } from "./route.js";
import { Code, Explanation, Heading, Link, Meter, Missing, State, useAsk } from "./parts.jsx";
import { age, bytes, cores, count, perHour } from "./text.js";

const part = encodeURIComponent;
const Fact = ({ name, children }) => <Fragment><dt>{name}</dt><dd>{children}</dd></Fragment>;

export function Node({ name }) {
  revision.value;
  const [from, page] = useState(0);
  const known = nodes.get(name)?.value;
  const answer = useAsk(`/nodes/${part(name)}?from=${from}`, known);
  const d = answer.data, n = known || d;
  return (
    <article class="detail">
      <Heading title={name}>{name}</Heading>
      {!d ? <Missing answer={answer} what="node of that name" /> : <Fragment>
        <p><State node={n} /></p>
        <Explanation e={d.explanation} />
        <dl class="facts">
          <Fact name="Pool">{n.pool ? <Link parts={["pools", n.pool]}>{n.pool}</Link> : "none"}</Fact>
          <Fact name="NodeClaim">{n.claim || "none"}</Fact>
          <Fact name="Machine">{[n.type, n.zone, n.capacityType].filter(Boolean).join(", ") || "not known"}</Fact>
          <Fact name="Price">{perHour(n.pricePerHour)}</Fact>
          <Fact name="Age">{n.created ? age(Date.now() / 1000 - n.created) : "–"}</Fact>
          <Fact name="CPU"><Meter pair={n.cpu} /> {cores(n.cpu[0])} of {cores(n.cpu[1])} requested</Fact>
          <Fact name="Memory"><Meter pair={n.memory} /> {bytes(n.memory[0])} of {bytes(n.memory[1])} requested</Fact>
          {d.taints.length ? <Fact name="Taints">{d.taints.map((t) => <div key={t}>{t}</div>)}</Fact> : null}
          {d.replaces ? <Fact name="Replaces">{d.replaces.join(", ")}</Fact> : null}
        </dl>
        <h2>{count(d.on.total, "pod", "pods")}</h2>
        <ul class="list">{d.on.pods.map((p) => (
          <li key={p.namespace + "/" + p.name}><Link parts={["pods", p.namespace, p.name]}>{p.namespace}/{p.name}</Link>
            {p.daemon ? <span class="dim"> of a DaemonSet</span> : null}{p.terminating ? <span class="dim"> ends</span> : null}</li>
        ))}</ul>
        <Pager from={from} list={d.on} page={page} />
      </Fragment>}
    </article>
  );
}

const Pager = ({ from, list, page }) => (from || list.next ? (
  <p>
    {from ? <button onClick={() => page(Math.max(0, from - 500))}>Earlier</button> : null} {from + 1} to {from + list.pods.length} of {list.total.toLocaleString("en")} {list.next ? <button onClick={() => page(list.next)}>Further</button> : null}
  </p>
) : null);

export function Pod({ namespace, name }) {
  const answer = useAsk(`/pods/${part(namespace)}/${part(name)}`, version.value);
  const d = answer.data;
  return (
    <article class="detail">
      <Heading title={namespace + "/" + name}>{namespace}/{name}</Heading>
      {!d ? <Missing answer={answer} what="pod of that name that waits or runs" /> : <Fragment>
        <Explanation e={d.explanation} />
        <dl class="facts">
          {d.node ? <Fact name="Node"><Link parts={["nodes", d.node]}>{d.node}</Link></Fact> : null}
          <Fact name="Requests">{d.requests.map((r) => r.resource + " " + r.amount).join(", ") || "nothing"}</Fact>
          <Fact name="Priority">{d.priority}</Fact>
        </dl>
      </Fragment>}
    </article>
  );
}

const Bound = ({ b }) => (
  <span class={b.used === b.limit ? "full" : ""}>{b.resource} {b.used} of {b.limit}{b.hard ? " (hard)" : ""}</span>
);

export function Pools() {
  const list = pools.value;
  return (
    <Fragment>
      <Heading title="Pools">Pools <span class="dim">{list.length}</span></Heading>
      {list.length ? null : <p>There is no NodePool.</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of pools">
        <table>
          <thead><tr><th scope="col">Pool</th><th scope="col" class="number">Nodes</th><th scope="col">Limits</th><th scope="col" class="number">On the way</th>
            <th scope="col" class="number">Leaving</th><th scope="col" class="number">Pods wait</th><th scope="col" class="number">$/h</th><th scope="col" class="number">Offerings</th><th scope="col">Cause</th></tr></thead>
          <tbody>{list.map((p) => (
            <tr key={p.name}>
              <th scope="row"><Link parts={["pools", p.name]}>{p.name}</Link></th><td class="number">{p.nodes}</td>
              <td>{p.replicas != null ? p.replicas + " static " : ""}{p.limits.map((b) => <div key={b.resource}><Bound b={b} /></div>)}</td>
              <td class="number">{p.onTheWay}</td><td class="number">{p.leaving}</td>
              <td class="number">{p.waiting ? <Link parts={["pods"]} query={{ pool: p.name }}>{p.waiting}</Link> : 0}</td>
              <td class="number">{perHour(p.pricePerHour, p.unpriced)}</td>
              <td class="number">{p.offers.all - p.offers.unavailable}{p.offers.unavailable ? <span class="dim"> of {p.offers.all}</span> : null}</td>
              <td>{p.cause ? <Fragment><Code code={p.cause.code} state="Held" /> <span class="dim">{p.cause.text}</span></Fragment> : ""}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
    </Fragment>
  );
}

export function Pool({ name }) {
  const known = pools.value.find((p) => p.name === name);
  const answer = useAsk("/pools/" + part(name), known);
  const d = answer.data, p = known || d;
  return (
    <article class="detail">
      <Heading title={name}>{name}</Heading>
      {!d ? <Missing answer={answer} what="NodePool of that name" /> : <Fragment>
        <Explanation e={d.explanation} />
        <dl class="facts">
          <Fact name="Nodes"><Link parts={["nodes"]} query={{ pool: name }}>{p.nodes}</Link>{p.onTheWay ? `, ${p.onTheWay} on the way` : ""}{p.leaving ? `, ${p.leaving} leaving` : ""}</Fact>
          <Fact name="Price">{perHour(p.pricePerHour, p.unpriced)}</Fact>
          <Fact name="Limits">{p.replicas != null ? p.replicas + " static " : ""}{p.limits.length ? p.limits.map((b) => <div key={b.resource}><Bound b={b} /></div>) : p.replicas == null ? "none" : ""}</Fact>
          <Fact name="Budgets now">{d.budgets.length ? d.budgets.map((b, i) => <div key={i}>{count(b.allowed, "node", "nodes")} at a time{b.reasons.length ? ", for " + b.reasons.join(", ") : ""}</div>) : "none"}</Fact>
          <Fact name="Offerings">{p.offers.all - p.offers.unavailable} of {p.offers.all} to be had</Fact>
          <Fact name="Requirements">{d.requirements.length ? d.requirements.map((r) => <div key={r}>{r}</div>) : "none"}</Fact>
          {d.taints.length ? <Fact name="Taints">{d.taints.map((t) => <div key={t}>{t}</div>)}</Fact> : null}
          {d.demand.length ? <Fact name="Waiting pods">{d.demand.map((x, i) => <div key={i}>{x.pods} {x.text}</div>)}</Fact> : null}
        </dl>
      </Fragment>}
    </article>
  );
}

// Group is a cause of waiting pods in the list of causes.
export const Group = ({ w }) => (
  <li class={"group " + w.state}>
    <Link parts={["pods"]} query={{ cause: w.code, pool: w.pool }}>
      <span class="number">{w.pods.toLocaleString("en")}</span> <Code code={w.code} state={w.state} />
      <span>{w.cause.text}</span>
    </Link>
  </li>
);

export function Pods() {
  const query = route.value.query, all = waiting.value;
  const [from, page] = useState(0);
  const one = query.cause || query.pool || query.ns || query.q;
  const search = new URLSearchParams({ cause: query.cause || "", pool: query.pool || "", ns: query.ns || "", q: query.q || "", from }).toString();
  const found = all.find((w) => w.code === query.cause && (w.pool || "") === (query.pool || ""));
  return (
    <Fragment>
      <Heading title="Waiting pods">Waiting pods <span class="dim">{totals.value.waiting.toLocaleString("en")}</span></Heading>
      <div class="controls">
        <label>Filter <input type="search" id="filter" value={query.q || ""} onChange={(e) => change({ q: e.currentTarget.value })} placeholder="namespace/name" /></label>
        {one ? <Link parts={["pods"]}>All causes</Link> : null}
      </div>
      {one ? <Fragment>
        {found ? <Explanation e={{ state: found.state, cause: found.cause }} /> : query.cause ? <p>No pod waits for {query.cause} now.</p> : null}
        <List key={search} search={search} from={from} page={page} />
      </Fragment> : all.length ? <ul class="groups">{all.map((w) => <Group key={w.key} w={w} />)}</ul> : <p class="good">No pod waits.</p>}
    </Fragment>
  );
}

function List({ search, from, page }) {
  const answer = useAsk("/pods?" + search, waiting.value), list = answer.data;
  if (!list) return <Missing answer={answer} what="pods" />;
  return (
    <Fragment>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of pods">
        <table>
          <thead><tr><th scope="col">Pod</th><th scope="col">Cause</th><th scope="col">Why</th></tr></thead>
          <tbody>{list.pods.map((p) => (
            <tr key={p.namespace + "/" + p.name}><th scope="row"><Link parts={["pods", p.namespace, p.name]}>{p.namespace}/{p.name}</Link></th>
              <td><Code code={p.code} /></td><td>{p.text}</td></tr>
          ))}</tbody>
        </table>
      </div>
      <Pager from={from} list={list} page={page} />
    </Fragment>
  );
}

