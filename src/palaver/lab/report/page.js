// Draws the charts of the policies that are to be shown, and the view of a call that is clicked or named. All text goes in as text, never as markup.
const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const data = JSON.parse(await new Response(stream).text());

const by = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en-US");
const counted = (count, one, many) => `${whole.format(count)} ${count === 1 ? one : many}`;
const money = (value) => (data.currency === "USD" ? "$" + value.toFixed(4) : whole.format(Math.round(value)) + " input tokens");

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function rowsOf(key) {
  const found = [];
  for (const [policy, calls] of Object.entries(data.chosen[key].calls)) {
    for (const values of calls) {
      const row = { policy };
      data.columns.forEach((column, at) => (row[column] = values[at]));
      found.push({ ...row, start: row.call - 0.5 });
    }
  }
  return found;
}

const nameOf = (policy) => data.names[policy] || policy;
const wanted = new Set(data.policies);

// What is drawn of a session: `end` says where a call's place in the chart ends, and is missing where there is none.
const drawnOf = (rows) => rows.filter((row) => row.end !== null && wanted.has(row.policy)).map((row) => ({ ...row, policy: nameOf(row.policy), own: row.policy }));

const dark = matchMedia("(prefers-color-scheme: dark)");
const night = {
  axis: { gridColor: "#2d343c", domainColor: "#66727f", tickColor: "#66727f", labelColor: "#b4bec8", titleColor: "#b4bec8" },
  header: { labelColor: "#dde3e9" },
  legend: { labelColor: "#b4bec8" },
};

function looked(spec) {
  if (!dark.matches) return spec;
  const config = { ...spec.config };
  for (const [part, words] of Object.entries(night)) config[part] = { ...config[part], ...words };
  return { ...spec, background: null, config };
}

const drawing = {}; // of each chart the one that is being drawn: two at once would be two charts

function draw(id, spec, rows, clicked) {
  drawing[id] = (drawing[id] || Promise.resolve()).then(async () => {
    const renderer = rows.length > 3000 ? "canvas" : "svg"; // so many elements would take a browser's breath
    const chart = await vegaEmbed(by(id), { ...looked(spec), data: { values: rows } }, { actions: false, renderer });
    chart.view.addEventListener("click", (event, item) => item && item.datum && clicked(item.datum));
  });
  return drawing[id];
}

// --- a session ----------------------------------------------------------------------------------------------------------

let current = "";
let from = null; // what had the focus before a call was shown

async function choose(key) {
  current = key;
  by("session").value = key;
  const session = data.sessions[key];
  by("about").textContent = `${session.format}, ${counted(session.messages, "message", "messages")}, ${counted(session.calls, "call", "calls")}; ${session.source}`;
  by("gap").textContent = data.gaps[key] ? `Left out of this page: ${data.gaps[key]}. The command that a call names shows it.` : "";
  by("number").max = session.calls;
  const policy = by("policy").value;
  by("policy").replaceChildren(...Object.keys(data.chosen[key].calls).map((name) => element("option", nameOf(name), { value: name })));
  if (data.chosen[key].calls[policy]) by("policy").value = policy;
  await drawn();
}

async function drawn() {
  if (!current) return;
  const key = current;
  const rows = drawnOf(rowsOf(key));
  const clicked = (datum) => datum.call && show(key, datum.own, datum.call);
  await draw("composition", data.specs.composition, rows, clicked);
  await draw("cache", data.specs.cache, rows, clicked);
}

function show(key, policy, call) {
  const row = rowsOf(key).find((one) => one.policy === policy && one.call === call);
  if (!row) return false;
  by("policy").value = policy;
  by("number").value = call;
  by("said").textContent = "";
  const parts = data.parts.filter((part) => row[part]).map((part) => `${part} ${whole.format(row[part])}`);
  const content = row.evidence === null ? "" : `, ${row.evidence} of them as content`;
  const facts = [
    `${whole.format(row.tokens)} tokens (${parts.join(", ")})`,
    `${whole.format(row.read)} read from the cache, ${whole.format(row.written)} anew`,
    `costs ${money(row.cost)}` + (row.recall_cost ? `, recalls ${money(row.recall_cost)}` : ""),
    row.references ? `of ${row.references} references ${row.in_view} in view${content}, ${row.reached} within a lookup` : "refers to nothing said before",
    row.mark ? `here the policy made the view smaller (${row.mark})` : "",
    row.infeasible ? `infeasible: ${whole.format(row.infeasible)} tokens must be sent, more than the budget allows` : "",
    `view ${row.digest}`,
  ];
  opened(`Call ${call} of ${data.sessions[key].name || key} under ${policy}`, facts.filter(Boolean).join("; ") + ".", data.commands[key][policy] + call, shown(key, policy, call, row.digest));
  return true;
}

