// Home: a place to search, what all sessions cost, what waits for a person, and where one was last.

import { State, ago, count, counted, html, line, money, useEffect, useState, visible } from "./dom.js";
import { lines, useAnswer } from "./api.js";
import { address } from "./route.js";
import { Search } from "./search.js";

const RECENT = 8; // sessions
const DAYS = 60;
const LISTED = 6; // models, or programs

export function Home({ route }) {
  useEffect(() => document.querySelector(".home input").focus(), []);
  return html`<div class="home"><${Search} route=${route} word="q" close=${() => {}}><div class="body">
    <${Waiting} /><${Recent} /><${Totals} /></div><//></div>`;
}

/** Calls that a person has to decide about. */
function Waiting() {
  const { value } = useAnswer("/api/waiting");
  if (!value?.rows.length) return null;
  return html`<section class="card waiting"><h2>Waiting for a decision</h2><ul>${value.rows.map((row) => html`<li><a href=${address(`/s/${row.session}`, { d: row.dialog, e: row.entry })}>${line(row.title, 80)}</a> <span class="quiet">${counted(row.calls.length, "call")}, ${ago(row.at)}</span></li>`)}</ul></section>`;
}

function Recent() {
  const { value, problem, waiting } = useAnswer(`/api/sessions?limit=${RECENT}`);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  if (!value.rows.length) return html`<${State}>The store holds no session. \`palaver import\` imports what other agents left.<//>`;
  return html`<section class="card"><h2>Recent <a href="#/sessions">All sessions</a></h2><ul class="recent">${value.rows.map((row) => html`<li><a href=${address(`/s/${row.session}`)}>${line(row.title || row.name, 90)}</a>
    <span class="quiet">${[row.agent, row.workdir?.split("/").slice(-2).join("/")].filter(Boolean).map(visible).join(" · ")}</span><span class="quiet number">${counted(row.messages, "message")}</span><span class="number">${money(row.dollars, row.estimated)}</span><span class="quiet number">${ago(row.updated_at)}</span></li>`)}</ul></section>`;
}

/** What all sessions cost: a process adds it up, and keeps what it added. */
function Totals() {
  const [{ value, problem, progress }, setState] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    lines("/api/totals", (told) => setState(told.result ? { value: told.result } : { progress: told }), { signal: stop.signal }).catch((error) => error.name !== "AbortError" && setState({ problem: error }));
    return () => stop.abort();
  }, []);
  if (problem) return html`<${State} problem=${problem} />`;
  if (!value) return html`<p class="state" role="status">Adding up what sessions cost${progress ? `, ${count(progress.done)} of ${count(progress.of)}` : ""} …</p>`;
  const { total, days, models, tools, unread } = value;
  if (!total.calls) return null;
  const facts = [[money(total.dollars, total.estimated > 0) || "no price known", "spent"], [count(total.calls), "answers of models"], [share(total), "of the tokens read came from the cache"], [count(value.sessions), "sessions"]];
  return html`<section class="card"><h2>All sessions</h2><dl class="figures">${facts.map(([figure, what]) => html`<div><dt>${what}</dt><dd>${figure}</dd></div>`)}</dl>${unread > 0 && html`<p class="warn">${counted(unread, "session")} cannot be read and counts for nothing.</p>`}<${Days} days=${days.slice(-DAYS)} /></section>
    <div class="two"><${Ranked} name="Models" rows=${models} /><${Ranked} name="Programs" rows=${tools} /></div>`;
}

function share(row) {
  return row.read ? `${Math.round((100 * row.cached) / row.read)}%` : "";
}

/** The days on which something was said, a column each; what it has in words is in the table. */
function Days({ days }) {
  const [shown, setShown] = useState(false);
  const most = Math.max(...days.map((day) => day.dollars ?? 0), 1e-9);
  return html`<div class="days" role="img" aria-label=${`Dollars of ${counted(days.length, "day")}, at most ${money(most)}`}>${days.map((day) => html`<span title=${`${day.key}: ${money(day.dollars, day.estimated > 0)}, ${counted(day.calls, "answer")}, ${share(day)} from the cache`}><i style=${{ height: `${Math.max(2, (100 * (day.dollars ?? 0)) / most)}%` }}></i></span>`)}</div>
    <p class="ends quiet"><span>${days[0]?.key}</span><button onClick=${() => setShown(!shown)}>${shown ? "Only the columns" : "Day by day"}</button><span>${days.at(-1)?.key}</span></p>
    ${shown && html`<${Figures} name="day (UTC)" rows=${[...days].reverse()} />`}`;
}

function Ranked({ name, rows }) {
  return html`<section class="card"><h2>${name}</h2><${Figures} name="" rows=${rows.slice(0, LISTED)} /></section>`;
}

function Figures({ name, rows }) {
  return html`<div class="wide-table" tabindex="0"><table><thead><tr><th>${name || html`<span class="quiet">name</span>`}</th><th class="number">answers</th><th class="number">cached</th><th class="number">cost</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr><td>${line(row.key || "(unknown)", 40)}</td><td class="number">${count(row.calls)}</td><td class="number">${share(row)}</td><td class="number">${money(row.dollars, row.estimated > 0)}</td></tr>`)}</tbody></table></div>`;
}
