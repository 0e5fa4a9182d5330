// What every screen draws with. Whatever was said reaches the page as text nodes, never as markup.

export const { h, render } = globalThis.preact;
export const { useState, useEffect, useErrorBoundary, useLayoutEffect, useRef, useMemo } = globalThis.preactHooks;
export const html = globalThis.htm.bind(h);

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Return a text with the characters that control or reorder (UAX 9, table 4) written as their numbers. */
export function visible(value) {
  const text = String(value ?? "").replaceAll("\r\n", "\n");
  return text.replace(UNSEEN, (sign) => `[U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Return the beginning of a text on one line. */
export function line(value, length = 160) {
  const text = visible(String(value ?? "").slice(0, length * 4)).replace(/\s+/g, " ").trim();
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

export function count(value) {
  return value === null || value === undefined ? "" : Math.round(value).toLocaleString("en");
}

/** Return `1 call`, `2 calls`. */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** Return dollars; nothing for none. */
export function money(value, estimated) {
  if (!value) return "";
  return value < 0.00005 ? "<$0.0001" : `${estimated ? "~" : ""}$${value.toFixed(value < 0.1 ? 4 : 2)}`;
}

export function bytes(value) {
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${(value / 1e3).toFixed(1)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/** Return a time (seconds since 1970 UTC) in the reader's zone: `2026-11-23 14:05`. */
export function when(seconds) {
  if (!seconds) return "";
  const at = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Return how long ago a time was: `5 min ago`, `3 days ago`. */
export function ago(seconds) {
  if (!seconds) return "";
  const gone = Math.max(0, Date.now() / 1000 - seconds);
  const units = [[86400 * 365, "year"], [86400 * 30, "month"], [86400, "day"], [3600, "hour"], [60, "minute"]];
  const found = units.find(([length]) => gone >= length);
  return found ? `${counted(Math.floor(gone / found[0]), found[1])} ago` : "just now";
}

/** Return a link's address where it may be followed: http and https only. */
export function safe(address) {
  return /^https?:\/\//i.test(String(address)) ? address : undefined;
}

/** The mark of every call that is shown. */
export function Told({ recorded, proved, policy }) {
  const words = recorded ? (proved === false ? "recorded, cannot be proved" : "recorded") : "reconstructed";
  const why = recorded
    ? "What was sent, rebuilt and compared with the digest that was recorded."
    : "What was said before each response. What was sent is not recorded, or was erased.";
  if (policy) return html`<span class="told reconstructed" title="What this policy would have shown at this call. It was not sent.">replayed under ${visible(policy)}</span>`;
  return html`<span class=${`told ${recorded ? "recorded" : "reconstructed"}`} title=${why}>${words}</span>`;
}

/** What is shown where something is loading, empty or wrong. */
export function State({ problem, waiting, children }) {
  if (problem) {
    return html`<div class="state problem" role="alert"><p>${visible(problem.message)}</p>${problem.hint && html`<p>${visible(problem.hint)}</p>`}</div>`;
  }
  if (waiting) return html`<p class="state" role="status">Loading …</p>`;
  return html`<p class="state">${children}</p>`;
}