// Shows the section of one call, and puts the focus there: who works with the keyboard goes on reading where it opened.
function opened(title, facts, command, units) {
  from = document.activeElement;
  by("call").hidden = false;
  by("call-title").textContent = title;
  by("call-facts").textContent = facts;
  by("call-command").textContent = command;
  by("view").replaceChildren(...units);
  for (const said of by("view").querySelectorAll("pre")) if (said.scrollHeight > said.clientHeight) reachable(said, "The words of this block");
  by("call-title").focus({ preventScroll: true });
  by("call").scrollIntoView();
}

function reachable(made, name) {
  for (const [key, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": name })) made.setAttribute(key, value);
}

function shown(key, policy, call, digest) {
  const kept = data.chosen[key].views;
  const at = data.chosen[key].calls[policy].findIndex((values) => values[0] === call);
  if (!kept || !kept.views[policy] || kept.digests[policy][at] !== digest) {
    return [element("p", "This view is not kept in the report; the command above shows it.", { class: "note" })];
  }
  let numbers = [];
  for (const [prefix, more] of kept.views[policy].slice(0, at + 1)) numbers = numbers.slice(0, prefix).concat(more);
  return numbers.map((number) => {
    const [part, who, handle, why, words] = kept.units[number];
    const unit = element("div", undefined, { class: "unit", style: `border-color: ${data.colours[part] || "#ccc"}` });
    unit.append(element("p", [who, why && `shown as: ${why}`, handle].filter(Boolean).join(" · ")), element("pre", words));
    return unit;
  });
}

// The first call after the one that is named, under the same policy, of which something holds.
function following(holds) {
  const at = Number(by("number").value);
  return rowsOf(current).find((row) => row.policy === by("policy").value && row.call > at && holds(row));
}

function step(row, none) {
  if (!row || !show(current, row.policy, row.call)) by("said").textContent = none;
}

by("which").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!current) return;
  const call = Number(by("number").value);
  if (!show(current, by("policy").value, call)) by("said").textContent = `There is no call ${call} under ${nameOf(by("policy").value)} here.`;
});
by("previous").addEventListener("click", () => current && step({ policy: by("policy").value, call: Number(by("number").value) - 1 }, "There is no call before it."));
by("next").addEventListener("click", () => current && step(following(() => true), "There is no call after it."));
by("cut").addEventListener("click", () => current && step(following((row) => row.mark === "cut"), "There is no cut after it."));
by("lost").addEventListener("click", () => current && step(following((row) => (row.evidence === null ? row.in_view : row.evidence) < row.references), "Nothing that a call after it refers to is missing as content."));
by("back").addEventListener("click", () => {
  if (!from || !from.isConnected || from === document.body || from.closest("#call")) from = by("number");
  from.focus();
  from.scrollIntoView({ block: "center" });
});

// --- the whole run ------------------------------------------------------------------------------------------------------

