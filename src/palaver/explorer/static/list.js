// A list of any length: rows of one height, of which only those in sight are in the page.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./dom.js";

const BEYOND = 8; // rows drawn above and below what is in sight

/**
 * `row(index)` draws one row; arrows call `onSelect(index)`, Enter and clicks `onOpen(index)`, or without it `onSelect`;
 * `onSight(first, stop)` of what is drawn, so that its labels can be fetched; a `quiet` list leaves the focus where it is.
 */
export function List({ id, label, count, row, height = 30, selected = -1, onSelect, onOpen, onSight, quiet = false }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(600);
  const first = Math.max(0, Math.min(Math.floor(top / height), count) - BEYOND);
  const stop = Math.min(count, Math.ceil((top + room) / height) + BEYOND);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setRoom(box.current.clientHeight));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => onSight?.(first, stop), [first, stop, count]);
  useLayoutEffect(() => {
    if (selected < 0) return;
    const { scrollTop, clientHeight } = box.current;
    if (selected * height < scrollTop) box.current.scrollTop = selected * height;
    else if ((selected + 1) * height > scrollTop + clientHeight) box.current.scrollTop = (selected + 1) * height - clientHeight;
  }, [selected, count > selected, room]);
  useEffect(() => {
    if (!quiet && document.activeElement === document.body) box.current.focus({ preventScroll: true });
  }, []);
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(room / height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    if (event.key in steps && count) {
      event.preventDefault();
      onSelect?.(Math.max(0, Math.min(count - 1, selected + steps[event.key])));
    } else if (event.key === "Enter" && selected >= 0) {
      event.preventDefault();
      onOpen?.(selected);
    }
  };
  const drawn = [];
  for (let index = first; index < stop; index += 1) {
    drawn.push(html`<div key=${index} id=${`${id}-${index}`} class="row" role="option" aria-selected=${index === selected}
      aria-posinset=${index + 1} aria-setsize=${count} style=${{ height: `${height}px` }}
      onClick=${() => (onOpen ?? onSelect)?.(index)}>${row(index)}</div>`);
  }
  const active = selected >= first && selected < stop ? `${id}-${selected}` : undefined;
  return html`<div class="list" role="listbox" tabindex="0" id=${id} aria-label=${label} aria-activedescendant=${active}
    ref=${box} onScroll=${(event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${keys}>
    <div role="presentation" style=${{ height: `${count * height}px` }}>
      <div role="presentation" style=${{ transform: `translateY(${first * height}px)` }}>${drawn}</div>
    </div>
  </div>`;
}
