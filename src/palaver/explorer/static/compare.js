// Compare: two calls, two branches, or what a policy would make of a call. It never changes anything.

import { Body, Long } from "./body.js";
import { Export } from "./export.js";
import { State, Told, count, counted, html, line, money, useEffect, useRef, useState, visible } from "./dom.js";
import { Problem, about, exported, lines, useAnswer } from "./api.js";
import { Command, Of } from "./bar.js";
import { address, dialogOf, go, relation, reword } from "./route.js";
import { List } from "./list.js";

const SIGNS = { entered: "+", left: "−", changed: "~" };

export function Compare({ route }) {
  const { value, problem, waiting } = useAnswer(`/api/sessions/${route.session}`);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  const { d, a, b, one, other, policy, budget, people = "" } = route.words;
  const { dialog } = dialogOf(value, route);
  const to = (words, replace = false) => go(address(`/s/${route.session}/compare`, { d, ...words }), replace);
  const pick = (event) => {
    event.preventDefault();
    const form = Object.fromEntries(new FormData(event.target));
    to(form.policy ? { a: form.a, policy: form.policy, budget: form.budget } : { a: form.a, b: form.b });
  };
  return html`<form class="bar" onSubmit=${pick}>
      <h2>Compare</h2><${Of} session=${value} route=${route} />
      <label>call <input name="a" type="number" min="1" value=${Number(a) || ""} /></label>
      <label>with call <input name="b" type="number" min="1" value=${Number(b) || ""} /></label>
      <label>or with policy <select name="policy" defaultValue=${policy ?? ""}><option value=""></option>${about.policies.map((name) => html`<option selected=${name === policy}>${name}</option>`)}</select></label>
      <label>in <input name="budget" type="number" min="1" placeholder="the model's" value=${Number(budget) || ""} /></label>
      <button>Compare</button>
      <label><input type="checkbox" checked=${people === "1"} onChange=${(event) => reword({ people: event.target.checked ? "1" : "" })} /> only people's words</label>
    </form>
    ${one ? html`<${Branches} session=${value} one=${one} other=${other ?? ""} />` : policy ? html`<${WhatIf} key=${`${a} ${policy} ${budget}`} route=${route} dialog=${dialog} at=${a} policy=${policy} budget=${budget} people=${people} />`
      : a && b ? html`<${Two} session=${value.row.session} dialog=${dialog} a=${a} b=${b} people=${people} />` : html`<${Begin} key=${dialog} dialog=${dialog} compare=${!a && !b && to} />`}`;
}

/** Begin with the calls before and after the newest compaction, else with the last two; say what can be chosen where there are fewer, or one was chosen. */
function Begin({ dialog, compare }) {
  const { value: found, problem, waiting } = useAnswer(compare ? `/api/dialogs/${dialog}/composition` : null);
  useEffect(() => {
    const newest = found?.compactions.findLast((call) => call > 1) ?? found?.calls.length;
    if (newest > 1) compare({ a: newest - 1, b: newest }, true);
  }, [found]);
  if (waiting || problem) return html`<${State} ...${{ problem, waiting }} />`;
  return html`<${State}>Choose two calls, or a call and a policy. Without a call, the policy is asked about now.<//>`;
}

function Two({ session, dialog, a, b, people }) {
  const path = `/api/dialogs/${dialog}/compare?${new URLSearchParams({ a, b })}`;
  const { value, problem, waiting } = useAnswer(path);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  return html`<div class="bar"><${Told} recorded=${value.recorded} /><span>From call ${a} to call ${b}.</span><${Broken} found=${value} /><${Price} number=${b} ...${value.price} /><span class="gap"></span>
      <${Command} words=${`calls ${dialog.slice(0, 12)} ${a} ${b}`} /><${Export} key=${path} what=${{ session, dialog, a: Number(a), b: Number(b) }} /><a href=${path}>JSON</a></div><${Rows} found=${value} people=${people} />`;
}

/** Where the provider's cache breaks, and through what. */
function Broken({ found }) {
  const { kept, broken, instead } = found.prefix;
  if (!broken) return html`<span class="good">The second request begins with the whole first one; nothing breaks the provider's cache.</span>`;
  return html`<span class="warn">The provider's cache breaks after ${counted(kept, "part")} of the request.</span>
    <details><summary>What broke it</summary><pre>− ${visible(broken.slice(0, 4000))}</pre><pre>+ ${visible((instead ?? "nothing").slice(0, 4000))}</pre></details>`;
}

/** What the provider reported of the second call. */
function Price({ number, read, cached, dollars }) {
  if (!read) return null;
  return html`<span>Call ${number} read ${count(read)} tokens, ${count(cached)} of them from the cache${dollars ? `; reading the others anew cost about ${money(dollars)} more` : ""}.</span>`;
}

