// Export: what would be left out is shown first; then the page is written as one file, which the browser downloads.

import { counted, html, useState, visible } from "./dom.js";
import { exported, lines, send } from "./api.js";

/** `what` says what is exported: `{session, dialog}` and perhaps `call`, or `a` and `b`. */
export function Export({ what }) {
  const [state, setState] = useState(null);
  const work = async (words) => {
    let last = null;
    setState({ waiting: "Starting …" });
    const { id } = await send("POST", "/api/jobs", { do: "export", ...what, ...words });
    await lines(`/api/jobs/${id}`, (told) => (told.result ? (last = told.result) : setState({ waiting: told.what })));
    return { id, ...last };
  };
  const failed = (problem) => setState({ problem });
  const review = () => work({ review: true }).then(setState).catch(failed);
  const write = async () => {
    const { id } = await work({});
    const link = document.createElement("a");
    link.href = `/api/jobs/${id}/file`;
    link.download = "";
    link.click();
    setState(null);
  };
  if (exported) return null;
  if (!state) return html`<button onClick=${review}>Export</button>`;
  if (state.problem) return html`<span class="bad" role="alert">${visible(state.problem.message)}</span>`;
  if (state.waiting) return html`<span class="quiet" role="status">${visible(state.waiting)}</span>`;
  return html`<span role="status">${state.secrets.length ? html`<details><summary>${counted(state.secrets.length, "secret")} will be left out</summary>
      <ul>${state.secrets.map((one) => html`<li><code>${one.place}</code> ${visible(one.kind)} <code>${visible(one.beginning)}</code></li>`)}</ul></details>` : "No secrets were found."}</span>
    <button onClick=${() => write().catch(failed)}>Write the file</button><button onClick=${() => setState(null)}>Cancel</button>`;
}
