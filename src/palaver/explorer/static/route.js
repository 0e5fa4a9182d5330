// Routing: what an address names, and how to go there.

import { visible } from "./dom.js";
import { Problem, about, exported } from "./api.js";

/** Return the parts of an address, as they are written: `#/s/ID/call/3?d=X` gives `{session, screen, number, words}`. */
export function routed(hash) {
  const [path, query] = hash.replace(/^#/, "").split("?");
  const [, first = "", session, screen = "", number] = path.split("/");
  return { first, session, screen, number: number === undefined ? null : Number(number), words: Object.fromEntries(new URLSearchParams(query)) };
}

/** Return the address of a screen; words that are empty are left out. Undefined for a screen that an exported file lacks. */
export function address(path, words = {}) {
  if (exported && !held(routed(path), words)) return undefined;
  const query = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return `#${path}${query.size ? `?${query}` : ""}`;
}

function held({ first, screen, number }, { one, wire }) {
  if (first !== "s" || (screen === "compare" && one)) return true;
  const only = routed(about.start).number; // the one call in the file
  return about.screens.includes(screen) && (screen !== "call" || (only === null ? !wire : number === only));
}

/** Return the dialog that a route names, by its id or the first digits of it, else the live one. */
export function dialogOf(session, route) {
  const { d } = route.words;
  const begun = d ? session.dialogs.filter((one) => one.dialog.startsWith(d)) : [];
  const found = d ? (begun.length === 1 ? begun[0] : undefined) : session.dialogs.find((one) => one.main) ?? session.dialogs[0];
  if (!found) throw new Problem("not_found", d ? begun.length ? `Several dialogs of this session begin with ${d}.` : `This session has no dialog ${d}.` : "This session has no dialog.");
  return found;
}

/** Return what a dialog is: the main one, a branch, or a sub-agent's. */
export function relation({ relation: what, owner, parent, at, main }) {
  if (what === "subagent") return visible(`sub-agent ${owner}`);
  return parent ? `${what}${at === null ? "" : ` after entry ${at}`}` : main ? "main" : "first branch";
}

/** Go to a screen; `replace` leaves no step to go back to. */
export function go(to, replace = false) {
  if (to === undefined) return;
  if (!replace) location.hash = to;
  else {
    history.replaceState(null, "", to);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** Change words of the address that is shown. */
export function reword(words) {
  const [path] = location.hash.slice(1).split("?");
  go(address(path, { ...routed(location.hash).words, ...words }), true);
}
