// What is known of the rows in sight, their first words or all of them: asked for a page at a time, and the newest pages kept.

import { useMemo, useState } from "./dom.js";
import { get } from "./api.js";

const PAGE = 100; // labels that are asked for together
const KEPT = 100; // pages

/** Return a function that returns the label of a row, if it is there, and one to call with the rows in sight; `first` is the first page, where it is known. */
export function useLabels(path, first, size = PAGE) {
  const kept = useMemo(() => new Map(), [path]);
  const [, setDrawn] = useState(0);
  if (first && !kept.has(0)) kept.set(0, first);
  const sight = (start, stop) => {
    for (let page = Math.floor(start / size); page * size < stop; page += 1) {
      if (kept.has(page)) continue;
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
      kept.set(page, []);
      get(`${path}?start=${page * size}&stop=${(page + 1) * size}`).then(
        (found) => {
          kept.set(page, found);
          setDrawn((number) => number + 1);
        },
        () => kept.delete(page),
      );
    }
  };
  return [(index) => kept.get(Math.floor(index / size))?.[index % size], sight];
}
