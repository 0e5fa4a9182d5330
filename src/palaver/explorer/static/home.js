// Home: a place to search, what all sessions cost, what waits for a person, and where one was last.

import { State, ago, count, counted, html, line, money, useEffect, visible } from "./dom.js";
import { useAnswer, useWork } from "./api.js";
import { Adding, CostRows, Days, Sums } from "./costs.js";
import { address } from "./route.js";
import { Search } from "./search.js";

const RECENT = 8; // sessions
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
  const { value, problem, progress } = useWork("/api/costs?by=day,model,tool");
  if (problem) return html`<${State} problem=${problem} />`;
  if (!value) return html`<${Adding} progress=${progress} />`;
  if (!value.total.calls) return null;
  return html`<section class="card"><h2>All sessions <a href="#/costs">Costs</a></h2><${Sums} value=${value} facts=${[[count(value.sessions), "sessions"]]} /><${Days} days=${value.rows.day} /></section>
    <div class="two"><${Ranked} name="Models" by="model" value=${value} /><${Ranked} name="Programs" by="tool" value=${value} /></div>`;
}

function Ranked({ name, by, value }) {
  return html`<section class="card"><h2>${name} <a href=${address("/costs", { by })}>All</a></h2><${CostRows} by=${by} rows=${value.rows[by].slice(0, LISTED)} columns=${["calls", "cached", "cost"]} /></section>`;
}
