// Sessions: which one was it, what is new, what did it cost, is it whole?

import { State, ago, count, counted, html, line, money, useEffect, useMemo, useState, visible, when } from "./dom.js";
import { exported, get, useAnswer } from "./api.js";
import { address, go } from "./route.js";
import { List } from "./list.js";

const ORDERS = {
  newest: (one, other) => other.updated_at - one.updated_at,
  longest: (one, other) => other.messages - one.messages,
  dearest: (one, other) => (other.dollars ?? 0) - (one.dollars ?? 0),
  title: (one, other) => one.title.localeCompare(other.title),
};

/** Ask for all sessions, a page at a time. */
function useSessions() {
  const [state, setState] = useState({ rows: [], waiting: true, problem: null });
  useEffect(() => {
    const stop = new AbortController();
    (async () => {
      for (let rows = [], more = true; more; ) {
        const after = rows.length ? `&after=${rows.at(-1).session}` : "";
        const page = await get(`/api/sessions?limit=200${after}`, stop.signal);
        rows = [...rows, ...page.rows];
        more = page.more;
        setState({ rows, waiting: more, problem: null });
      }
    })().catch((problem) => problem.name !== "AbortError" && setState((before) => ({ ...before, waiting: false, problem })));
    return () => stop.abort();
  }, []);
  return state;
}

export function Sessions({ route }) {
  const { rows, waiting, problem } = useSessions();
  const { q = "", sort = "newest" } = route.words;
  const [selected, setSelected] = useState(0);
  const shown = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const said = (row) => `${row.title} ${row.name} ${row.workdir} ${row.agent} ${row.session}`.toLowerCase();
    return rows.filter((row) => words.every((word) => said(row).includes(word))).sort(ORDERS[sort] ?? ORDERS.newest);
  }, [rows, q, sort]);
  const turn = (words) => go(address(exported ? "/" : "/sessions", { q, sort, ...words }), true);
  const open = (index) => go(address(`/s/${shown[index].session}`));
  return html`<div class="bar">
      <h2>Sessions</h2>
      <label>Filter <input type="search" value=${q} onInput=${(event) => turn({ q: event.target.value })} /></label>
      <label>Sort <select value=${sort} onChange=${(event) => turn({ sort: event.target.value })}>${Object.keys(ORDERS).map((name) => html`<option>${name}</option>`)}</select></label>
      <span class="quiet" role="status">${shown.length === rows.length ? count(rows.length) : `${count(shown.length)} of ${count(rows.length)}`}${waiting ? " …" : ""}</span>
      <span class="gap"></span><a href="/api/sessions?limit=200">JSON</a>
    </div>
    ${problem && html`<${State} problem=${problem} />`}
    ${!shown.length && !problem && html`<${State} waiting=${waiting}>${rows.length ? "No session has these words." : "The store holds no session. `palaver import` imports what other agents left."}<//>`}
    ${shown.length > 0 && html`<${List} id="sessions" label="Sessions" count=${shown.length} height=${44} selected=${Math.min(selected, shown.length - 1)}
      onSelect=${setSelected} onOpen=${open} row=${(index) => html`<${SessionRow} row=${shown[index]} chosen=${index === Math.min(selected, shown.length - 1)} />`} />`}`;
}

/** Say whether all that was recorded is there and readable; this reads the whole session. */
export function Whole({ session }) {
  const { value } = useAnswer(`/api/sessions/${session}/whole`);
  if (!value) return null;
  return value.damaged.length ? html`<b class="bad" title=${value.damaged.slice(0, 20).join(" ")}>${counted(value.damaged.length, "entry is", "entries are")} damaged</b>` : html`<span class="good">whole</span>`;
}

function SessionRow({ row, chosen }) {
  const fresh = row.seen === null || row.seen === undefined ? "" : row.messages > row.seen ? `${count(row.messages - row.seen)} new` : "";
  const facts = [row.archived && "archived", row.agent, row.workdir?.split("/").slice(-2).join("/"), row.compactions && counted(row.compactions, "compaction"), row.branches > 1 && counted(row.branches, "branch", "branches"), row.dialogs > row.branches && counted(row.dialogs - row.branches, "sub-agent")];
  const told = facts.filter(Boolean).map(visible);
  return html`<span class="grow">${fresh && html`<b class="good">${fresh}</b> `}<b>${line(row.title || row.name)}</b><br /><span class="quiet">${told.join(" · ")}${chosen && html`${told.length > 0 && " · "}<${Whole} session=${row.session} />`}</span></span>
    <span class="number quiet wide" title=${when(row.updated_at)}>${ago(row.updated_at)}</span>
    <span class="number wide">${counted(row.messages, "message")}</span>
    <span class="number wide spare" title="All that its calls read and wrote">${row.tokens ? `${count(row.tokens)} tokens` : ""}</span>
    <span class="number cost">${money(row.dollars, row.estimated)}</span>`;
}
