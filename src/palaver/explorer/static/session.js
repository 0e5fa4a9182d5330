// A session, to be read or as its log: where did it fork, where was it compacted, where did it fail, what did the human say?

import { Acts, Decisions } from "./acts.js";
import { Body } from "./body.js";
import { Export } from "./export.js";
import { State, Told, bytes, count, counted, html, line, useEffect, useLayoutEffect, useMemo, useRef, useState, visible, when } from "./dom.js";
import { about, exported, lines, send, useAnswer } from "./api.js";
import { useLabels } from "./labels.js";
import { address, dialogOf, go, relation } from "./route.js";
import { Whole } from "./sessions.js";
import { List } from "./list.js";
import { Reading } from "./reading.js";

const JUMPS = { n: ["prompts", "prompt"], e: ["errors", "error"], c: ["compactions", "compaction"], b: ["branches", "fork"], w: ["waiting", "waiting message"] };
const SHOWN = { whole: "in view, whole", no: "not in view" };
const FOLDED = 200; // branches, or sub-agents, that are listed when they are unfolded

/** Read the rows of a dialog as they come. */
function useEntries(dialog) {
  const [state, setState] = useState({ rows: [], total: 0, waiting: true });
  useEffect(() => {
    const stop = new AbortController();
    const rows = [];
    let head = null;
    lines(`/api/dialogs/${dialog}/entries`, (part) => {
      if (!head) head = part;
      else rows.push(...part);
      setState({ rows, total: head.total, known: rows.length, waiting: true });
    }, { signal: stop.signal }).then(
      () => setState((before) => ({ ...before, waiting: false })),
      (problem) => problem.name !== "AbortError" && setState((before) => ({ ...before, waiting: false, problem })),
    );
    return () => stop.abort();
  }, [dialog]);
  return state;
}

export function Session({ route }) {
  const { value, problem, waiting } = useAnswer(`/api/sessions/${route.session}`);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  const dialog = dialogOf(value, route);
  return html`<${Shell} key=${dialog.dialog} route=${route} session=${value} dialog=${dialog} />`;
}

/** Return the row of an entry that is named by its number in the dialog, or by its handle with any length of the dialog's id. */
function found(rows, dialog, wanted) {
  if (!wanted) return -1;
  const [place, number] = wanted.includes(":") ? wanted.split(":") : [dialog, wanted];
  const end = `:${number}`;
  return rows.findIndex(({ handle }) => handle.endsWith(end) && (place.startsWith(handle.slice(0, -end.length)) || handle.startsWith(place)));
}

