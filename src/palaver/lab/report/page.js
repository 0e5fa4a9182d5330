"use strict";

// A mark leads to the sessions of its policy in its group, and a call of a session to its file, its id and the commands that show its view and the session.

const { policies, sessions, replays, command } = JSON.parse(document.getElementById("data").textContent);
const chosen = document.getElementById("chosen");
const MOST = 200;

function element(name, text = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function show(policy, group) {
  const [by, name] = group;
  const rows = replays[policy].filter(([at]) => !by || sessions[at][by] === name);
  const needed = ([, , evidence, references]) => references - evidence;
  rows.sort((one, other) => needed(other) - needed(one) || other[1] - one[1]);
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const title of ["session", "tool", "tokens", "calls", "bill", "evidence", "calls that lack most"]) head.append(element("th", title));
  const body = table.createTBody();
  for (const [at, bill, evidence, references, calls] of rows.slice(0, MOST)) {
    const { id, tool, tokens, calls: count } = sessions[at];
    const row = body.insertRow();
    row.append(element("td", id), element("td", tool), element("td", tokens.toLocaleString("en"), "number"), element("td", String(count), "number"));
    row.append(element("td", bill.toFixed(3), "number"), element("td", references ? (evidence / references).toFixed(3) : "", "number"));
    const last = row.insertCell();
    for (const call of calls) {
      const button = element("button", String(call));
      button.addEventListener("click", () => place(row, policy, sessions[at], call));
      last.append(button);
    }
  }
  const words = `${policies[policy].name}${name ? `, ${name}` : ""}: ${rows.length} ${rows.length === 1 ? "session" : "sessions"}`;
  chosen.replaceChildren(element("h2", words), table);
  if (rows.length > MOST) chosen.append(element("p", `… ${rows.length - MOST} more: the results in --out have all.`));
}

function place(row, policy, { id, file, quoted, opens }, call) {
  document.getElementById("place")?.remove();
  const line = row.parentElement.insertRow(row.sectionRowIndex + 1);
  line.id = "place";
  const cell = line.insertCell();
  cell.colSpan = row.cells.length;
  const typed = `${command} ${policies[policy].words} --show ${id}:${call} --html call.html -- ${quoted}`;
  cell.append(element("p", `Call ${call} of session ${id}, from ${file}. To see its view under this policy:`), element("pre", typed));
  cell.append(element("p", "To see the session as it was recorded:"), element("pre", opens));
}

for (const mark of document.querySelectorAll("svg a")) {
  const policy = Number(mark.dataset.policy);
  const same = document.querySelectorAll(`svg a[data-policy="${policy}"]`);
  const { by, name } = mark.closest("figure").dataset;
  const lit = (on) => same.forEach((other) => other.classList.toggle("same", on));
  for (const event of ["mouseenter", "focus"]) mark.addEventListener(event, () => lit(true));
  for (const event of ["mouseleave", "blur"]) mark.addEventListener(event, () => lit(false));
  mark.addEventListener("click", () => {
    document.querySelector("svg a[aria-current]")?.removeAttribute("aria-current");
    mark.setAttribute("aria-current", "true");
    show(policy, [by, name]);
  });
}
document.documentElement.dataset.ready = "true";
