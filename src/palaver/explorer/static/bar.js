// What the bars of several screens say: which session this is, and the command of the terminal that shows the same.

import { html, line, useEffect, visible } from "./dom.js";
import { about } from "./api.js";
import { address, dialogOf, relation } from "./route.js";

/** Say which session, and which of its dialogs, a screen is about. */
export function Of({ session, route }) {
  const dialog = dialogOf(session, route);
  const title = line(session.row.title || session.row.name, 36);
  useEffect(() => {
    document.title = `${title} · palaver`;
    return () => (document.title = "palaver");
  }, [title]);
  return html`<span class="quiet">of <a href=${address(`/s/${session.row.session}`, { d: route.words.d })}>${title}</a>${!dialog.main && ` (${relation(dialog)})`}</span>`;
}

/** A command of the terminal for the same store; nothing where no command finds it. */
export function Command({ words }) {
  return about.option === null ? null : html`<code>palaver ${visible(words)}${visible(about.option)}</code>`;
}
