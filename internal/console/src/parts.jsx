// Components that pages share.
import { h, Fragment } from "preact";
import { useState, useEffect, useRef } from "preact/hooks";
import { to, follow } from "./route.js";
import { ask, live } from "./store.js";
import { share, percent, signs, states, sign, stays, count } from "./text.js";

export const Link = ({ parts, query, children, ...rest }) => (
  <a href={to(parts, query)} onClick={follow} {...rest}>{children}</a>
);

export const Heading = ({ children, title }) => {
  useEffect(() => { document.title = title + " – Joiner"; }, [title]);
  return <h1 tabIndex={-1}>{children}</h1>;
};

// Meter is a bar with its figure beside it, for users who cannot see the bar.
export const Meter = ({ pair, text }) => (
  <span class="meter" title={text}>
    <span class="bar" aria-hidden="true"><span style={{ width: 100 * share(pair) + "%" }} /></span>
    <span class="figure">{percent(pair)}</span>
  </span>
);

export const State = ({ node }) => (
  <span class={"state " + node.state + (stays(node) ? " stays" : "")}>
    <span aria-hidden="true">{sign(node) || (node.goes ? "→" : "✓")} </span>
    {stays(node) ? "stays" : node.goes ? "goes: " + node.goes : states[node.state] || node.state}
  </span>
);

export const Code = ({ code, state }) => <span class={"code " + (state || "")}>{code}</span>;

// About leads to the object of a cause, if it has a page.
const About = ({ kind, name }) => {
  const page = { NodePool: "pools", Node: "nodes", NodeClaim: "nodes", Pod: "pods" }[kind];
  return page ? <Link parts={[page, ...name.split("/")]}>{name}</Link> : name;
};

// CauseBox shows a cause: what it is, what to do, and what ends it by itself.
export const CauseBox = ({ cause, state, wanted, level = "h2" }) => {
  const H = level;
  return (
    <section class={"cause " + (state || "")}>
      <H><Code code={cause.code} state={state} /></H>
      <p>{wanted ? <Fragment>It is to go (<b>{wanted}</b>) and stays: {cause.text}.</Fragment> : cause.text + "."}</p>
      <dl>
        {cause.object?.name ? <Fragment><dt>About</dt><dd>{cause.object.kind} <About {...cause.object} /></dd></Fragment> : null}
        {cause.remedies?.length ? <Fragment><dt>To do</dt><dd><ul>{cause.remedies.map((r) => <li key={r}>{r}</li>)}</ul></dd></Fragment> : null}
        <dt>By itself</dt><dd>{cause.byItself || "nothing ends it"}</dd>
      </dl>
    </section>
  );
};

export const Explanation = ({ e, kind }) => (
  <Fragment>
    {e.cause ? <CauseBox cause={e.cause} state={e.state} wanted={e.wanted} /> : <p class="cause Settled">{e.text}.</p>}
    {e.cause && e.text ? <p>{e.text}.</p> : null}
    {e.also?.length ? (
      <details>
        <summary>{count(e.also.length, "further cause", "further causes")}</summary>
        {e.also.map((c, i) => <CauseBox key={i} cause={c} level="h3" />)}
      </details>
    ) : null}
    {e.pools?.length ? (
      <section>
        <h2>What each pool says</h2>
        <div class="scroll" tabIndex={0} role="region" aria-label="What each pool says">
        <table>
          <thead><tr><th scope="col">Pool</th><th scope="col">Cause</th><th scope="col">Filters, in their order</th></tr></thead>
          <tbody>{e.pools.map((p) => (
            <tr key={p.pool}>
              <th scope="row"><Link parts={["pools", p.pool]}>{p.pool}</Link></th>
              <td><Code code={p.code} />{p.beyond ? <span class="dim"> then {p.beyond}</span> : null}</td>
              <td>{(p.steps || [p.text]).map((s, i) => <div key={i}>{s}</div>)}</td>
            </tr>
          ))}</tbody>
        </table>
        </div>
      </section>
    ) : null}
  </Fragment>
);

// useAsk fetches a detail, and again when depends changes, at most every three seconds.
export const useAsk = (path, depends, of) => {
  const [answer, set] = useState({});
  const asked = useRef({ path: "", at: 0 });
  useEffect(() => {
    const stop = new AbortController();
    const same = asked.current.path === path;
    const wait = same ? Math.max(0, 3000 - (Date.now() - asked.current.at)) : 0;
    if (!same) set({});
    const timer = setTimeout(() => {
      asked.current = { path, at: Date.now() };
      ask(path, stop.signal, of).then((data) => set({ data }), (error) => {
        if (!stop.signal.aborted) set((old) => ({ error, data: error.status === 404 ? undefined : old.data }));
      });
    }, wait);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [path, depends, live.value === "stale"]);
  return answer;
};

export const Missing = ({ answer, what }) => (
  answer.error
    ? <p role="alert">{answer.error.status === 404 ? `The controller knows of no ${what}: it may be gone.` : answer.error.message}</p>
    : <p class="dim">Asking the controller …</p>
);
