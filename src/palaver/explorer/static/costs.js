// Costs: what sessions cost by day, model, program, folder or session, what broke the provider's cache, and what compactions saved.

import { State, count, counted, html, line, money, useState, visible, when } from "./dom.js";
import { Problem, useWork } from "./api.js";
import { address, go, reword } from "./route.js";

const WAYS = { day: "Day", model: "Model", tool: "Program", folder: "Folder", session: "Session" };
const NARROWED = ["since", "until", "tool", "model", "folder"];
const DAYS = 60; // columns
const BREAKS = 20; // calls that broke the cache, shown without being asked for

const COLUMNS = {
  sessions: (row) => count(row.sessions),
  calls: (row) => count(row.calls),
  read: (row) => short(row.read),
  cached: (row) => share(row),
  stored: (row) => short(row.stored),
  written: (row) => short(row.written),
  cost: (row) => money(row.dollars, row.estimated > 0),
  breaks: (row) => sum(row, "calls") ? count(sum(row, "calls")) : "",
  lost: (row) => money(sum(row, "dollars"), true),
};
const MEANT = {
  calls: "Answers of models",
  read: "Tokens that the calls read",
  cached: "The part of them that came from the provider's cache",
  stored: "Tokens that the calls wrote to the cache",
  written: "Tokens of the answers",
  breaks: "Calls that read less from the cache than the call before had left there",
  lost: "What the tokens that these calls read anew cost more than from the cache",
};

function sum(row, name) {
  return row.breaks.reduce((total, cause) => total + cause[name], 0);
}

/** Return a count as the terminal prints it, cut off: `9,489`, `83.1k`, `278k`, `1.3M`. */
function short(value) {
  if (value < 10000) return value ? count(value) : "";
  if (value < 1e5) return `${(Math.floor(value / 100) / 10).toFixed(1)}k`;
  return value < 1e6 ? `${Math.floor(value / 1e3)}k` : `${(Math.floor(value / 1e5) / 10).toFixed(1)}M`;
}

function share(row) {
  return row.read && row.cached ? `${Math.floor((100 * row.cached) / row.read)}%` : "";
}

export function Costs({ route }) {
  const { by = "day", ...words } = route.words;
  if (!Object.hasOwn(WAYS, by)) throw new Problem("not_found", `Costs are not added up by ${by}.`, `They are by ${Object.keys(WAYS).join(", ")}.`);
  const narrowed = Object.fromEntries(NARROWED.filter((name) => words[name]).map((name) => [name, words[name]]));
  const path = `/api/costs?${new URLSearchParams({ by: Object.keys(WAYS), ...narrowed })}`;
  const { value, problem, progress, waiting } = useWork(path);
  return html`<div class="bar"><h2>Costs</h2><nav aria-label="Added up by">${Object.entries(WAYS).map(([name, title]) => html`<a href=${address("/costs", { by: name, ...narrowed })} aria-current=${name === by ? "true" : undefined}>${title}</a>`)}</nav>
      <span class="gap"></span><a class="spare" href=${path}>JSON</a></div>
    <details class="bar" open=${Object.keys(narrowed).length > 0}><summary>Filters</summary><div class="fields">${NARROWED.map((name) => html`<label>${(WAYS[name] ?? name).toLowerCase()} <input name=${name} placeholder=${["since", "until"].includes(name) ? "2026-11-29" : ""} size="10" value=${narrowed[name] ?? ""} onChange=${(event) => reword({ [name]: event.target.value })} /></label>`)}
      ${Object.keys(narrowed).length > 0 && html`<button onClick=${() => go(address("/costs", { by }))}>Clear</button>`}</div></details>
    <div class="body costs" tabindex="0" aria-busy=${waiting}>${problem ? html`<${State} problem=${problem} />` : !value ? html`<${Adding} progress=${progress} />` : !value.total.calls ? html`<${State}>${value.sessions ? "No call has these words, or is of these days." : "The store holds no session."}<//>` : html`<${Report} value=${value} by=${by} narrowed=${narrowed} />`}</div>`;
}

/** Say how far the adding up is. */
export function Adding({ progress }) {
  return html`<p class="state" role="status">Adding up what sessions cost${progress ? `, ${count(progress.done)} of ${count(progress.of)}` : ""} …</p>`;
}

