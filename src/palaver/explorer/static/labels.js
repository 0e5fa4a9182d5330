// Labels: the first words of the rows in sight, asked for a page at a time and kept.

import { useMemo, useState } from "./dom.js";
import { get } from "./api.js";

const PAGE = 100; // labels that are asked for together

/** Return a function that returns the label of a row, if it is there, and one to call with the rows in sight; `first` is the first page, where it is known. */
export function useLabels(path, first) {
  const kept = useMemo(() => new Map(), [path]);
  const [, setDrawn] = useState(0);
  if (first && !kept.has(0)) kept.set(0, first);
  const sight = (start, stop) => {
    for (let page = Math.floor(start / PAGE); page * PAGE < stop; page += 1) {
      if (kept.has(page)) continue;
      kept.set(page, []);
      get(`${path}?start=${page * PAGE}&stop=${(page + 1) * PAGE}`).then(
        (found) => {
          kept.set(page, found);
          setDrawn((number) => number + 1);
        },
        () => kept.delete(page),
      );
    }
  };
  return [(index) => kept.get(Math.floor(index / PAGE))?.[index % PAGE], sight];
}
