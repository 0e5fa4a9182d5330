// Acting, where the server may write: fork, label, pin, approve and deny. What can be taken back has an undo; anything else is asked first.

import { html, line, useEffect, useLayoutEffect, useRef, useState, visible, when } from "./dom.js";
import { about, send, useAnswer } from "./api.js";
import { address, go } from "./route.js";
import { Long } from "./body.js";

const ACTED = "acted"; // the event after each action
const OPPOSITE = { pin: "unpin", unpin: "pin" };

/** Do something, and tell what was done; `undo` takes it back. */
async function act(path, value, told, undo) {
  const answer = await (await send(path, value)).json();
  dispatchEvent(new CustomEvent(ACTED, { detail: { told, undo: undo?.(answer) } }));
  return answer;
}

/** Say what was done last, with its undo. `again` reads what is shown again. */
export function Done({ again }) {
  const [{ told, undo, problem }, setDone] = useState({});
  useEffect(() => {
    const heard = ({ detail }) => {
      setDone(detail);
      again();
    };
    addEventListener(ACTED, heard);
    return () => removeEventListener(ACTED, heard);
  }, []);
  if (!about.writes) return null;
  return html`<span role="status" class=${problem ? "bad" : "good"}>${problem ? visible(problem.message) : told} ${undo && html`<button onClick=${() => undo().catch((error) => setDone({ problem: error }))}>Undo</button>`}</span>`;
}

/** A question in a layer of its own; `act` gets the fields of the form. A refusal is shown in it. */
function Question({ title, word, close, act: does, children }) {
  const box = useRef(null);
  const [{ problem, waiting }, setState] = useState({});
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus();
  }, []);
  const sent = async (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.currentTarget));
    setState({ waiting: true });
    try {
      await does(fields);
      close();
    } catch (error) {
      setState({ problem: error });
    }
  };
  return html`<dialog class="question" aria-label=${title} ref=${box} onClose=${close} onKeyDown=${(event) => event.stopPropagation()}><form onSubmit=${sent}>
    <h2>${title}</h2>${children}
    ${problem && html`<p class="bad" role="alert">${visible(problem.message)} ${visible(problem.hint)}</p>`}
    <p class="answers"><button type="button" autofocus onClick=${close}>Cancel</button><button disabled=${waiting || problem?.kind === "Conflict"}>${word}</button></p></form></dialog>`;
}

/** What can be done with an entry of a dialog. */
export function Acts({ row, session, dialog, marks }) {
  const [asked, ask] = useState({});
  const [problem, setProblem] = useState(null);
  useEffect(() => setProblem(null), [row?.handle]);
  if (!about.writes || !row || !marks) return null;
  const { handle } = row;
  const path = `/api/dialogs/${dialog.dialog}`;
  const number = handle.split(":")[1];
  const label = marks.labels[handle] ?? "";
  const pinned = marks.pins.includes(handle);
  const close = () => ask({});
  const mark = (what) => act(`${path}/${what}`, { handle }, `Entry ${number} ${what}ned.`, () => () => mark(OPPOSITE[what]));
  const name = (words) => act(`${path}/label`, { handle, label: words }, words ? `Entry ${number} labelled.` : `Entry ${number} has no label.`, ({ before }) => () => name(before));
  const fork = async () => {
    const made = await act(`${path}/fork`, { handle }, `Forked after entry ${number}.`);
    go(address(`/s/${session.row.session}/log`, { d: made.dialog }));
  };
  const question = asked.handle === handle && asked.what;
  return html`<p class="acts"><span class="quiet">Entry ${number}</span> <button onClick=${() => ask({ handle, what: "fork" })}>Fork here …</button> <button onClick=${() => ask({ handle, what: "label" })}>${label ? html`Label: ${line(label, 40)} …` : "Label …"}</button>
      ${["message", "branch_summary"].includes(row.kind) && html` <button onClick=${() => mark(pinned ? "unpin" : "pin").catch(setProblem)}>${pinned ? "Unpin" : "Pin"}</button>`}</p>
    ${problem && html`<p class="bad" role="alert">${visible(problem.message)}</p>`}
    ${question === "fork" && html`<${Question} title=${`Fork after entry ${number}?`} word="Fork" close=${close} act=${fork}><p>A new branch of “${line(session.row.title || session.row.name, 90)}” begins after <code>${handle}</code> and shares what was said until there. It cannot be deleted alone.</p><//>`}
    ${question === "label" && html`<${Question} title=${`Label entry ${number}`} word="Save" close=${close} act=${({ words }) => name(words.trim())}><p><label>Label <input name="words" autofocus maxlength="200" value=${label} /></label></p><p class="quiet">For people; no model sees it. Empty, it is removed.</p><//>`}`;
}

/** The calls of a session that a person has to decide about, each with both decisions. */
export function Decisions({ session }) {
  const { value } = useAnswer(about.writes ? `/api/sessions/${session.row.session}/waiting` : null);
  const [asked, ask] = useState(null);
  if (!value?.rows.length) return null;
  const words = (row) => line(JSON.stringify(row.arguments), 80);
  return html`<div class="bar waiting"><h2>Waiting for a decision</h2><ul class="tree">${value.rows.map((row) => html`<li><b>${visible(row.tool)}</b> <code>${words(row)}</code>
      ${[["approve", "Approve …"], ["deny", "Deny …"]].map(([what, said]) => html` <button aria-label=${`${said} ${line(row.tool, 40)} ${words(row)}`} onClick=${() => ask({ row, what })}>${said}</button>`)}</li>`)}</ul>
    ${asked && html`<${Decision} key=${`${asked.what} ${asked.row.dialog} ${asked.row.call}`} ...${asked} session=${session} close=${() => ask(null)} />`}</div>`;
}

/** The question before a decision: the tool, all its arguments, and who waits. */
function Decision({ row, what, session, close }) {
  const name = line(row.tool, 40);
  const agent = session.dialogs.find((one) => one.dialog === row.dialog);
  const facts = [["session", session.row.title || session.row.name], ["agent", agent?.owner], ["call", row.call], ["since", when(row.since)], ["until", when(row.until)]];
  const decide = ({ reason }) => act(`/api/dialogs/${row.dialog}/${what}`, { call: row.call, ...(reason ? { reason } : {}) }, what === "approve" ? `${name} approved.` : `${name} denied.`);
  return html`<${Question} title=${`${what === "approve" ? "Approve" : "Deny"} ${name}?`} word=${what === "approve" ? "Approve" : "Deny"} close=${close} act=${decide}>
    <dl>${facts.filter(([, fact]) => fact).map(([noun, fact]) => html`<dt>${noun}</dt><dd>${line(fact, 200)}</dd>`)}</dl><div class="arguments" tabindex="0" role="group" aria-label="Arguments"><${Long} text=${JSON.stringify(row.arguments, null, 2)} /></div>
    ${what === "deny" && html`<p><label>Why (the model reads it) <input name="reason" maxlength="2000" /></label></p>`}
    <p class="quiet">The agent goes on when it responds again. Until the call begins, the terminal can replace the decision.</p><//>`;
}
