// Markdown, read by markdown-it and drawn as elements and text nodes: no markup is ever made, and only what is listed here is drawn.

import { h, html, safe, useMemo, useState, visible } from "./dom.js";
import { Code } from "./code.js";

const MARKDOWN = 20000; // characters that are read as Markdown: more is shown as it was written
const PARTS_DRAWN = 1500; // elements of one text
const DRAWN = new Set("p h1 h2 h3 h4 h5 h6 ul ol li blockquote em strong s code pre hr br a table thead tbody tr th td".split(" "));
const BLOCKS = new Set("p ul ol li blockquote th td".split(" ")); // each has its own direction of writing

const reader = new globalThis.markdownit("commonmark", { html: false }).enable(["table", "strikethrough"]); // nested 20 deep at the most

/** Draw tokens until the room is used up; return the children, and the index after them. */
function drawnTokens(tokens, at, room) {
  const children = [];
  while (at < tokens.length && tokens[at].nesting >= 0 && room.left > 0) {
    const token = tokens[at];
    at += 1;
    if (token.nesting === 1) {
      const [inside, end] = drawnTokens(tokens, at, room);
      at = end + 1;
      children.push(token.hidden || !DRAWN.has(token.tag) ? inside : element(token, inside, room));
    } else if (token.type === "inline") children.push(drawnTokens(token.children, 0, room)[0]);
    else children.push(leaf(token, room));
  }
  return [children, at];
}

function element(token, inside, room) {
  room.left -= 1;
  const words = BLOCKS.has(token.tag) ? { dir: "auto" } : {};
  if (token.tag === "a") Object.assign(words, { href: safe(token.attrGet("href")), title: visible(token.attrGet("href")), rel: "noopener noreferrer", target: "_blank" });
  if (token.tag === "ol" && token.attrGet("start")) words.start = Number(token.attrGet("start"));
  if (token.attrGet("style") === "text-align:right") words.class = "number";
  if (token.tag === "table") return h("div", { class: "wide-table", tabindex: 0 }, h("table", null, inside));
  if (/^h\d$/.test(token.tag)) return h("p", { class: `heading ${token.tag}`, dir: "auto" }, inside); // the headings of the page are its own
  return h(token.tag, words, inside);
}

function leaf(token, room) {
  room.left -= 1;
  switch (token.type) {
    case "text":
      return visible(token.content);
    case "softbreak":
      return "\n";
    case "hardbreak":
    case "hr":
      return h(token.tag);
    case "code_inline":
      return h("code", null, visible(token.content));
    case "fence":
    case "code_block":
      return html`<${Code} text=${token.content} language=${token.info} />`;
    case "image": // an image of elsewhere is never loaded
      return html`<span class="quiet">[${visible(token.content || "image")}: ${visible(token.attrGet("src"))}]</span>`;
    default:
      return visible(token.content);
  }
}

/** Draw a text that people or models wrote. */
export function Markdown({ text }) {
  const [whole, setWhole] = useState(false);
  const said = String(text ?? "");
  const [drawn, cut] = useMemo(() => {
    const room = { left: PARTS_DRAWN };
    const [children] = drawnTokens(reader.parse(said.slice(0, MARKDOWN), {}), 0, room);
    return [children, said.length > MARKDOWN || room.left <= 0];
  }, [said]);
  if (whole) return html`<pre>${visible(said)}</pre>`;
  return html`<div class="markdown">${drawn}</div>${cut && html`<button onClick=${() => setWhole(true)}>Show all of it as it was written</button>`}`;
}
