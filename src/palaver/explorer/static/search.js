// Search: as you type, everywhere or in this session, and whether a hit was in view at which calls.

import { State, count, counted, html, line, useEffect, useState, visible, when } from "./dom.js";
import { exported, lines, useAnswer } from "./api.js";
import { address, go, reword } from "./route.js";
import { List } from "./list.js";

const MOST = 50; // hits that are shown
const FILTERS = ["since", "until", "role", "tool", "agent", "folder", "model"];
const REST = 500; // milliseconds without a key before the address has the words, and the server is asked where the chosen hit was in view

/** `word` is the word of the address that has the query; `children` are shown while there is none. */
export function Search({ route, close, word = "find", children = null }) {
  const [q, setQ] = useState(route.words[word] ?? "");
  const [selected, setSelected] = useState(0);
  const [rested, setRested] = useState("");
  const [indexed, setIndexed] = useState(0); // in the fragment of what is asked, so that it is asked again
  const { session } = route;
  const within = session && !route.words.all;
  const filters = Object.fromEntries(FILTERS.filter((name) => route.words[name]).map((name) => [name, route.words[name]]));
  const path = /[\p{L}\p{N}]/u.test(q) ? `/api/search?${new URLSearchParams({ q, limit: MOST, ...filters, ...(within ? { in: session } : {}) })}#${indexed}` : null;
  const { value, problem } = useAnswer(exported ? null : path);
  const [last, setLast] = useState(null);
  useEffect(() => value && setLast(value), [value]);
  const hits = (path && (value ?? last)?.hits) || [];
  useEffect(() => {
    const timer = setTimeout(() => {
      setRested(`${q} ${selected}`);
      reword({ [word]: q });
    }, REST);
    return () => clearTimeout(timer);
  }, [q, selected]);
  const open = (index) => {
    go(address(`/s/${hits[index].session}`, { d: hits[index].dialog, e: hits[index].handle }));
    close();
  };
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setSelected(Math.max(0, Math.min(hits.length - 1, selected + step)));
    if (event.key === "Enter" && hits[selected]) open(selected);
    if (step || event.key === "Enter") event.preventDefault();
  };
  if (exported) return html`<${State}>An exported file has no index. Open the session with \`palaver open\` to search it.<//>`;
  return html`<div class="bar searching"><label>Search <input type="search" autofocus=${!children} placeholder=${children && "Everything that was said"} value=${q} onInput=${(event) => { setQ(event.target.value); setSelected(0); }} onKeyDown=${keys} /></label>
      ${session && html`<label><input type="checkbox" checked=${within} onChange=${(event) => reword({ all: event.target.checked ? "" : "1" })} /> only this session</label>`}
      <span class="quiet" role="status">${path && value ? `${hits.length < MOST ? "" : "the first "}${counted(hits.length, "hit")}` : ""}</span></div>
    ${(path || !children) && html`<details class="bar" open=${Object.keys(filters).length > 0}><summary>Filters</summary><div class="fields">${FILTERS.map((name) => html`<label>${name} <input name=${name} placeholder=${["since", "until"].includes(name) ? "2026-11-29" : ""} size="10" value=${filters[name] ?? ""} onChange=${(event) => reword({ [name]: event.target.value })} /></label>`)}</div></details>`}
    <${Lag} lag=${(value ?? last)?.lag} done=${() => setIndexed(indexed + 1)} />
    ${!path && children ? children : problem ? html`<${State} problem=${problem} />` : !hits.length ? html`<${State}>${path ? (value ? `Nothing found${value.lag ? " in what is indexed" : ""}.` : "Searching …") : "Words or their beginnings, any of which count, and “phrases” in quotes."}<//>`
      : html`<${List} id="hits" label="Hits" count=${hits.length} height=${48} selected=${selected} onSelect=${setSelected} onOpen=${open} row=${(index) => html`<${Hit} hit=${hits[index]} chosen=${index === selected && rested === `${q} ${selected}`} />`} />`}`;
}

function Hit({ hit, chosen }) {
  const { value } = useAnswer(chosen ? `/api/dialogs/${hit.dialog}/seen?handle=${hit.handle}` : null);
  const calls = value?.calls.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
  return html`<span class="grow">${marked(hit)}<br /><span class="quiet">${value && (calls ? `in view at calls ${calls} · ` : "in view at no call · ")}${visible(hit.role || hit.kind)}, ${when(hit.at)}, in ${line(hit.title, 60)}</span></span><code class="quiet">${hit.handle.slice(0, 12)}:${hit.handle.split(":").slice(1).join(":")}</code>`;
}

/** Return the words around a hit, those that were sought highlighted; places count characters, not units of UTF-16. */
function marked({ snippet, marks }) {
  const letters = [...snippet];
  const bounds = [0, ...marks.flat(), letters.length];
  return bounds.slice(1).map((stop, at) => {
    const part = visible(letters.slice(bounds[at], stop).join(""));
    return at % 2 ? html`<mark>${part}</mark>` : part;
  });
}

/** The first search builds the index: in a process of its own, when the reader says so. */
function Lag({ lag, done }) {
  const [state, setState] = useState(null);
  if (!lag) return null;
  const index = async () => {
    try {
      await lines("/api/index", (told) => setState(told), { method: "POST" });
      done();
    } catch (problem) {
      setState({ error: problem });
    }
  };
  return html`<div class="bar warn">${counted(lag, "entry is", "entries are")} not indexed yet. ${state?.error ? visible(state.error.message) : state ? `${count(state.done ?? 0)} indexed …` : html`<button onClick=${index}>Index now</button>`}</div>`;
}
