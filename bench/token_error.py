"""How far the token counts are from what providers reported: the figures in docs/explanation/tokens.md.

Usage::

    PALAVER_TEST_DATA=path/to/recorded/sessions .venv/bin/python -m bench.token_error

Two errors are measured, each as (reported - estimated) / estimated. *Growth*: what a conversation grew by between two calls,
added up until some thousand tokens came together, since instructions and tools are often not recorded. *Requests*: whole
requests, where everything is recorded.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench.recorded_usage import Run, runs
from palaver.messages import Message
from palaver.tokens import ModelCounter, count_message, count_request, counter

ENOUGH = 2_000
"""Estimated tokens of growth that make one sample."""


def growth(run: Run, counting: ModelCounter) -> Iterator[tuple[int, int]]:
    """Return (estimated, reported) growth of a run, in samples of some thousand tokens."""
    estimated = reported = 0
    for before, after in zip(run.steps, run.steps[1:], strict=False):
        grown = after.reported - before.reported - after.hidden
        if grown <= 0 or not after.added:  # the program dropped something: no continuation after all
            estimated = reported = 0
            continue
        estimated += sum(count_message(message, counting) for message in after.added)
        reported += grown
        if estimated >= ENOUGH:
            yield estimated, reported
            estimated = reported = 0


def requests(run: Run, counting: ModelCounter) -> Iterator[tuple[int, int]]:
    """Return (estimated, reported) sizes of the whole requests of a run."""
    messages: list[Message] = []
    for step in run.steps:
        messages.extend(step.added)
        yield count_request(messages, counting, tools=run.tools), step.reported


def row(name: str, model: str, samples: list[tuple[int, int]]) -> str:
    """Write one line of the table."""
    errors = [(reported - estimated) / estimated for estimated, reported in samples]
    total = sum(r for _, r in samples) / sum(e for e, _ in samples) - 1
    size = sorted(map(abs, errors))
    p95 = size[min(len(size) - 1, int(len(size) * 0.95))]
    return (
        f"{name:9} {model:28} {len(errors):5}  {total:+7.1%}  {statistics.median(errors):+7.1%}  "
        f"{statistics.median(size):6.1%}  {p95:6.1%}  {size[-1]:6.1%}"
    )


def main() -> None:
    """Print the table."""
    root = os.environ.get("PALAVER_TEST_DATA")
    if not root:
        sys.exit("PALAVER_TEST_DATA names no folder of recorded sessions")
    tables: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for run in runs(Path(root)):
        counting = counter(run.model)
        kind = run.source.split("/")[0]
        label = f"{kind} {run.model.split('/')[-1].removeprefix('anthropic.')}"
        if run.whole:
            tables["request", label].extend(requests(run, counting))
        tables["growth", label].extend(growth(run, counting))
        tables["growth", f"= {counting.family.name.split('-')[0]}"].extend(growth(run, counting))
    print(f"{'':9} {'':44} {'n':>5}  {'sum':>7}  {'median':>7}  {'|med|':>6}  {'|p95|':>6}  {'|max|':>6}")
    for (name, label), samples in sorted(tables.items()):
        if samples:
            print(row(name, f"{label:44}", samples))


if __name__ == "__main__":
    main()