function Report({ value, by, narrowed }) {
  const { total, causes } = value;
  const { count: compactions, dollars, calls, saved } = total.compactions;
  const facts = [[count(total.sessions), "sessions with calls"], [money(sum(total, "dollars"), true) || "nothing", "lost as the cache broke"]];
  const rows = by === "day" ? [...value.rows.day].reverse() : value.rows[by];
  return html`<section class="card"><${Sums} value=${value} facts=${facts} />${by === "day" && html`<${Days} days=${value.rows.day} />`}</section>
    <section class="card"><h2>By ${WAYS[by].toLowerCase()}</h2><${CostRows} by=${by} rows=${rows} columns=${Object.keys(COLUMNS).filter((name) => by !== "session" || name !== "sessions")} narrowed=${narrowed} />
      ${value.of[by] > rows.length && html`<p class="quiet">${count(value.of[by] - rows.length)} more: <code>palaver cost --by ${by} --limit ${value.of[by]}</code></p>`}</section>
    ${compactions > 0 && html`<section class="card"><h2>Compactions</h2><p>${counted(compactions, "compaction")}: their summaries cost ${money(dollars, total.estimated > 0) || "nothing that was recorded"}; the ${counted(calls, "call")} after them saved ${money(saved, true) || "nothing"}.</p></section>`}
    ${total.breaks.length > 0 && html`<section class="card"><h2>What broke the cache</h2><div class="wide-table" tabindex="0"><table><thead><tr><th>cause</th>${["calls", "read anew", "lost"].map((name) => html`<th class="number">${name}</th>`)}</tr></thead>
      <tbody>${total.breaks.map((row) => html`<tr><td><b>${row.cause}</b> <span class="quiet">${causes[row.cause]}</span></td><td class="number">${count(row.calls)}</td><td class="number">${short(row.tokens)}</td><td class="number">${money(row.dollars, true)}</td></tr>`)}</tbody></table></div></section>
      <${Breaks} breaks=${value.breaks} of=${value.broken} />`}`;
}

/** The calls that broke the cache, each with what leads to its answer and to what broke it. */
function Breaks({ breaks, of }) {
  const [all, setAll] = useState(false);
  const shown = all ? breaks : breaks.slice(0, BREAKS);
  const to = (session, handle) => address(`/s/${session}`, { d: handle.split(":")[0], e: handle.split(":").slice(0, 2).join(":") });
  return html`<section class="card"><h2>The calls that broke it, the dearest first ${breaks.length > BREAKS && html`<button onClick=${() => setAll(!all)}>${all ? "Only the dearest" : `Show ${count(breaks.length)}`}</button>`}</h2>
    <div class="wide-table" tabindex="0"><table><thead><tr><th>at</th><th>model</th><th>cause</th><th class="number" title="Tokens that were still read from the cache">kept</th><th class="number">read anew</th><th class="number">lost</th></tr></thead>
      <tbody>${shown.map((row) => html`<tr><td><a href=${to(row.session, row.entry)} title=${row.entry}>${when(row.at)}</a></td><td>${line(row.model, 40)}</td><td>${row.place ? html`<a href=${to(row.session, row.place)} title=${row.place}>${row.cause}</a>` : row.cause}</td><td class="number">${short(row.kept)}</td><td class="number">${short(row.tokens)}</td><td class="number">${money(row.dollars, true)}</td></tr>`)}</tbody></table></div>
    ${all && of > breaks.length && html`<p class="quiet">${count(of - breaks.length)} more: <code>palaver cost --breaks --limit ${of}</code></p>`}</section>`;
}

/** The figures that stand over everything. */
export function Sums({ value, facts = [] }) {
  const { total, unread } = value;
  const all = [[money(total.dollars, total.estimated > 0) || "no price known", "spent"], [count(total.calls), "answers of models"], [share(total) || "none", "of the tokens read came from the cache"], ...facts];
  return html`<dl class="figures">${all.map(([figure, what]) => html`<div><dt>${what}</dt><dd>${figure}</dd></div>`)}</dl>${unread > 0 && html`<p class="warn">${counted(unread, "session")} cannot be read and counts for nothing.</p>`}`;
}

/** The days on which something was said, a column each. */
export function Days({ days }) {
  const shown = days.slice(-DAYS);
  const most = Math.max(...shown.map((day) => day.dollars ?? 0), 1e-9);
  return html`<div class="days" role="img" aria-label=${`Dollars of ${counted(shown.length, "day")}, at most ${money(most)}`}>${shown.map((day) => html`<span title=${`${day.key}: ${money(day.dollars, day.estimated > 0)}, ${counted(day.calls, "answer")}, ${share(day)} from the cache`}><i style=${{ height: `${Math.max(2, (100 * (day.dollars ?? 0)) / most)}%` }}></i></span>`)}</div>
    <p class="ends quiet"><span>${shown[0]?.key}</span><span>${shown.at(-1)?.key}</span></p>`;
}

/** A table of costs; what is added up leads to its own costs. */
export function CostRows({ by, rows, columns, narrowed = {} }) {
  return html`<div class="wide-table" tabindex="0"><table><thead><tr><th>${by === "day" ? "day (UTC)" : WAYS[by].toLowerCase()}</th>${columns.map((name) => html`<th class="number" title=${MEANT[name]}>${name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr><td><${Key} by=${by} row=${row} narrowed=${narrowed} /></td>${columns.map((name) => html`<td class="number">${COLUMNS[name](row)}</td>`)}</tr>`)}</tbody></table></div>`;
}

function Key({ by, row, narrowed }) {
  if (!row.key) return html`<span class="quiet">(unknown)</span>`;
  const to = { day: { by: "session", since: row.key, until: row.key }, session: {} }[by] ?? { by: "day", [by]: row.key };
  const name = by === "folder" ? row.key.split(/[\\/]/).filter(Boolean).slice(-2).join("/") : by === "session" ? row.title || row.key : row.key;
  return html`<a href=${by === "session" ? address(`/s/${row.key}/cost`) : address("/costs", { ...narrowed, ...to })} title=${visible(row.key)}>${line(name, 60)}</a>`;
}
