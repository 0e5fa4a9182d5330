// Cost and composition: what fills the window over time, what it costs, and which calls are dear.

import { State, Told, count, counted, html, money, useEffect, useRef, useState, when } from "./dom.js";
import { useAnswer } from "./api.js";
import { Of } from "./bar.js";
import { address, dialogOf, go } from "./route.js";

const PARTS = ["system", "tools", "summary", "record", "human", "assistant", "results", "unrecorded"];
const COLOURS = ["#7a6ff0", "#3f8fd8", "#c86dd0", "#a05a2c", "#d99a00", "#3aa76d", "#c2504d", "#8a8f98"];
const UNRECORDED = "What the provider counted and the session lacks, mostly instructions and tools, is unrecorded.";
const DEAR = 10;
const WHOLE = [1, 2, 5].flatMap((step) => [step, step * 10, step * 100, step * 1000, step * 10000]).sort((one, other) => one - other); // steps between numbers of calls

export function Cost({ route }) {
  const { value, problem, waiting } = useAnswer(`/api/sessions/${route.session}`);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  return html`<${Composition} route=${route} session=${value} dialog=${dialogOf(value, route).dialog} />`;
}

function Composition({ route, session, dialog }) {
  const path = `/api/dialogs/${dialog}/composition`;
  const { value, problem, waiting } = useAnswer(path);
  const [all, setAll] = useState(false);
  if (!value) return html`<${State} ...${{ problem, waiting }} />`;
  if (!value.calls.length) return html`<${State}>No model was called in this dialog.<//>`;
  const to = (number) => address(`/s/${route.session}/call/${number}`, { d: route.words.d });
  const dear = [...value.calls].sort((one, other) => (other.dollars ?? 0) - (one.dollars ?? 0) || other.read - one.read).slice(0, DEAR);
  const total = value.calls.reduce((sum, call) => sum + (call.dollars ?? 0), 0);
  const shown = all ? value.calls : dear;
  const used = value.calls.filter((call) => call.read + call.written > 0); // one that only failed used nothing
  const drawn = used.length ? used : value.calls;
  const parts = PARTS.filter((part) => value.calls.some((call) => call.tokens[part] > 0));
  return html`<div class="bar"><h2>Cost and composition</h2><${Of} session=${session} route=${route} /><${Told} recorded=${value.recorded} /><span>${counted(value.calls.length, "call")}, ${money(total, value.calls.some((call) => call.estimated)) || "no price known"}; ${counted(value.compactions.length, "compaction")}, in this dialog.</span><span class="gap"></span><a href=${path}>JSON</a></div>
    <div class="body" tabindex="0">
      ${parts.length > 0 && drawn.length > 1 && html`<${Chart} label="Tokens in the window at each call" hint=${parts.includes("unrecorded") ? UNRECORDED : ""} calls=${drawn} compactions=${value.compactions} open=${(number) => go(to(number))}
        series=${parts.map((part) => ({ label: part, colour: COLOURS[PARTS.indexOf(part)], values: drawn.map((call) => call.tokens[part] ?? 0) }))} />`}
      ${used.length > 1 && html`<${Chart} label="Read from the cache, read anew and written at each call" calls=${drawn} compactions=${value.compactions} open=${(number) => go(to(number))}
        series=${[["cached", "#3aa76d", (call) => call.cached], ["read anew", "#c2504d", (call) => call.read - call.cached], ["written", "#3f8fd8", (call) => call.written]].map(([label, colour, of]) => ({ label, colour, values: drawn.map((call) => of(call) ?? 0) }))} />`}
      <h2>${all ? "All calls" : "The dearest calls"} <button onClick=${() => setAll(!all)}>${all ? "Only the dearest" : "All of them"}</button></h2>
      <div class="wide-table" tabindex="0"><table><thead><tr>${["call", "at", ...parts, "read", "cached", "written", "cost"].map((name) => html`<th class="number">${name}</th>`)}</tr></thead>
        <tbody>${shown.map((call) => html`<tr><td class="number"><a href=${to(call.call)}>${count(call.call)}</a></td><td>${when(call.at)}</td>${parts.map((part) => html`<td class="number">${count(call.tokens[part] ?? 0)}</td>`)}
          <td class="number">${count(call.read)}</td><td class="number">${count(call.cached)}</td><td class="number">${call.failed ? "failed" : count(call.written)}</td><td class="number">${money(call.dollars, call.estimated)}</td></tr>`)}</tbody></table></div>
    </div>`;
}

/** Areas over the calls, one upon the other, with a line at each compaction; a click goes to the call. */
function Chart({ label, hint = "", calls, compactions, series, open }) {
  const place = useRef(null);
  useEffect(() => {
    const sums = calls.map(() => 0);
    const stacked = series.map(({ values }) => values.map((value, index) => (sums[index] += value)));
    const ink = getComputedStyle(document.body).color;
    const axis = { stroke: ink, grid: { stroke: "#8884" }, ticks: { stroke: "#8884" } };
    const bands = series.slice(1).map((_, index) => ({ series: [index + 2, index + 1] }));
    const marks = (plot) => {
      plot.ctx.save();
      plot.ctx.strokeStyle = ink;
      plot.ctx.setLineDash([4, 4]);
      for (const at of compactions) {
        const x = plot.valToPos(at, "x", true);
        plot.ctx.beginPath();
        plot.ctx.moveTo(x, plot.bbox.top);
        plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
        plot.ctx.stroke();
      }
      plot.ctx.restore();
    };
    const drawn = new globalThis.uPlot({
      width: place.current.clientWidth, height: 220, scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(most, 1)] } }, bands, legend: { live: true }, hooks: { draw: [marks], ready: [(plot) => plot.setLegend({ idx: calls.length - 1 })] },
      axes: [{ ...axis, incrs: WHOLE }, { ...axis, size: 70, values: (_, ticks) => ticks.map((tick) => count(tick)) }],
      series: [{ label: "call", value: (_, call) => call ?? "" }, ...series.map(({ label: name, colour, values }) => ({ label: name, stroke: colour, fill: `${colour}99`, width: 1, points: { show: false }, value: (_, __, ___, index) => (index === null ? "" : count(values[index])) }))],
    }, [calls.map((call) => call.call), ...stacked], place.current);
    const fit = new ResizeObserver(() => drawn.setSize({ width: place.current.clientWidth, height: 220 }));
    fit.observe(place.current);
    drawn.over.addEventListener("click", () => drawn.cursor.idx !== null && open(calls[drawn.cursor.idx].call));
    return () => {
      fit.disconnect();
      drawn.destroy();
    };
  }, [calls]);
  return html`<figure aria-label=${label}><figcaption>${label}. The table below has the same numbers. <span class="quiet">${hint}</span></figcaption><div ref=${place}></div></figure>`;
}
