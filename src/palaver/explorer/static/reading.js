// Reading: the conversation as a person reads it. Only what is near the window is in the page, whatever the heights are.

import { Block, Found } from "./body.js";
import { Patch } from "./code.js";
import { State, bytes, count, counted, html, line, useEffect, useLayoutEffect, useMemo, useRef, useState, visible, when } from "./dom.js";
import { useAnswer } from "./api.js";
import { useLabels } from "./labels.js";
import { List } from "./list.js";
import { Markdown } from "./markdown.js";

const TOGETHER = 20; // entries that are asked for and drawn together
const NEAR = 60; // entries within which the result of a call is drawn with it
const AROUND = 700; // pixels that are drawn above and below what is in sight
const STEP = 300; // pixels that are scrolled before it is drawn anew
const SMALL = 16; // lines of an edit that are shown without being asked for
const EDITED = [["old_string", "new_string"], ["old_str", "new_str"], ["oldText", "newText"], ["old_text", "new_text"]]; // the arguments of well-known tools
const SILENT = new Set("toolset call_started turn_started turn_ended cancelled approval context_edit pin label model_change mode_change invocation".split(" ")); // in the log only

/** Return where the result of each call is, by `call id`, and the call of each result, by `result id`. */
function paired(rows) {
  const called = new Map();
  const [answers, questions] = [new Map(), new Map()];
  rows.forEach((row, index) => {
    for (const id of row.calls) {
      const call = called.get(id);
      if (row.role === "assistant") called.set(id, index);
      else if (index - call <= NEAR && !answers.has(`${call} ${id}`)) {
        answers.set(`${call} ${id}`, index);
        questions.set(`${index} ${id}`, call);
      }
    }
  });
  return { answers, questions };
}

/** Return about how many pixels a row is high, before it is drawn. */
function guessed(row, index, questions) {
  if (SILENT.has(row.kind) || (row.role === "tool" && row.calls.every((id) => questions.has(`${index} ${id}`)))) return 0;
  return row.kind !== "message" || row.calls.length ? 34 : 60 + Math.min(row.size, 20000) * 0.3;
}

