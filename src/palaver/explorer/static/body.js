// The side pane: one entry or block, whole, as it was recorded.

import { State, bytes, html, safe, useState, visible, when } from "./dom.js";
import { exported, useAnswer } from "./api.js";

const LONG = 200000; // characters drawn at once: a longer text is shown in steps

/** Show the original that a handle names. */
export function Body({ handle, head }) {
  const { value, problem, waiting } = useAnswer(handle ? `/api/entries/${handle}` : null);
  return html`<section class="body" aria-label="Entry" tabindex="0">
    ${head}
    ${handle && html`<p class="facts"><code>${handle}</code></p>`}
    ${!handle ? html`<${State}>Select a row to read it.<//>` : !value ? html`<${State} ...${{ problem, waiting }} />` : html`<${Found} found=${value.found} handle=${handle} />`}
  </section>`;
}

export function Found({ found, handle }) {
  const blocks = found.message?.contents ?? (found.type ? [found] : []);
  const texts = [...(found.pieces ?? []), ...(found.sections ?? [])].map((piece) => piece.text).concat(found.summary).filter(Boolean);
  const facts = [found.message?.role, found.message?.model, when(found.at)].filter(Boolean);
  return html`${facts.length > 0 && html`<p class="facts">${facts.map(visible).join(" · ")}</p>`}${blocks.map((block) => html`<${Block} block=${block} handle=${handle} alone=${blocks.length === 1} />`)}${texts.map((text) => html`<${Long} text=${text} />`)}
    <details open=${!blocks.length && !texts.length}><summary>JSON</summary><${Long} text=${JSON.stringify(found, null, 2)} /></details>`;
}

/** Draw one block of a message. */
export function Block({ block, handle, alone = false }) {
  switch (block.type) {
    case "text":
      return html`<${Long} text=${block.content} />`;
    case "thinking":
      return html`<details open=${alone}><summary>Thinking</summary><${Long} text=${block.content || "(not readable: kept by the provider)"} /></details>`;
    case "tool_call":
      return html`<h3>call ${visible(block.name)} <code>${visible(block.id)}</code></h3><${Long} text=${block.raw_args === undefined || block.raw_args === null ? JSON.stringify(block.args, null, 2) : indented(block.raw_args)} />`;
    case "tool_result":
      return html`<h3>${block.is_error ? "error of" : "result of"} <code>${visible(block.id)}</code></h3>
        ${typeof block.content === "string" ? html`<${Long} text=${block.content} />` : (block.content ?? []).map((part) => html`<${Block} block=${part} handle=${handle} />`)}`;
    case "image":
      return html`${(block.images ?? []).map((one) => html`<${Picture} media=${one} handle=${handle} />`)}`;
    default:
      return html`<p class="quiet">(${visible(block.type)})</p>`;
  }
}

/** Return JSON with a line for each part, where that changes nothing but spaces; any other text as it is. */
function indented(text) {
  const packed = (each) => each.replace(/\s+/g, "");
  try {
    const found = JSON.stringify(JSON.parse(text), null, 2);
    return packed(found) === packed(text) ? found : text;
  } catch {
    return text;
  }
}

/** Draw a text, the first part of a very long one. */
export function Long({ text }) {
  const [shown, setShown] = useState(LONG);
  const whole = String(text ?? "");
  return html`<pre>${visible(whole.slice(0, shown))}</pre>
    ${whole.length > shown && html`<button onClick=${() => setShown(shown + 5 * LONG)}>Show more (${bytes(whole.length - shown)} left)</button>`}`;
}

function Picture({ media, handle }) {
  const [shown, setShown] = useState(false);
  const named = `${media.media_type}, ${bytes(media.size ?? 0)}`;
  if (media.url) return html`<p><a href=${safe(media.url)} rel="noopener noreferrer" target="_blank">${visible(media.url)}</a></p>`;
  if (!media.digest) return html`<p class="quiet">[${named}]</p>`;
  return shown
    ? html`<${exported ? Kept : "img"} src=${`/api/entries/${handle}/media/${media.digest}`} alt=${named} />`
    : html`<button onClick=${() => setShown(true)}>Show the picture (${named})</button>`;
}

/** A picture of an exported file. */
function Kept({ src, alt }) {
  const { value, problem, waiting } = useAnswer(src);
  return value ? html`<img src=${value} alt=${alt} />` : html`<${State} ...${{ problem, waiting }} />`;
}
