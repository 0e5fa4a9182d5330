// Where answers come from: the local server, or, in an exported file, the index in the file.

import { useEffect, useState } from "./dom.js";

/** Whether this page is an exported file. */
export const exported = document.getElementById("answers") !== null;

/** What the server says of itself and the store: `/api/about`, known before anything is drawn. */
export const about = {};

/** Something that went wrong, in words. */
export class Problem extends Error {
  constructor(kind, message, hint = "") {
    super(message);
    this.kind = kind;
    this.hint = hint;
  }
}

const inflated = new Map();

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"; // of base 85

/** Return the bytes of a text in base 85: four bytes of five digits, the last ones filled up. */
function unpacked(text) {
  const values = new Uint8Array(128);
  [...DIGITS].forEach((digit, value) => (values[digit.charCodeAt(0)] = value));
  const bytes = new DataView(new ArrayBuffer(4 * Math.ceil(text.length / 5)));
  for (let at = 0, place = 0; at < text.length; place += 4) {
    let number = 0;
    for (const end = at + 5; at < end; at += 1) number = number * 85 + (at < text.length ? values[text.charCodeAt(at)] : 84);
    bytes.setUint32(place, number);
  }
  return new Uint8Array(bytes.buffer, 0, Math.floor((text.length * 4) / 5));
}

/** Return the answers in a gzipped part of an exported file, by their paths. */
async function part(id) {
  if (!inflated.has(id)) {
    const stream = new Blob([unpacked(document.getElementById(id).textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
    inflated.set(id, new Response(stream).json());
  }
  return inflated.get(id);
}

/** Return an answer of an exported file. In the file of a session, a call has only the rows after those that it shares with the call before. */
async function kept(path) {
  const [, call, start, stop] = path.match(/^(.*\/calls\/\d+)\/labels\?start=(\d+)&stop=(\d+)$/) ?? [];
  if (call && (await stored(call)).same !== undefined) return (await kept(call)).labels.slice(start, stop);
  const [, dialog, first, end] = path.match(/^(.*)\/read\?start=(\d+)&stop=(\d+)$/) ?? [];
  if (dialog) {
    const [, ...parts] = await stored(`${dialog}/entries`);
    return Promise.all(parts.flat().slice(first, end).map(({ handle }) => stored(`/api/entries/${handle}`).catch((error) => ({ error }))));
  }
  const answer = await stored(path);
  let { same = 0, items, labels } = answer;
  for (let at = path; same > 0; ) {
    at = at.replace(/\d+$/, (number) => number - 1);
    const before = await stored(at);
    items = [...before.items.slice(0, Math.max(same - before.same, 0)), ...items];
    labels = [...before.labels.slice(0, Math.max(same - before.same, 0)), ...labels];
    same = Math.min(same, before.same);
  }
  return answer.same === undefined ? answer : { ...answer, items, labels };
}

/** Return an answer as an exported file stores it: `answers` maps each path to the part with its answer. */
async function stored(path) {
  const index = await part("answers");
  if (!(path in index)) throw new Problem("left_out", "This is not in the exported file.", "Open the session with `palaver open` to see it.");
  const answer = (await part(index[path]))[path];
  if (answer.error?.kind) throw new Problem(answer.error.kind, answer.error.message, answer.error.hint);
  return answer;
}

async function asked(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const again = about.option === null ? "Open the file with `palaver open` again." : `Run \`palaver open '${location.href}'${about.option}${about.writes ? " --write" : ""}\` to come back to this screen.`;
    throw new Problem("gone", "The server has ended.", again);
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: { kind: "unknown", message: `The server answered ${response.status}.` } }));
  throw new Problem(error.kind, error.message, error.hint);
}

/** Return the answer to a GET. */
export async function get(path, signal) {
  return exported ? kept(path) : (await asked(path, { signal })).json();
}

/** Send a value, and return the response. */
export async function send(path, value) {
  return asked(path, { method: "POST", body: JSON.stringify(value), headers: { "Content-Type": "application/json" } });
}

/** Read an answer of one JSON value a line, as it comes; an error is the last one. `options` are those of `fetch`. */
export async function lines(path, onLine, options) {
  if (exported) {
    for (const value of await kept(path)) onLine(value);
    return;
  }
  const reader = (await asked(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const found = (rest + (value ?? "")).split("\n");
    rest = found.pop();
    for (const one of found.filter(Boolean).map((each) => JSON.parse(each))) {
      if (one.error) throw new Problem(one.error.kind, one.error.message, one.error.hint);
      onLine(one);
    }
    if (done) return;
  }
}

/** Return `{value, problem, waiting}` of a GET; a null path asks nothing. */
export function useAnswer(path) {
  const [state, setState] = useState({ path: null });
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    get(path, stop.signal).then(
      (value) => setState({ path, value }),
      (problem) => problem.name !== "AbortError" && setState({ path, problem }),
    );
    return () => stop.abort();
  }, [path]);
  return path !== null && state.path === path ? { ...state, waiting: false } : { waiting: path !== null };
}

/** Return `{value, problem, progress, waiting}` of long work; the value of before stays until the next one is there. */
export function useWork(path) {
  const [state, setState] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    lines(path, (told) => setState((before) => (told.result ? { path, value: told.result } : { ...before, progress: told })), { signal: stop.signal }).catch((error) => error.name !== "AbortError" && setState({ path, problem: error }));
    return () => stop.abort();
  }, [path]);
  return { ...state, waiting: state.path !== path };
}

/** Give the one-time token of the address for a cookie. */
export async function login() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (exported || !words.has("token")) return;
  history.replaceState(null, "", `#${words.get("to") ?? "/"}`);
  await send("/api/login", { token: words.get("token") });
}
