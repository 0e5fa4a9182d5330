// A call: what exactly did the model see, what had left, why, and how to get it back?

import { Body, Long } from "./body.js";
import { Export } from "./export.js";
import { State, Told, bytes, count, counted, html, line, money, useLayoutEffect, useState, visible, when } from "./dom.js";
import { useAnswer } from "./api.js";
import { useLabels } from "./labels.js";
import { Command, Of } from "./bar.js";
import { address, dialogOf, go } from "./route.js";
import { List } from "./list.js";

const SPEAKERS = { user: "human", assistant: "model", tool: "tool", system: "harness" }; // who speaks in each role by default

export function CallScreen({ route }) {
  const { value, problem, waiting } = useAnswer(`/api/sessions/${route.session}`);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  return html`<${Shown} route=${route} session=${value} dialog=${dialogOf(value, route).dialog} number=${route.number ?? 1} />`;
}

function Shown({ route, session, dialog, number }) {
  const path = `/api/dialogs/${dialog}/calls/${number}`;
  const { value: seen, problem, waiting } = useAnswer(path);
  const [label, sight] = useLabels(`${path}/labels`, seen?.labels);
  const { d, e, why = "", wire = "" } = route.words;
  const to = (next, words = {}) => address(`/s/${route.session}/call/${next}`, { d, why, wire, ...words });
  useLayoutEffect(() => {
    const pressed = (event) => {
      if (event.target.matches("input, textarea, select, dialog *")) return;
      const next = { "[": number - 1, "]": number + 1 }[event.key];
      if (next >= 1 && (!seen || next <= seen.of)) go(to(next), true);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  if (!seen) return html`<${State} ...${{ problem, waiting }} />`;
  const { row, of } = seen;
  const items = seen.items.map((item, index) => ({ ...item, index })).filter((item) => !why || item.reason === why);
  const reasons = [...new Set(seen.items.map((item) => item.reason).filter(Boolean))].sort();
  const selected = e === undefined ? 0 : items.findIndex((item) => String(item.index) === e);
  return html`<div class="bar">
      <h2>Call ${count(number)} of ${count(of)}</h2>
      <${Of} session=${session} route=${route} />
      <a href=${to(Math.max(1, number - 1))} aria-label="Previous call">‹ <kbd>[</kbd></a><a href=${to(Math.min(of, number + 1))} aria-label="Next call"><kbd>]</kbd> ›</a>
      <label>Go to <input type="number" min="1" max=${of} value=${number} onChange=${(event) => event.target.value && go(to(Number(event.target.value)))} /></label>
      <${Told} ...${seen} />
      <span class="gap"></span>
      <a href=${address(`/s/${route.session}/log`, { d, e: row.entry })}>In the log</a>
      ${number > 1 && html`<a href=${address(`/s/${route.session}/compare`, { d, a: number - 1, b: number })}>What changed</a>`}
      <a href=${to(number, { wire: wire ? "" : "1" })}>${wire ? "What was seen" : "Request"}</a><${Export} key=${path} what=${{ session: session.row.session, dialog, call: number }} /><a href=${path}>JSON</a>
    </div>
    <div class="bar"><span>${seen.recorded ? "The model saw" : seen.policy ? "The policy shows" : "Said before this response:"} ${counted(seen.items.filter((item) => item.what !== "omission").length, "message")}${seen.tools.length > 0 && ` and ${counted(seen.tools.length, "tool")}`}.</span>
      <span class="quiet">${[visible(row.model), when(row.at), row.read ? `${count(row.read)} tokens read, ${count(row.cached)} of them cached` : `${seen.exact ? "" : "about "}${counted(seen.tokens, "token")}`, row.written > 0 && `${count(row.written)} written`, row.failed && `failed (${visible(row.failed)})`, money(row.dollars, row.estimated)].filter(Boolean).join(" · ")}</span>
      ${reasons.length > 0 && html`<label>Only <select value=${why} onChange=${(event) => go(to(number, { why: event.target.value }), true)}><option value="">everything</option>
        ${reasons.map((reason) => html`<option value=${reason}>${reason.replaceAll("_", " ")}</option>`)}</select></label>`}
      ${seen.report.length > 0 && html`<details><summary>${counted(seen.report.length, "change")} for the provider</summary><ul>${seen.report.map((each) => html`<li>${visible(each)}</li>`)}</ul></details>`}
    </div>
    ${wire ? html`<${Wire} path=${`${path}/request`} recorded=${seen.recorded} />` : html`<div class="split">
      <${List} id="blocks" label="What the model saw" count=${items.length} selected=${selected} onSelect=${(index) => go(to(number, { e: items[index].index }), true)}
        onSight=${(first, stop) => items.length && sight(items[first].index, items[stop - 1].index + 1)} row=${(index) => html`<${Item} item=${items[index]} label=${label(items[index].index)} />`} />
      <${Side} item=${items[selected]} />
    </div>`}`;
}

function Item({ item, label }) {
  if (item.what === "omission") {
    return html`<span class="who warn">not shown</span><span class="grow warn">${item.messages ? counted(item.messages, "message") : item.entries > 1 ? counted(item.entries, "entry", "entries") : item.handle.split(":").length > 2 ? "a block" : visible(item.kind.replaceAll("_", " "))}: ${visible(item.why)}</span><span class="number quiet">${bytes(item.bytes)}</span>`;
  }
  const who = item.speaker && item.speaker !== SPEAKERS[item.role] ? `${item.role} (${item.speaker})` : item.role;
  return html`<span class=${`who ${item.role}`}>${visible(who)}</span>
    <span class=${`grow${label?.error ? " bad" : ""}`}>${item.derived && html`<i class="quiet">${visible(item.derived)} </i>`}${(label?.tools ?? []).map((name) => html`<b>${visible(name)} </b>`)}${line(item.text ?? label?.label ?? "")}</span>
    ${item.reason && html`<span class="warn" title=${item.why}>${visible(item.reason.replaceAll("_", " "))}</span>`}<span class="number quiet">${item.bytes ? bytes(item.bytes) : ""}</span>`; // the first entry of a response has the bytes of all
}

function Side({ item }) {
  if (!item) return html`<${Body} handle=${null} />`;
  if (item.what === "omission") return html`<${Recall} key=${item.place} omission=${item} />`;
  const shown = item.text === undefined ? (item.changes ?? []) : item.handle && !item.reason ? [] : [{ text: item.text }]; // what the original says is shown once
  const head = html`${item.why && html`<p>${visible(item.why)}.</p>`}${shown.map(({ handle, text }) => html`<h2>${item.derived ? "Made for the model" : "Shown"}${handle && html` in place of <code>${handle}</code>`}</h2><${Long} text=${text ?? "(nothing)"} />`)}
    ${shown.length > 0 && item.handle && html`<h2>The original</h2>`}`;
  return item.handle ? html`<${Body} key=${item.handle} handle=${item.handle} head=${head} />` : html`<section class="body" tabindex="0" aria-label="Entry">${head}</section>`;
}

/** An omission: why, and what is omitted, prompts first. */
function Recall({ omission }) {
  const several = omission.entries > 1;
  const { value, problem } = useAnswer(several ? `/api/entries/${omission.handle}/run/${omission.entries}` : null);
  const [selected, setSelected] = useState(0);
  const handle = several ? value?.rows[selected]?.handle : omission.handle;
  const head = html`<h2>Not shown</h2><p>${visible(omission.why)} (by ${visible(omission.by)}).</p>
    <p><${Command} words=${`show ${omission.place}`} /></p>`;
  if (!several) return html`<${Body} handle=${handle} head=${head} />`;
  return html`<div class="recall"><section class="body">${head}${problem && html`<${State} problem=${problem} />`}${value && value.total > value.rows.length && html`<p class="quiet">The first ${count(value.rows.length)} of ${count(value.total)}.</p>`}</section>
    <${List} id="omitted" label="What is not shown" quiet=${true} count=${value?.rows.length ?? 0} selected=${selected} onSelect=${setSelected} row=${(index) => html`<${Omitted} ...${value.rows[index]} />`} />
    <${Body} key=${handle} handle=${handle} /></div>`;
}

function Omitted({ role, speaker, kind, label, tools, error }) {
  return html`<span class=${`who ${kind === "message" ? role : "other"}`}>${visible(kind === "message" ? speaker && speaker !== SPEAKERS[role] ? `${role} (${speaker})` : role : kind.replaceAll("_", " "))}</span><span class=${`grow${error ? " bad" : ""}`}>${tools.map((name) => html`<b>${visible(name)} </b>`)}${line(label)}</span>`;
}

function Wire({ path, recorded }) {
  const { value, problem, waiting } = useAnswer(path);
  return value ? html`<div class="body" tabindex="0">${!recorded && html`<p>Not what was sent, which the file does not say: compiled for OpenAI Chat from what is shown here.</p>`}<${Long} text=${JSON.stringify(value, null, 2)} /></div>` : html`<${State} ...${{ problem, waiting }} />`;
}
