// The controller's history of decisions, newest first.
import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import { told } from "./store.js";
import { route, change } from "./route.js";
import { Heading, Link, Missing, useAsk } from "./parts.jsx";
import { count, dollars, utc } from "./text.js";

const step = 100, recent = 5;
const filters = { nodepool: "NodePool", node: "node", pod: "pod", cause: "cause" };

const day = (ms) => new Date(ms).toLocaleDateString([], { month: "short", day: "numeric" });
const When = ({ r }) => {
  const ms = Date.parse(r.time), here = new Date(ms).toLocaleTimeString([], { hour12: false });
  return <time dateTime={r.time} title={utc(ms)}>{Date.now() - ms > 20 * 3600000 ? day(ms) + " " : ""}{here}</time>;
};

const outcome = (r) => r.outcome.replace("_", " ") + (r.times > 1 ? ` (${r.times} times)` : "");
const change$ = (r) => {
  if (!["done", "planned"].includes(r.outcome) || r.priceBefore == null || r.priceAfter == null) return "";
  const by = r.priceAfter - r.priceBefore;
  return (by > 0 ? "+" : by < 0 ? "\u2212" : "") + dollars(Math.abs(by));
};
const whose = (r) => r.verb === "wait" && r.outcome === "ended" ? "no pod waits for it any more" : r.pods ? (r.podNames?.[0] || "") + (r.pods > 1 ? ` and ${(r.pods - 1).toLocaleString("en")} more` : "") : "";
const Claim = ({ r }) => (r.nodeClaim ? <Link parts={["nodes", r.node || r.nodeClaim]}>{r.node || r.nodeClaim}</Link> : "\u2013");

// The last decisions, for the overview.
export function Recent() {
  const answer = useAsk("?limit=" + recent, told.value, "history"), list = answer.data?.records;
  if (!list?.length) return null;
  return (
    <section aria-labelledby="decisions">
      <h2 id="decisions">Decisions</h2>
      <ul class="groups">{list.map((r) => (
        <li key={r.id} class="group"><Link parts={["history"]} query={r.nodeClaim ? { node: r.nodeClaim } : { cause: r.cause }}>
          <span class="number"><When r={r} /></span> <span class="code">{r.verb} {r.cause}</span>
          <span>{[r.nodePool, outcome(r), whose(r), r.why].filter(Boolean).join(", ")}</span>
        </Link></li>
      ))}</ul>
    </section>
  );
}

export function History() {
  const query = route.value.query, [limit, more] = useState(step);
  const wanted = new URLSearchParams({ limit: limit + 1 });
  for (const name of Object.keys(filters)) if (query[name]) wanted.set(name, query[name]);
  const answer = useAsk("?" + wanted, told.value, "history");
  const all = answer.data?.records || [], list = all.slice(0, limit);
  return (
    <Fragment>
      <Heading title="History">History <span class="dim">{answer.data ? (all.length > limit ? `the last ${limit}` : count(list.length, "decision", "decisions")) : ""}</span></Heading>
      <p class="controls">{Object.entries(filters).map(([name, word]) => (query[name] ? <span key={name} class="tag">{word}: {query[name]} <button onClick={() => change({ [name]: "" })} aria-label={"All, whatever the " + word}>×</button></span> : null))}</p>
      {(answer.data?.notes || []).map((note) => <p key={note} class="note">{note}.</p>)}
      {!answer.data ? <Missing answer={answer} what="history" /> : !list.length ? <p>Nothing was decided{Object.keys(filters).some((f) => query[f]) ? " that fits" : " yet"}.</p> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Table of decisions">
          <table>
            <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Cause</th><th scope="col">Pool</th><th scope="col">Node</th><th scope="col">Pods</th><th scope="col" class="number">$/h</th><th scope="col">Outcome</th><th scope="col">Why</th></tr></thead>
            <tbody>{list.map((r) => (
              <tr key={r.id}>
                <th scope="row" title={r.id}><When r={r} /></th><td>{r.verb}</td>
                <td class="code"><Link parts={["history"]} query={{ ...query, cause: r.cause }}>{r.cause}</Link></td>
                <td>{r.nodePool ? <Link parts={["pools", r.nodePool]}>{r.nodePool}</Link> : "\u2013"}</td><td><Claim r={r} /></td>
                <td title={(r.podNames || []).join("\n")}>{whose(r)}</td><td class="number">{change$(r)}</td><td>{outcome(r)}</td>
                <td><span class="dim">{[(r.types || []).join("|") + (r.typeCount > 3 ? `|+${r.typeCount - 3}` : ""), r.why].filter(Boolean).join(" ")}</span></td>
              </tr>
            ))}</tbody>
          </table>
        </div>
      )}
      {all.length > limit ? <p><button onClick={() => more(limit + step)}>Show {step} more</button></p> : null}
    </Fragment>
  );
}