function Rows({ found, people }) {
  const [selected, setSelected] = useState(0);
  const rows = Object.keys(SIGNS).flatMap((what) => found[what].map((each) => ({ what, ...each }))).filter(({ role, speaker }) => !people || (role === "user" && ["", "human"].includes(speaker)));
  const tools = found.tools ?? [];
  if (!rows.length && !tools.length) return html`<${State}>${people ? "No words of people differ." : "Nothing differs."}<//>`;
  const chosen = rows[selected];
  return html`<div class="bar">${counted(found.entered.length, "block")} entered, ${count(found.left.length)} left, ${count(found.changed.length)} changed.${tools.length > 0 && ` Tools: ${tools.map(visible).join(", ")}.`}</div>
    <div class="split"><${List} id="differences" label="Differences" count=${rows.length} selected=${selected} onSelect=${setSelected} row=${(index) => html`<${DifferenceRow} ...${rows[index]} />`} />
    <${Body} key=${selected} handle=${chosen?.place ?? null} head=${chosen && html`<${Sides} ...${chosen} place=${chosen.what === "changed" ? null : chosen.place} />`} /></div>`;
}

/** What was seen before and after, in words; of an entry of the log, only why. */
function Sides({ before, after, why, place }) {
  if (place !== null) return html`<p>${visible(why)}</p>`;
  return html`<p>${visible(why)}</p>${before !== null && html`<h2>Before</h2><${Long} text=${before} />`}${after !== null && html`<h2>After</h2><${Long} text=${after} />`}`;
}

function DifferenceRow({ what, place, before, after, why, role, speaker }) {
  return html`<b class=${{ entered: "good", left: "bad", changed: "warn" }[what]} aria-label=${what}>${SIGNS[what]}</b><span class=${`who ${role}`}>${visible(speaker && role === "user" && speaker !== "human" ? `${role} (${speaker})` : role)}</span><span class="grow">${line(after ?? before)}</span><span class="quiet why" title=${visible(why)}>${line(why, 60)}</span><code class="quiet">${visible(place ?? "")}</code>`;
}

function Branches({ session, one, other }) {
  const path = `/api/sessions/${session.row.session}/branches?${new URLSearchParams({ one, other })}`;
  const { value, problem, waiting } = useAnswer(path);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  const side = (each) => html`<section class="body" tabindex="0"><h2>Only in ${relation(session.dialogs.find((known) => known.dialog === each.dialog))}, <code>${each.dialog.slice(0, 12)}</code>: ${counted(each.messages.length, "message")}</h2>
    ${each.said.map((message) => html`<p><a href=${address(`/s/${session.row.session}`, { d: each.dialog, e: message.handle })}>${visible(message.role)}</a> ${message.tools.map((name) => html`<b>${visible(name)} </b>`)}${line(message.label, 300)}</p>`)}
    ${each.said.length < each.messages.length && html`<p class="quiet">… and ${count(each.messages.length - each.said.length)} more.</p>`}</section>`;
  return html`<div class="bar">${value.ancestor ? html`<span>${counted(value.common, "message")} in common, up to <code>${value.ancestor}</code>.</span>` : "Nothing in common."}<span class="gap"></span><a href=${path}>JSON</a></div>
    <div class="split">${side(value.one)}${side(value.other)}</div>`;
}

/** What a policy would make of a call: computed in a process of its own, with progress; it ends with what asks for it. */
function WhatIf({ route, dialog, at, policy, budget, people }) {
  const [state, setState] = useState({ waiting: true, progress: null });
  const work = useRef(null);
  const cancel = () => {
    work.current?.abort();
    setState({ problem: new Problem("cancelled", "Cancelled.") });
  };
  useEffect(() => {
    if (exported) return setState({ problem: new Problem("left_out", "An exported file computes nothing.", "Open the session with `palaver open`.") });
    work.current = new AbortController();
    const asked = new URLSearchParams({ policy, ...(at && { call: at }), ...(budget && { budget }) });
    lines(`/api/dialogs/${dialog}/whatif?${asked}`, (told) => setState(told.result ? { value: told.result } : { waiting: true, progress: told }), { signal: work.current.signal })
      .catch((problem) => problem.name !== "AbortError" && setState({ problem }));
    return () => work.current.abort();
  }, []);
  if (state.problem) return html`<${State} problem=${state.problem} />`;
  if (!state.value) {
    const { done, of, what } = state.progress ?? {};
    return html`<div class="state" role="status"><p>${what ? visible(what) : "Starting …"}</p><progress value=${done} max=${of}></progress><p><button onClick=${cancel}>Cancel</button></p></div>`;
  }
  const found = state.value;
  const words = `${dialog.slice(0, 12)} --policy ${policy}${budget ? ` --budget ${budget}` : ""}`;
  const command = at ? !found.difference.recorded && `view ${words} --call ${at}` : `compact ${words}`;
  return html`<div class="bar">${at && html`<${Told} recorded=${found.difference.recorded} />`}<span>${at ? `At call ${at}` : "Now"}: <b>${visible(policy)}</b>${budget && ` in ${count(Number(budget))} tokens`} shows ${counted(found.tokens, "token")} in place of ${count(found.before)}.</span>
      ${found.difference && html`<${Broken} found=${found.difference} />`}<span class="gap"></span>
      ${command && html`<${Command} words=${command} />`}</div>
    ${found.notes?.map((note) => html`<div class="bar quiet">${visible(note)}</div>`)}
    <${Rows} found=${found.difference} people=${people} />`;
}