function worstTable() {
  const table = element("table");
  const head = element("tr");
  head.append(element("th", "session", { scope: "col", class: "name" }), element("th", "under", { scope: "col", class: "name" }));
  for (const title of ["not in view", "of", "bill", "over the cheapest", "laws broken"]) head.append(element("th", title, { scope: "col" }));
  const top = element("thead");
  top.append(head);
  const lines = element("tbody");
  for (const one of data.worst) {
    const line = element("tr", undefined, { "data-policy": one.policy, class: one.status !== "ok" || one.broken || one.failed.length ? "bad" : "" });
    const name = (data.sessions[one.session].name || data.sessions[one.session].source).slice(0, 60);
    const also = one.failed.length ? ` (also failed: ${one.failed.map(nameOf).join(", ")})` : "";
    const first = element("th", undefined, { scope: "row", class: "name" });
    first.append(opener(`${name} · ${one.session}`, one.session, one.policy));
    line.append(first, element("td", nameOf(one.policy) + also, { class: "name" }));
    const cells = [whole.format(one.lost), whole.format(one.references)];
    cells.push(...(one.status === "ok" ? [money(one.bill), money(one.bill - one.least)] : ["-", "-"])); // a part of a session costs a part
    cells.push(one.status === "ok" ? whole.format(one.broken) : one.status);
    for (const cell of cells) line.append(element("td", cell));
    lines.append(line);
  }
  table.append(element("caption", "The sessions on which policies did worst", { class: "unseen" }), top, lines);
  const around = element("div", undefined, { class: "scroll" });
  reachable(around, "The sessions on which policies did worst");
  around.append(table);
  by("worst").append(around);
  if (data.all > data.worst.length) by("worst-note").append(` ${counted(data.all - data.worst.length, "more session is", "more sessions are")} in the folder of the run.`);
}

function opener(words, key, policy) {
  const made = element("button", words, { type: "button", class: "link" });
  made.addEventListener("click", () => look(key, policy));
  return made;
}

async function look(key, policy) {
  if (data.chosen[key]) {
    const had = document.activeElement; // drawing takes a while, and no focus
    await choose(key);
    if (had && had.isConnected) had.focus({ preventScroll: true });
    const lossy = rowsOf(key).filter((row) => row.policy === policy);
    lossy.sort((one, two) => two.references - two.in_view - (one.references - one.in_view) || one.call - two.call);
    if (lossy.length) {
      show(key, policy, lossy[0].call);
      return;
    }
  }
  const why = data.chosen[key] ? "the policy did not come to its first call" : data.gaps[key] || "a page holds some sessions only, and this is not one of them";
  opened(`${data.sessions[key].name || key} under ${policy}`, `It is not shown call by call here: ${why}.`, data.commands[key][policy] + "1", []);
}

async function front() {
  const chosen = document.querySelector("input[name=counted]:checked").value;
  const { spec, points } = data.fronts[chosen];
  await draw("front", spec, points.filter((point) => wanted.has(point.policy)), (datum) => {
    const session = data.first[datum.policy] || Object.keys(data.chosen)[0];
    if (session) look(session, datum.policy);
  });
}

// --- the policies that are shown -----------------------------------------------------------------------------------------

const boxes = new Map();

async function filtered() {
  wanted.clear();
  for (const [policy, box] of boxes) if (box.checked) wanted.add(policy);
  for (const line of document.querySelectorAll("tr[data-policy]")) line.hidden = boxes.has(line.dataset.policy) && !wanted.has(line.dataset.policy);
  await front();
  await drawn();
}

function ticked(which) {
  for (const [policy, box] of boxes) box.checked = which(policy);
  return filtered();
}

for (const policy of data.policies) {
  const box = element("input", undefined, { type: "checkbox", checked: "" });
  const label = element("label");
  label.append(box, nameOf(policy));
  box.addEventListener("change", filtered);
  boxes.set(policy, box);
  by("policies").append(label);
}
by("all").addEventListener("click", () => ticked(() => true));
by("some").addEventListener("click", () => ticked((policy) => data.on_a_front.includes(policy)));
by("none").addEventListener("click", () => ticked(() => false));
by("filter").hidden = data.policies.length < 2;
for (const radio of document.querySelectorAll("input[name=counted]")) {
  radio.disabled = !data.fronts[radio.value].points.length;
  radio.addEventListener("change", front);
}

for (const key of Object.keys(data.chosen)) {
  const session = data.sessions[key];
  by("session").append(element("option", `${session.name || key} (${session.calls} calls)`, { value: key }));
}
by("session").addEventListener("change", () => choose(by("session").value));
for (const line of document.querySelectorAll("tr[data-policy] > th > span")) {
  const policy = line.closest("tr").dataset.policy;
  if (data.first[policy]) line.replaceWith(opener(line.textContent, data.first[policy], policy));
}
worstTable();
await front();
dark.addEventListener("change", () => location.reload());
if (Object.keys(data.chosen).length) await choose(Object.keys(data.chosen)[0]);
document.documentElement.dataset.ready = "true";
