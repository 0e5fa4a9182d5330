// Draws the charts, and shows the view of a call that is clicked. All text goes in as text, never as markup.
const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const data = JSON.parse(await new Response(stream).text());

const by = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en-US");
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
      found.push({ ...row, start: row.call - 0.5, end: row.call + 0.5 });
    }
  }
  return found;
}

async function draw(id, spec, rows, clicked) {
  const chart = await vegaEmbed(by(id), { ...spec, data: { values: rows } }, { actions: false, renderer: "svg" });
  chart.view.addEventListener("click", (event, item) => item && item.datum && clicked(item.datum));
}

// --- a session ----------------------------------------------------------------------------------------------------------

let current = "";

async function choose(key) {
  current = key;
  by("session").value = key;
  const session = data.sessions[key];
  by("about").textContent = `${session.format}, ${whole.format(session.messages)} messages, ${whole.format(session.calls)} calls; ${session.source}`;
  const rows = rowsOf(key);
  await draw("composition", data.specs.composition, rows, (datum) => datum.call && show(key, datum.policy, datum.call));
  await draw("cache", data.specs.cache, rows, (datum) => datum.call && show(key, datum.policy, datum.call));
}

function show(key, policy, call) {
  const row = rowsOf(key).find((one) => one.policy === policy && one.call === call);
  if (!row) return;
  by("call").hidden = false;
  by("call-title").textContent = `Call ${call} of ${data.sessions[key].name || key} under ${policy}`;
  const parts = data.parts.filter((part) => row[part]).map((part) => `${part} ${whole.format(row[part])}`);
  const facts = [
    `${whole.format(row.tokens)} tokens (${parts.join(", ")})`,
    `${whole.format(row.read)} read from the cache, ${whole.format(row.written)} anew`,
    `costs ${money(row.cost)}` + (row.recall_cost ? `, recalls ${money(row.recall_cost)}` : ""),
    row.references ? `of ${row.references} references ${row.in_view} in view, ${row.reached} within a lookup` : "refers to nothing said before",
    row.mark ? `here the policy made the view smaller (${row.mark})` : "",
    row.infeasible ? `must send ${whole.format(row.infeasible)} tokens: more than the budget` : "",
    `view ${row.digest}`,
  ];
  by("call-facts").textContent = facts.filter(Boolean).join("; ") + ".";
  by("call-command").textContent = data.commands[key][policy] + call;
  by("view").replaceChildren(...shown(key, policy, call, row.digest));
  by("call").scrollIntoView({ behavior: "smooth" });
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

// --- the whole run ------------------------------------------------------------------------------------------------------

function worstTable() {
  const table = element("table");
  const head = element("tr");
  for (const title of ["policy", "session", "not in view", "of", "bill", "over the cheapest", "laws broken"]) head.append(element("th", title));
  table.append(head);
  for (const one of data.worst) {
    const line = element("tr", undefined, { tabindex: "0", class: one.status !== "ok" || one.broken ? "bad" : "" });
    const name = data.sessions[one.session].name || one.session;
    const cells = [one.policy, name.slice(0, 48), whole.format(one.lost), whole.format(one.references), money(one.bill), money(one.bill - one.least)];
    cells.push(one.status === "ok" ? whole.format(one.broken) : one.status);
    for (const cell of cells) line.append(element("td", cell));
    const open = () => look(one.session, one.policy);
    line.addEventListener("click", open);
    line.addEventListener("keydown", (event) => event.key === "Enter" && open());
    table.append(line);
  }
  const around = element("div", undefined, { class: "scroll" });
  around.append(table);
  by("worst").append(around);
}

async function look(key, policy) {
  if (data.chosen[key]) {
    await choose(key);
    const lossy = rowsOf(key).filter((row) => row.policy === policy);
    lossy.sort((one, two) => two.references - two.in_view - (one.references - one.in_view) || one.call - two.call);
    if (lossy.length) show(key, policy, lossy[0].call);
    return;
  }
  by("call").hidden = false;
  by("call-title").textContent = data.sessions[key].name || key;
  by("call-facts").textContent = "This session is not kept call by call in the report.";
  by("call-command").textContent = data.commands[key][policy] + "1";
  by("view").replaceChildren();
  by("call").scrollIntoView({ behavior: "smooth" });
}

for (const key of Object.keys(data.chosen)) {
  const session = data.sessions[key];
  by("session").append(element("option", `${session.name || key} (${session.calls} calls)`, { value: key }));
}
by("session").addEventListener("change", () => choose(by("session").value));
worstTable();
await draw("front", data.specs.front, data.policies, (datum) => {
  const found = data.worst.find((one) => one.policy === datum.policy) || { session: Object.keys(data.chosen)[0], policy: datum.policy };
  if (found.session) look(found.session, found.policy);
});
if (Object.keys(data.chosen).length) await choose(Object.keys(data.chosen)[0]);
document.documentElement.dataset.ready = "true";
