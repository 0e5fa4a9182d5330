// Code, read by highlight.js and drawn as elements and text nodes, and patches. It is shown at once and coloured after that.

import { html, useEffect, useState, visible } from "./dom.js";

const COLOURED = 8000; // characters that are coloured: some grammars take time that grows with the square
const WIDEST = 500; // characters of a line beyond which nothing is coloured
const PIECES = 1000; // elements of one text
const ROLES = Object.fromEntries(Object.entries({
  word: "keyword built_in selector-tag name meta", title: "title type class attr attribute section property selector-class selector-id", text: "string regexp char symbol",
  value: "number literal variable", note: "comment doctag quote",
}).flatMap(([role, scopes]) => scopes.split(" ").map((scope) => [scope, role])));

/** Return the lines of a text, each as pieces `[role, text]`; undefined where the language is not known or a line is very long. */
function pieces(text, language) {
  const end = text.length > COLOURED ? text.lastIndexOf("\n", COLOURED) : text.length;
  const begun = text.slice(0, Math.max(end, 0));
  if (!globalThis.hljs.getLanguage(language) || begun.split("\n").some((each) => each.length > WIDEST)) return undefined;
  const made = globalThis.hljs.highlight(begun, { language, ignoreIllegals: true });
  if (made.errorRaised) return undefined; // it is nested too deep
  const lines = [[]];
  let drawn = 0;
  const waiting = [[text.slice(begun.length), ""], [made._emitter.rootNode, ""]]; // a stack: however deep it is
  while (waiting.length) {
    const [node, role] = waiting.pop();
    if (typeof node !== "string") {
      const own = ROLES[node.scope?.split(".")[0]] ?? (node.scope?.startsWith("language:") ? "" : role);
      waiting.push(...node.children.map((child) => [child, own]).reverse());
      continue;
    }
    const [first, ...others] = node.split("\n");
    drawn += role ? 1 + others.length : 0;
    const shown = drawn > PIECES ? "" : role;
    lines.at(-1).push([shown, first]);
    others.forEach((each) => lines.push([[shown, each]]));
  }
  return lines;
}

/** Return the pieces of the lines of a text as soon as it is shown without them. */
function usePieces(text, language) {
  const [state, setState] = useState({});
  useEffect(() => {
    if (!language) return undefined;
    const timer = setTimeout(() => setState({ text, language, lines: pieces(text, language) }));
    return () => clearTimeout(timer);
  }, [text, language]);
  return state.text === text && state.language === language ? state.lines : undefined;
}

function Line({ said }) {
  return said.map(([role, text]) => (role ? html`<span class=${`code-${role}`}>${text}</span>` : text));
}

/** Draw code; of a patch, each line by its sign. */
export function Code({ text, language = "" }) {
  const [name] = language.split(/[\s,{]/);
  const shown = visible(text);
  const lines = usePieces(shown, name);
  return html`<pre class="code" tabindex="0" data-language=${visible(language.slice(0, 30)) || undefined}>${/^(diff|patch)$/.test(name) ? html`<${Patch} text=${text} />` : lines ? lines.map((said, index) => html`${index > 0 && "\n"}<${Line} said=${said} />`) : shown}</pre>`;
}

/** Draw the lines of a patch; `language` is that of what is patched. */
export function Patch({ text, language = "" }) {
  const kinds = { "+": "added", "-": "removed", "@": "place", "*": "place" };
  const lines = visible(text).split("\n");
  const side = (other) => lines.filter((each) => each[0] !== other).map((each) => each.slice(1)).join("\n");
  const sides = { "-": usePieces(side("+"), language)?.values(), "+": usePieces(side("-"), language)?.values() }; // of the old text, of the new one
  return lines.map((each) => {
    const next = Object.fromEntries(Object.entries(sides).map(([sign, of]) => [sign, each[0] !== (sign === "+" ? "-" : "+") && of?.next().value]));
    const said = kinds[each[0]] === "place" ? null : next[each[0] === "-" ? "-" : "+"];
    return html`<span class=${`patch ${kinds[each[0]] ?? ""}`}>${said ? html`${each[0] ?? ""}<${Line} said=${said} />` : each}${"\n"}</span>`;
  });
}