export function Reading({ dialog, rows, marks, label, sight, selected, choose, jumped }) {
  const box = useRef(null);
  const heights = useRef(new Map());
  const wanted = useRef(null);
  const [{ top, room }, setPlace] = useState({ top: 0, room: 800 });
  const [entry, ask] = useLabels(`/api/dialogs/${dialog}/read`, undefined, TOGETHER);
  const pairs = useMemo(() => paired(rows), [rows, rows.length]);
  const pages = Math.ceil(rows.length / TOGETHER);
  const guesses = useMemo(() => {
    const sums = new Array(pages).fill(0);
    rows.forEach((row, index) => (sums[Math.floor(index / TOGETHER)] += guessed(row, index, pairs.questions)));
    return sums;
  }, [pairs]);
  const tall = (page) => heights.current.get(page) ?? guesses[page];
  let [first, above] = [0, 0];
  while (first < pages - 1 && above + tall(first) < top - AROUND) above += tall(first++);
  let [stop, below] = [first, above];
  while (stop < pages && below < top + room + AROUND) below += tall(stop++);
  let rest = 0;
  for (let page = stop; page < pages; page += 1) rest += tall(page);
  const watch = useMemo(() => new ResizeObserver((changes) => changes.forEach(({ target }) => target.isConnected && heights.current.set(Number(target.dataset.page), target.offsetHeight))), []);
  useLayoutEffect(() => () => watch.disconnect(), []);
  useLayoutEffect(() => {
    const seen = new ResizeObserver(() => box.current && setPlace(({ top: now }) => ({ top: now, room: box.current.clientHeight })));
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  useEffect(() => ask(first * TOGETHER, Math.min(rows.length, stop * TOGETHER + NEAR)), [first, stop, rows.length]);
  useLayoutEffect(() => {
    watch.disconnect();
    box.current.querySelectorAll("[data-page]").forEach((page) => watch.observe(page));
    if (wanted.current === null) return;
    const place = box.current.querySelector(`[data-index="${wanted.current}"]`);
    if (place) place.scrollIntoView({ block: "start" });
  });
  useLayoutEffect(() => {
    if (selected < 0 || jumped.current === selected) return;
    jumped.current = selected;
    wanted.current = shownAt(rows, selected, pairs);
    let to = 0;
    for (let page = 0; page < Math.floor(wanted.current / TOGETHER); page += 1) to += tall(page);
    box.current.scrollTop = to;
    setPlace({ top: to, room: box.current.clientHeight });
  }, [selected, rows.length]);
  useEffect(() => {
    if (document.activeElement === document.body) box.current.focus({ preventScroll: true });
  }, []);
  const free = () => (wanted.current = null); // whoever scrolls is not led back
  const prompts = marks?.prompts ?? [];
  const drawn = [];
  for (let page = first; page < stop; page += 1) {
    const inside = [];
    for (let index = page * TOGETHER; index < Math.min(rows.length, (page + 1) * TOGETHER); index += 1) {
      if (!SILENT.has(rows[index].kind)) inside.push(html`<${Said} key=${index} index=${index} row=${rows[index]} entry=${entry} pairs=${pairs} rows=${rows} chosen=${index === selected} />`);
    }
    drawn.push(html`<section key=${page} data-page=${page}>${inside}</section>`);
  }
  return html`<div class="reading">
    <div class="page" id="reading" role="region" aria-label="Conversation" tabindex="0" ref=${box} onScroll=${(event) => { const at = event.currentTarget.scrollTop; if (Math.abs(at - top) > STEP || at === 0) setPlace((now) => ({ ...now, top: at })); }} onWheel=${free} onPointerDown=${free} onTouchMove=${free}
      onKeyDown=${(event) => /^(Arrow|Page|Home|End| )/.test(event.key) && free()}>
      <div style=${{ height: `${above}px` }}></div>${drawn}<div style=${{ height: `${rest}px` }}></div>
    </div>
    ${prompts.length > 0 && html`<nav class="prompts" aria-label="Prompts"><h2>${counted(prompts.length, "prompt")}</h2>
      <${List} id="prompts" label="Prompts" count=${prompts.length} height=${32} quiet=${true} selected=${prompts.findLastIndex((at) => at <= selected)} onSelect=${(at) => choose(prompts[at])}
        onSight=${(start, end) => prompts.slice(start, end).forEach((at) => sight(at, at + 1))} row=${(at) => html`<span class="grow">${line(label(prompts[at])?.label ?? "…", 90)}</span>`} /></nav>`}
  </div>`;
}

/** Return the row at which something is drawn: of a result its call, of what only the log has the next one. */
function shownAt(rows, index, { questions }) {
  const call = rows[index]?.role === "tool" && rows[index].calls.map((id) => questions.get(`${index} ${id}`)).find((at) => at !== undefined);
  if (call !== undefined && call !== false) return call;
  const next = rows.findIndex(({ kind }, at) => at >= index && !SILENT.has(kind));
  return next < 0 ? index : next;
}

/** Draw an entry. */
function Said({ index, row, entry, pairs, rows, chosen }) {
  const known = entry(index);
  const blocks = known?.found?.message?.contents;
  const who = row.speaker && row.speaker !== row.role ? row.speaker : row.role;
  const attributes = { "data-index": index, "aria-current": chosen ? "true" : undefined };
  if (!known) return html`<article ...${attributes} style=${{ minHeight: `${guessed(row, index, pairs.questions)}px` }}></article>`;
  if (known.error) return html`<article ...${attributes} class="said"><p class="bad">${visible(known.error.message)}</p></article>`;
  if (row.kind !== "message") return html`<article ...${attributes} class="said"><${Aside} row=${row} known=${known} /></article>`;
  const inside = (blocks ?? []).map((block, number) => html`<${Piece} key=${number} block=${block} row=${row} index=${index} entry=${entry} pairs=${pairs} rows=${rows} />`);
  if (row.role === "system" || (row.role === "user" && !["", "human"].includes(row.speaker))) return html`<article ...${attributes} class="said"><details><summary><span class="quiet">${visible(who)}: ${line(firstText(blocks), 120)}</span></summary>${inside}</details></article>`;
  const named = row.role === "user" || (row.role === "assistant" && spokeBefore(rows, index) !== "assistant");
  return html`<article ...${attributes} class=${`said ${row.role}`}>${named && html`<p class="by"><b>${visible(who)}</b> <span class="quiet">${[visible(known.found.message.model ?? ""), when(row.at)].filter(Boolean).join(" · ")}</span></p>`}
    ${inside}${known.found.message.error && html`<p class="bad">${visible(known.found.message.error)}</p>`}
    ${known.cut && html`<${Rest} handle=${row.handle} />`}</article>`;
}

/** Return who spoke last before an entry; tools do not speak. */
function spokeBefore(rows, index) {
  let at = index - 1;
  while (at > 0 && (rows[at].kind !== "message" || rows[at].role === "tool")) at -= 1;
  return rows[at]?.role;
}

function firstText(blocks) {
  return (blocks ?? []).find((block) => block.type === "text")?.content ?? "";
}

/** What is long is begun; the rest is asked for. */
function Rest({ handle }) {
  const [shown, setShown] = useState(false);
  return shown ? html`<${Original} handle=${handle} />` : html`<button onClick=${() => setShown(true)}>Show all of this entry</button>`;
}

/** An entry as it was recorded. */
function Original({ handle }) {
  const { value, problem, waiting } = useAnswer(`/api/entries/${handle}`);
  return value ? html`<${Found} found=${value.found} handle=${handle} />` : html`<${State} ...${{ problem, waiting }} />`;
}

/** What is not a message: a compaction, instructions, a summary. */
function Aside({ row, known }) {
  const { found } = known;
  const texts = [...(found.pieces ?? []), ...(found.sections ?? [])].map((piece) => piece.text).concat(found.summary).filter(Boolean);
  return html`<details class=${`aside ${row.kind}`}><summary><b>${visible(row.kind.replaceAll("_", " "))}</b> <span class="quiet">${line(texts[0] ?? found.message?.contents?.[0]?.content ?? "", 120)} ${bytes(row.size)}</span></summary>
    ${texts.map((text) => html`<${Markdown} text=${text} />`)}${texts.length === 0 && html`<${Original} handle=${row.handle} />`}${known.cut && html`<${Rest} handle=${row.handle} />`}</details>`;
}

/** Draw a block of a message. */
function Piece({ block, row, index, entry, pairs, rows }) {
  switch (block.type) {
    case "text":
      return html`<${Markdown} text=${block.content} />`;
    case "thinking":
      return html`<details class="thinking"><summary><span class="quiet">Thinking ${block.content ? bytes(block.content.length) : "(not readable)"}</span></summary>${block.content && html`<${Markdown} text=${block.content} />`}</details>`;
    case "tool_call": {
      const at = pairs.answers.get(`${index} ${block.id}`);
      const answer = at !== undefined && entry(at)?.found?.message?.contents?.find((part) => part.type === "tool_result" && part.id === block.id);
      return html`<${ToolCall} block=${block} answer=${answer} handle=${row.handle} of=${at === undefined ? null : rows[at].handle} />`;
    }
    case "tool_result":
      return pairs.questions.has(`${index} ${block.id}`) ? null : html`<${ToolCall} block=${{ name: "result", args: {} }} answer=${block} handle=${row.handle} of=${row.handle} />`;
    default:
      return html`<${Block} block=${block} handle=${row.handle} />`;
  }
}

/** A call in one line, with the first line of its result; opened, both whole. An edit is a patch. */
function ToolCall({ block, answer, handle, of }) {
  const edit = useMemo(() => edited(block.args), [block]);
  const [open, setOpen] = useState(edit !== null && edit.split("\n").length <= SMALL);
  const first = answer && resultText(answer).split("\n").find((each) => each.trim());
  const added = edit?.split("\n").filter((each) => each[0] === "+").length;
  const removed = edit?.split("\n").filter((each) => each[0] === "-").length;
  return html`<details class="tool" open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><b>${visible(block.name)}</b> <code>${argumentsLine(block)}</code>${edit !== null && html` <span class="good">+${count(added)}</span> <span class="bad">−${count(removed)}</span>`}${answer ? html`<span class=${answer.is_error ? "bad first" : "quiet first"}>${line(first || "(empty)", 120)}</span>` : html`<span class="warn first">${of ? "…" : "no result"}</span>`}</summary>
    ${open && (edit !== null ? html`<pre class="code" tabindex="0"><${Patch} text=${edit} language=${languageOf(block.args)} /></pre>` : html`<${Opened} block=${block} answer=${answer} handle=${handle} of=${of} />`)}
  </details>`;
}

function Opened({ block, answer, handle, of }) {
  const { value, problem, waiting } = useAnswer(of && `/api/entries/${of}`);
  const whole = value?.found.message?.contents.find((part) => part.type === "tool_result" && part.id === answer?.id);
  return html`${block.type && html`<${Block} block=${block} handle=${handle} />`}${of && (value ? html`<${Block} block=${whole ?? value.found} handle=${of} />` : html`<${State} ...${{ problem, waiting }} />`)}`;
}

function resultText(answer) {
  return typeof answer.content === "string" ? answer.content : (answer.content ?? []).map((part) => (part.type === "text" ? part.content : `[${part.type}]`)).join("\n");
}

function argumentsLine({ args, raw_args: raw }) {
  const told = Object.entries(args ?? {}).filter(([name, value]) => typeof value === "string" && !EDITED.flat().includes(name));
  return line(told.map(([, value]) => value).join(" ") || raw || (Object.keys(args ?? {}).length ? JSON.stringify(args) : ""), 110);
}

/** Return the end of the name of the file that a call edits. */
function languageOf(args) {
  const name = ["file_path", "path", "filePath"].map((each) => args?.[each]).find((each) => typeof each === "string");
  return /\.(\w{1,12})$/.exec(name ?? "")?.[1] ?? "";
}

/** Return the edit that a call makes, as the lines of a patch; null for any other call. */
function edited(args) {
  const edits = [args, ...(Array.isArray(args?.edits) ? args.edits : [])].flatMap((each) => EDITED.filter(([, fresh]) => typeof each?.[fresh] === "string").map(([old, fresh]) => changedLines(String(each[old] ?? ""), each[fresh])));
  const patch = Object.values(args ?? {}).flat().find((value) => typeof value === "string" && /^\*\*\* Begin Patch|^--- .*\n\+\+\+ /m.test(value));
  return edits.length ? edits.join("\n@@\n") : patch ?? null;
}

/** Return two texts as the lines of a patch: what both begin and end with is said once, two lines of it. */
function changedLines(old, fresh) {
  const [before, after] = [old.split("\n"), fresh.split("\n")];
  let [start, end] = [0, 0];
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const signed = (sign, lines) => lines.map((each) => `${sign}${each}`);
  const same = before.slice(before.length - end);
  return [...signed(" ", before.slice(Math.max(0, start - 2), start)), ...signed("-", before.slice(start, before.length - end)), ...signed("+", after.slice(start, after.length - end)), ...signed(" ", same.slice(0, 2))].join("\n");
}
