// Export: what would be left out is shown first; then the page is written as one file, which the browser downloads.

import { counted, html, useState, visible } from "./dom.js";
import { exported, lines } from "./api.js";

/** `what` says what is exported: `{session, dialog}` and perhaps `call`, or `a` and `b`. */
export function Export({ what }) {
  const [state, setState] = useState(null);
  const { session, ...words } = what;
  const path = `/api/sessions/${session}`;
  const review = async () => {
    const secrets = [];
    setState({ waiting: true });
    try {
      await lines(`${path}/secrets`, (secret) => secrets.push(secret));
      setState({ secrets });
    } catch (problem) {
      setState({ problem });
    }
  };
  if (exported) return null;
  if (!state) return html`<button onClick=${review}>Export</button>`;
  if (state.problem) return html`<span class="bad" role="alert">${visible(state.problem.message)}</span>`;
  if (state.waiting) return html`<span class="quiet" role="status">Looking for secrets …</span>`;
  return html`<span role="status">${state.secrets.length ? html`<details><summary>${counted(state.secrets.length, "secret")} will be left out</summary>
      <ul>${state.secrets.map((one) => html`<li><code>${one.place}</code> ${visible(one.kind)} <code>${visible(one.beginning)}</code></li>`)}</ul></details>` : "No secrets were found."}</span>
    <a class="button" href=${`${path}/export?${new URLSearchParams(words)}`} download onClick=${() => setState(null)}>Write the file</a><button onClick=${() => setState(null)}>Cancel</button>`;
}
