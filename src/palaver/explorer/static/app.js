// The page: which screen the address names, the keys that work on every screen, and search over all.

import { State, html, line, render, useEffect, useErrorBoundary, useLayoutEffect, useState } from "./dom.js";
import { Problem, about, exported, get, login } from "./api.js";
import { address, go, reword, routed } from "./route.js";
import { Sessions } from "./sessions.js";
import { Session } from "./session.js";
import { CallScreen } from "./call.js";
import { Compare } from "./compare.js";
import { Cost } from "./cost.js";
import { Costs } from "./costs.js";
import { Search } from "./search.js";
import { Home } from "./home.js";
import { Done } from "./acts.js";

const SCREENS = { "": exported ? Sessions : Home, sessions: Sessions, costs: Costs };
const STORE = [["", "Home"], ["sessions", "Sessions"], ["costs", "Costs"]];
const OF_SESSION = { "": Session, log: Session, call: CallScreen, compare: Compare, cost: Cost };

const DEFECT = new Problem("defect", "This screen cannot be drawn: a defect of palaver.", "The browser's console has the details.");

const LOOK = 2000; // milliseconds after which the session that is shown is looked at again

const KEYS = [
  ["/", "search"],
  ["?", "these keys"],
  ["↑ ↓ PageUp PageDown Home End", "move in a list"],
  ["Enter", "open what is selected"],
  ["n N", "next or previous prompt of the human"],
  ["e E", "next or previous error"],
  ["c C", "next or previous compaction"],
  ["b B", "next or previous branch"],
  ["w W", "next or previous waiting message"],
  ["[ ]", "previous or next call"],
  ["u", "up: from a call to its session, from a session to the list, from there home"],
  ["Escape", "close what is open"],
];

/** Return what is open ("search", "keys") over the screen that the address names; whoever goes to another screen closes it. */
function over(what) {
  return { what, at: location.hash.split("?")[0] };
}

function App({ problem }) {
  const [hash, setHash] = useState(location.hash);
  const [open, setOpen] = useState(routed(location.hash).words.find ? "search" : ""); // or "keys", or nothing
  const [version, setVersion] = useState(0);
  const route = routed(hash);
  const close = () => {
    setOpen({});
    reword({ find: "", all: "" });
  };
  const [failed, again] = useErrorBoundary((error) => error instanceof Problem || console.error(error));
  useEffect(() => {
    const changed = () => {
      setHash(location.hash);
      setOpen((now) => (routed(location.hash).words.find ? over("search") : now.at === over().at ? now : {}));
      again();
    };
    const pressed = (event) => {
      if (event.key === "Escape") setOpen({});
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
      const keys = { "/": () => setOpen(over("search")), "?": () => setOpen(over("keys")), u: () => go(up(routed(location.hash))) };
      if (event.key in keys) {
        event.preventDefault();
        keys[event.key]();
      }
    };
    addEventListener("hashchange", changed);
    addEventListener("keydown", pressed);
    return () => {
      removeEventListener("hashchange", changed);
      removeEventListener("keydown", pressed);
    };
  }, []);
  const Screen = route.first === "s" ? OF_SESSION[route.screen] : SCREENS[route.first];
  const wrong = problem ?? (failed instanceof Problem ? failed : failed && DEFECT);
  return html`<header>
      <h1 class="brand"><a href=${about.start ? `#${about.start}` : "#/"}>palaver</a></h1>
      ${!route.session && !exported && html`<nav aria-label="Store">${STORE.map(([first, title]) => html`<a href=${`#/${first}`} aria-current=${route.first === first ? "page" : undefined}>${title}</a>`)}</nav>`}
      ${route.session && html`<nav aria-label="Session"><${Tabs} route=${route} /></nav>`}
      <span class="gap"></span>
      ${route.session && html`<${Done} key=${route.session} again=${() => setVersion((now) => now + 1)} />`}
      ${route.session && !exported && !problem && html`<${Fresh} key=${`${route.session} ${version}`} session=${route.session} again=${() => setVersion(version + 1)} />`}
      ${exported && html`<span class="told">exported file</span>`}
      <button onClick=${() => setOpen(over("search"))}>Search <kbd>/</kbd></button>
      <button onClick=${() => setOpen(over("keys"))} aria-label="Keys"><kbd>?</kbd></button>
    </header>
    <main>${wrong ? html`<${State} problem=${wrong} />` : Screen ? html`<${Screen} key=${`${route.session} ${version}`} route=${route} />` : html`<${State}>There is no such page.<//>`}</main>
    ${open.what === "search" && html`<${Layer} label="Search" close=${close}><${Search} route=${route} close=${close} /><//>`}
    ${open.what === "keys" && html`<${Layer} label="Keys" close=${close}><h2>Keys</h2><dl>${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl><//>`}`;
}

/** Say when the session that is shown has changed, was erased, or can be read no more. */
function Fresh({ session, again }) {
  const [told, setTold] = useState({});
  useEffect(() => {
    let first = null;
    const look = async () => {
      if (document.hidden) return;
      try {
        const { updated_at: at } = await get(`/api/sessions/${session}/updated`);
        first ??= at;
        setTold({ changed: at !== first });
      } catch (problem) {
        if (first !== null) setTold({ problem }); // otherwise the screen says it
      }
    };
    look();
    const timer = setInterval(look, LOOK);
    return () => clearInterval(timer);
  }, []);
  return html`<span role="status" class="warn">${told.problem ? line(told.problem.message) : told.changed && html`This session has changed. <button onClick=${again}>Read it again</button>`}</span>`;
}

function up({ session, screen }) {
  return session && screen ? address(`/s/${session}`) : session && !exported ? "#/sessions" : "#/";
}

function Tabs({ route }) {
  const tabs = [["", "Read"], ["log", "Log"], ["call", "Call"], ["compare", "Compare"], ["cost", "Cost"]];
  const { d, e } = route.words;
  return tabs.filter(([screen]) => !exported || about.screens.includes(screen)).map(([screen, title]) => html`<a href=${address(`/s/${route.session}${screen && `/${screen}`}${screen === "call" ? `/${route.number ?? 1}` : ""}`, { d, e: ["", "log"].includes(screen) && ["", "log"].includes(route.screen) ? e : "" })}
    aria-current=${route.screen === screen ? "page" : undefined}>${title}</a>`);
}

/** A layer over the page; focus goes into it, and back when it closes. */
function Layer({ label, close, children }) {
  useLayoutEffect(() => {
    const before = document.activeElement;
    document.querySelector("dialog").showModal();
    return () => before?.focus();
  }, []);
  return html`<dialog aria-label=${label} onClose=${close}><button class="close" onClick=${close}>Close</button>${children}</dialog>`;
}

async function start() {
  let problem = await login().catch((error) => error); // an address that was used before is good where the cookie is
  try {
    Object.assign(about, await get("/api/about"));
    problem = null;
    if (about.start && !location.hash) history.replaceState(null, "", `#${about.start}`);
  } catch (error) {
    problem ??= error;
  }
  const place = document.getElementById("app");
  place.replaceChildren();
  render(html`<${App} problem=${problem} />`, place);
  document.documentElement.dataset.ready = "true";
}

start();
