// Labels: the first words of the rows in sight, asked for a page at a time and kept.

import { useEffect, useRef, useState } from "./dom.js";
import { get } from "./api.js";

const PAGE = 100; // labels that are asked for together

/** Return a function that gives the label of a row, if it is there, and one that is told which rows are in sight. */
export function useLabels(path) {
  const kept = useRef(new Map());
  const [, setDrawn] = useState(0);
  useEffect(() => kept.current.clear(), [path]);
  const sight = (first, stop) => {
    if (!path) return;
    for (let page = Math.floor(first / PAGE); page * PAGE < stop; page += 1) {
      if (kept.current.has(page)) continue;
      const labels = kept.current;
      labels.set(page, []);
      get(`${path}?start=${page * PAGE}&stop=${(page + 1) * PAGE}`).then(
        (found) => {
          labels.set(page, found);
          setDrawn((number) => number + 1);
        },
        () => labels.delete(page),
      );
    }
  };
  return [(index) => kept.current.get(Math.floor(index / PAGE))?.[index % PAGE], sight];
}
