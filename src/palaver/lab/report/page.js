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
      found.push({ ...row, start: row.call - 0.5 });
    }
  }
  return found;
}

// What is drawn of a session: `end` says where a call's place in the chart ends, and is missing where there is none.
const drawnOf = (rows) => rows.filter((row) => row.end !== null).map((row) => ({ ...row, policy: data.names[row.policy] || row.policy, own: row.policy }));

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

async function draw(id, spec, rows, clicked) {
  const renderer = rows.length > 3000 ? "canvas" : "svg"; // so many elements would take a browser's breath
  const chart = await vegaEmbed(by(id), { ...looked(spec), data: { values: rows } }, { actions: false, renderer });
  chart.view.addEventListener("click", (event, item) => item && item.datum && clicked(item.datum));
}

// --- a session ----------------------------------------------------------------------------------------------------------

let current = "";

async function choose(key) {
  current = key;
  by("session").value = key;
  const session = data.sessions[key];
  by("about").textContent = `${session.format}, ${whole.format(session.messages)} messages, ${whole.format(session.calls)} calls; ${session.source}`;
  by("gap").textContent = data.gaps[key] ? `Left out of this page: ${data.gaps[key]}. The command that a call names shows it.` : "";
  const rows = drawnOf(rowsOf(key));
  await draw("composition", data.specs.composition, rows, (datum) => datum.call && show(key, datum.own, datum.call));
  await draw("cache", data.specs.cache, rows, (datum) => datum.call && show(key, datum.own, datum.call));
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
  head.append(element("th", "session"), element("th", "under", { class: "name" }));
  for (const title of ["not in view", "of", "bill", "over the cheapest", "laws broken"]) head.append(element("th", title));
  table.append(head);
  for (const one of data.worst) {
    const line = element("tr", undefined, { tabindex: "0", class: one.status !== "ok" || one.broken || one.failed.length ? "bad" : "" });
    const name = (data.sessions[one.session].name || data.sessions[one.session].source).slice(0, 60);
    const also = one.failed.length ? ` (also failed: ${one.failed.map((policy) => data.names[policy] || policy).join(", ")})` : "";
    line.append(element("td", `${name} · ${one.session}`, { class: "name" }), element("td", (data.names[one.policy] || one.policy) + also, { class: "name" }));
    const cells = [whole.format(one.lost), whole.format(one.references)];
    cells.push(...(one.status === "ok" ? [money(one.bill), money(one.bill - one.least)] : ["-", "-"])); // a part of a session costs a part
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
  if (data.all > data.worst.length) by("worst-note").append(` ${whole.format(data.all - data.worst.length)} more sessions are in the folder of the run.`);
}

async function look(key, policy) {
  if (data.chosen[key]) {
    await choose(key);
    const lossy = rowsOf(key).filter((row) => row.policy === policy);
    lossy.sort((one, two) => two.references - two.in_view - (one.references - one.in_view) || one.call - two.call);
    if (lossy.length) {
      show(key, policy, lossy[0].call);
      return;
    }
  }
  by("call").hidden = false;
  by("call-title").textContent = `${data.sessions[key].name || key} under ${policy}`;
  const why = data.chosen[key] ? "the policy did not come to its first call" : data.gaps[key] || "a page holds some sessions only, and this is not one of them";
  by("call-facts").textContent = `It is not shown call by call here: ${why}.`;
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
  const session = data.first[datum.policy] || Object.keys(data.chosen)[0];
  if (session) look(session, datum.policy);
});
dark.addEventListener("change", () => location.reload());
if (Object.keys(data.chosen).length) await choose(Object.keys(data.chosen)[0]);
document.documentElement.dataset.ready = "true";