function Shell({ route, session, dialog }) {
  const { rows, total, waiting, problem } = useEntries(dialog.dialog);
  const [label, sight] = useLabels(`/api/dialogs/${dialog.dialog}/labels`);
  const { value: marks } = useAnswer(waiting ? null : `/api/dialogs/${dialog.dialog}/marks`);
  const { value: calls } = useAnswer(waiting ? null : `/api/dialogs/${dialog.dialog}/calls`);
  const forks = useMemo(() => new Set(marks?.branches), [marks]);
  const queued = useMemo(() => new Set(marks?.waiting), [marks]);
  const pins = useMemo(() => new Set(marks?.pins), [marks]);
  const compacted = useMemo(() => (marks?.compactions ?? []).map((index) => rows[index]).filter(Boolean), [marks]);
  const handle = (index) => rows[index]?.handle ?? null;
  const selected = useMemo(() => !route.words.e && route.screen ? 0 : found(rows, dialog.dialog, route.words.e), [route.words.e, route.screen, rows, rows.length]);
  const choose = (index) => go(address(`/s/${route.session}${route.screen && `/${route.screen}`}`, { ...route.words, e: handle(index) }), true);
  const jumped = useRef(-1); // where the reader was led last
  const jump = (key, name) => {
    const places = marks?.[name] ?? [];
    const from = inSight(jumped.current) ?? selected;
    const next = key === key.toLowerCase() ? places.find((at) => at > from) : places.findLast((at) => at < from);
    if (next === undefined) return;
    choose(next);
    document.getElementById(route.screen ? "entries" : "reading").focus();
  };
  useEffect(() => {
    if (!exported) send("/api/seen", { session: session.row.session, messages: session.row.messages }).catch(() => {});
  }, [route.session]);
  useLayoutEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select, dialog *")) return;
      jump(event.key, JUMPS[event.key.toLowerCase()]?.[0]);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  return html`<div class="bar titled">
      <h2>${line(session.row.title || session.row.name, 90)}</h2>
      <span class="quiet spare">${[session.row.agent, session.row.workdir, when(session.row.created_at)].filter(Boolean).map(visible).join(" · ")}</span>
      <span class="gap"></span>
      <${Export} what=${{ session: session.row.session, dialog: dialog.dialog }} /><a href=${`/api/dialogs/${dialog.dialog}/entries`}>JSON</a>
    </div>
    <${Decisions} session=${session} /><${Tree} session=${session} dialog=${dialog} route=${route} />
    ${route.screen && html`<${Strip} route=${route} calls=${calls} compacted=${compacted} />`}
    <div class="bar quiet" role="status">${counted(total, "entry", "entries")}${waiting ? `, ${count(rows.length)} read …` : ""}
      ${marks && Object.entries(JUMPS).map(([key, [name, noun]]) => marks[name].length > 0 && html`<button class="jump" onClick=${() => jump(key, name)}>${counted(marks[name].length, noun)} <kbd>${key}</kbd></button>`)}
      ${!waiting && html`<${Whole} session=${session.row.session} />`}</div>
    ${about.writes && !route.screen && selected >= 0 && html`<div class="bar"><${Acts} row=${rows[selected]} session=${session} dialog=${dialog} marks=${marks} /></div>`}
    ${problem ? html`<${State} problem=${problem} />` : !rows.length ? html`<${State} waiting=${waiting}>Nothing was said yet.<//>` : !route.screen ? html`<${Reading} ...${{ dialog: dialog.dialog, rows, marks, label, sight, selected, choose, jumped }} />` : html`<div class="split">
      <${List} id="entries" label="Entries" count=${rows.length} selected=${selected} onSelect=${choose} onSight=${sight}
        row=${(index) => html`<${EntryRow} row=${rows[index]} label=${label(index)} fork=${forks.has(index)} queued=${queued.has(index)} mark=${marks?.labels[rows[index].handle]} pinned=${pins.has(rows[index].handle)} />`} />
      <${Body} handle=${selected < 0 ? null : handle(selected)} head=${html`<${CallOf} row=${rows[selected]} calls=${calls} route=${route} /><${Acts} row=${rows[selected]} session=${session} dialog=${dialog} marks=${marks} />${selected >= 0 && !exported && html`<${Life} key=${handle(selected)} handle=${handle(selected)} dialog=${dialog.dialog} />`}`} />
    </div>`}`;
}

/** Return the entry at the top of what is read, where the one that the reader was led to is out of sight; undefined in the log. */
function inSight(led) {
  const box = document.getElementById("reading");
  if (!box) return undefined;
  const { top, bottom } = box.getBoundingClientRect();
  const seen = [...box.querySelectorAll("[data-index]")].filter((each) => each.getBoundingClientRect().bottom > top + 4 && each.getBoundingClientRect().top < bottom).map((each) => Number(each.dataset.index));
  return seen.includes(led) ? led : seen[0];
}

/** Lead from an entry to the call that it answers or records. */
function CallOf({ row, calls, route }) {
  const call = row && calls?.find((one) => one.entry === row.handle);
  return call ? html`<p><a href=${address(`/s/${route.session}/call/${call.call}`, { d: route.words.d })}>What the model saw: call ${count(call.call)}</a> <${Told} recorded=${call.recorded} /></p>` : null;
}

/** Say, when asked, at which calls an entry was in view, what changed that, and what still says it. */
function Life({ handle, dialog }) {
  const [asked, setAsked] = useState(false);
  const { value, problem, waiting } = useAnswer(asked ? `/api/dialogs/${dialog}/seen?handle=${handle}` : null);
  if (!asked) return html`<p><button onClick=${() => setAsked(true)}>When was this in view?</button></p>`;
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  return html`<ul class="life">${value.why.steps.map((step, index) => html`<li>${index > 0 && html`${visible(step.kind.replaceAll("_", " "))} <code>${visible(step.since)}</code>: `}${SHOWN[step.shown] ?? `in view ${step.shown}`}${step.reason && ` (${step.reason.replaceAll("_", " ")} by ${visible(step.by)})`}; ${step.calls ? `calls ${step.calls.map(count).join(" to ")}` : "no call"}${step.still.map((still) => `; a ${visible(still.what)}: ${still.how}`).join("")}</li>`)}</ul>`;
}

function EntryRow({ row, label, fork, queued, mark, pinned }) {
  const { handle, kind, role, speaker, at, size } = row;
  const who = kind === "message" ? (speaker && speaker !== role ? `${role} (${speaker})` : role) : kind.replaceAll("_", " ");
  return html`<span class="number quiet seq">${handle.split(":")[1]}</span><span class=${`who ${kind === "message" ? role : "other"}`}>${visible(who)}</span>
    ${fork && html`<b class="warn">fork</b>`}${queued && html`<b class="warn">waiting</b>`}${pinned && html`<b class="good">pinned</b>`}${mark && html`<b class="told">${line(mark, 40)}</b>`}
    <span class=${`grow${label?.error ? " bad" : ""}`}>${label ? html`${(label.tools ?? []).map((name) => html`<b>${visible(name)} </b>`)}${line(label.label) || html`<span class="quiet">(${row.label || "no words"})</span>`}` : ""}</span>
    <span class="number quiet">${bytes(size)}</span><span class="number quiet" title=${when(at)}>${when(at).slice(11)}</span>`;
}

/** The tree: the live branch and the one that is shown; the abandoned ones, and the dialogs of sub-agents, folded with a count. */
function Tree({ session, dialog, route }) {
  if (session.dialogs.length < 2) return null;
  const to = (one) => address(`/s/${route.session}${route.screen && "/log"}`, { d: one.dialog });
  const item = (one) => html`<li><a href=${to(one)} aria-current=${one.dialog === dialog.dialog ? "true" : undefined}>${relation(one)}</a>
    <span class="quiet"> ${counted(one.messages, "message")}${one.main && one.parent ? ", live" : ""}</span>
    ${one.dialog !== dialog.dialog && one.relation !== "subagent" && html` <a href=${address(`/s/${route.session}/compare`, { one: dialog.dialog, other: one.dialog })}>compare</a>`}</li>`;
  const far = session.dialogs.filter((one) => !one.main && one.dialog !== dialog.dialog);
  const folded = (few, noun, plural) => few.length > 0 && html`<details><summary>${counted(few.length, noun, plural)}</summary><ul class="tree">${few.slice(0, FOLDED).map(item)}</ul>
    ${few.length > FOLDED && html`<p class="quiet">… and ${count(few.length - FOLDED)} more: <code>palaver branch</code> lists them.</p>`}</details>`;
  return html`<div class="bar"><h2>${session.row.branches > 1 ? "Branches" : "Dialogs"}</h2><ul class="tree">${session.dialogs.filter((one) => !far.includes(one)).map(item)}</ul>
    ${folded(far.filter((one) => one.relation !== "subagent"), "other branch", "other branches")}${folded(far.filter((one) => one.relation === "subagent"), "sub-agent")}</div>`;
}

/** A strip of the tokens of each call, with a line at each compaction; a click goes to the call. */
function Strip({ route, calls, compacted }) {
  const place = useRef(null);
  const sizes = useMemo(() => (calls ?? []).map((call) => call.read + call.written), [calls]);
  const marked = useMemo(() => compacted.map((row) => sizes.length && calls.findIndex((call) => call.at >= row.at)).filter((index) => index > 0), [compacted, sizes]);
  useEffect(() => {
    const canvas = place.current;
    if (!canvas || !sizes.length) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const pen = canvas.getContext("2d");
    const most = Math.max(...sizes, 1);
    const wide = canvas.width / sizes.length;
    pen.fillStyle = getComputedStyle(canvas).color;
    sizes.forEach((size, index) => pen.fillRect(index * wide, canvas.height * (1 - size / most), Math.max(1, wide - 1), canvas.height));
    pen.fillStyle = getComputedStyle(canvas).borderColor;
    for (const index of marked) pen.fillRect(index * wide - ratio, 0, 2 * ratio, canvas.height);
  }, [sizes, marked]);
  if (!sizes.length) return null;
  const open = (event) => go(address(`/s/${route.session}/call/${1 + Math.min(sizes.length - 1, Math.floor((event.offsetX / place.current.clientWidth) * sizes.length))}`, { d: route.words.d }));
  return html`<div class="bar"><span><a href=${address(`/s/${route.session}/call/${sizes.length}`, { d: route.words.d })}>${counted(sizes.length, "call")}</a></span><${Told} recorded=${calls.every((call) => call.recorded)} />
    <canvas class="strip" ref=${place} role="img" title="Tokens of each call: a gap used none, a line is a compaction" aria-label=${`Tokens of each of ${counted(sizes.length, "call")}, at most ${count(Math.max(...sizes))}; ${counted(marked.length, "compaction")}`} onClick=${open}></canvas></div>`;
}
