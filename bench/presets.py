"""What each preset leaves at its first, second and third compaction of recorded sessions, beside what its source would leave.

The nine sessions come from the folder that PALAVER_TEST_DATA names. As with an agent, each plan that makes the view smaller is committed, and the next one starts from its
result. The window has 64,000 tokens, so that most presets compact each session three times. A figure is the median over the sessions, with the least and the most.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.measure import Row
from palaver.context import Meter
from palaver.context.operators import outputs
from palaver.context.presets import outputs_in
from palaver.lab.entrants import entrant
from palaver.lab.loading import Loaded, loaded
from palaver.lab.recorded import RecordedDialog, recorded_dialog
from palaver.lab.replay import Replay, ReplayStep
from palaver.lab.things import Things, things
from palaver.tokens import counter
from palaver.view import Exchange, Reason

_MODEL, _WINDOW, _TIMES = "claude-sonnet-4-5", 64_000, 3

_SESSIONS = (
    "claude_code/cli_cd_95adddad32_0.jsonl.zst",
    "claude_code/cli_ad_ff0201aecb_0.jsonl.zst",
    "claude_code/cli_5e_5207b424e2_0.jsonl.zst",
    "claude_code/cli_f0_c3dbdad0d8_0.jsonl.zst",
    "codex/agentv_79_6eaddfe2f9_0.jsonl.zst",
    "codex/agentv_00_34f597b72d_1.jsonl.zst",
    "pi/large-session.jsonl.zst",
    "swe_agent/sphinx-doc__sphinx-8459.traj.zst",
    "swe_agent/sphinx-doc__sphinx-9673.traj.zst",
)
"""The longest of four formats."""

_FOLDED = frozenset({Reason.FOLDED, Reason.OVER_BUDGET})
_NO_PLACEHOLDER = 100
"""Outputs of at most so many tokens stay in every preset."""


class _After(NamedTuple):
    """A compaction: the call at which it was made, the limit of the budget, and what counts tokens."""

    step: ReplayStep
    limit: int
    meter: Meter

    @property
    def cut(self) -> int:
        """The index in the view before of the first exchange after those that left; 0 where nothing left."""
        drops = () if self.step.composed is None else self.step.composed.plan.drops
        return max((each.indexes.stop for each in drops if each.reason in _FOLDED), default=0)

    @property
    def kind(self) -> str:
        """What it did: `folds`, `clears` or `shortens`."""
        rewrites = () if self.step.composed is None else self.step.composed.plan.rewrites
        if self.cut:
            return "folds"
        return "clears" if any(each.reason is Reason.OFFLOADED for each in rewrites) else "shortens"

    def tail(self) -> Sequence[Exchange]:
        """Return the exchanges after those that left, as they are shown now."""
        kept = {each.first for each in self.step.given.exchanges[self.cut :]}
        return [each for each in self.step.view.exchanges if each.first in kept and not each.derived]

    def tokens(self, exchanges: Sequence[Exchange]) -> int:
        """Return the size of exchanges."""
        return sum(map(self.meter.exchange, exchanges))

    def newest(self, tokens: int) -> int:
        """Return the size of the newest exchanges before it that have at most so many tokens, or of the newest one."""
        newest, *older = map(self.meter.exchange, reversed(self.step.given.exchanges))
        return max(takewhile(lambda size: size <= tokens, accumulate(older, initial=newest)), default=newest)

    def finished(self) -> int:
        """Return the size of what is older than the newest message of the user."""
        return self.tokens(self.step.view.exchanges[: self.step.view.newest_user() or 0])

    def whole(self, least: int = _NO_PLACEHOLDER) -> int:
        """Return how many outputs of more than so many tokens are shown in full."""
        return sum(self._in_full(each, least) for each in self.step.view.exchanges)

    def older(self, newest: int, least: int = _NO_PLACEHOLDER) -> int:
        """Return how many of them are older than the newest exchanges that have so many outputs."""
        exchanges = list(self.step.view.exchanges)
        while exchanges and newest > 0:
            newest -= outputs_in(exchanges.pop())
        return sum(self._in_full(each, least) for each in exchanges)

    def outputs(self) -> int:
        """Return how many outputs the view has."""
        return sum(map(outputs_in, self.step.view.exchanges))

    def _in_full(self, exchange: Exchange, least: int) -> int:
        return sum(self.meter.block(block.content) > least for block, _ in outputs(exchange))


class _Figure(NamedTuple):
    """What a source says about a compaction: what is counted, what the source leaves, and what the preset leaves."""

    counted: str
    source: Callable[[_After], float]
    ours: Callable[[_After], float]


def _tail(tokens: Callable[[_After], int]) -> _Figure:
    return _Figure("tokens of the tail", lambda it: it.newest(tokens(it)), lambda it: it.tokens(it.tail()))


def _view(share: float) -> _Figure:
    return _Figure("tokens, at most", lambda it: it.limit * share, lambda it: it.tokens(it.step.view.exchanges))


_OPENCODE = _tail(lambda it: min(max(it.limit // 4, 2_000), 15_000))

_FOLDS: Mapping[str, _Figure] = {
    "aider": _Figure(
        "tokens of finished work, at most", lambda it: min(max(it.limit // 16, 1_024), 8_192), _After.finished
    ),
    "claude-code": _Figure("messages of the tail", lambda _: 0, lambda it: sum(each.messages for each in it.tail())),
    "dynamiq": _Figure("messages of the tail", lambda _: 2, lambda it: sum(each.messages for each in it.tail())),
    "letta": _view(0.7),
    "opencode": _OPENCODE,
    "opencode-dcp": _OPENCODE,
    "openhands": _view(0.5),
    "pi": _tail(lambda _: 20_000),
}
"""By preset, where something left. For `cat`, `lllm` and `manus` no source states what a compaction leaves."""

_CLEARS: Mapping[str, _Figure] = {
    "claude-code": _Figure("outputs in full, at most", lambda _: 5, _After.whole),
    "dynamiq": _Figure("old outputs over 500 in full", lambda _: 0, lambda it: it.older(1, 500)),
    "manus": _Figure("outputs of the older half in full", lambda _: 0, lambda it: it.older(it.outputs() // 2)),
    "swe-agent": _Figure("outputs in full, at most", lambda _: 5, _After.whole),
}
"""By preset, where outputs were cleared and nothing left."""


def run(folder: Path, *, quick: bool) -> list[Row]:  # noqa: ARG001 - it writes nothing
    """Replay each session under each preset; with `quick`, one session."""
    root = Path(os.environ.get("PALAVER_TEST_DATA", ""))
    sessions = [_longest(root / name) for name in _SESSIONS[: 1 if quick else None] if (root / name).is_file()]
    if not sessions:
        return [Row("no recorded sessions: set PALAVER_TEST_DATA", "")]
    rows: list[Row] = []
    for name in sorted(_FOLDS.keys() | _CLEARS.keys()):
        every = [_compactions(name, *session) for session in sessions]
        for kind, figure in (("clears", _CLEARS.get(name)), ("folds", _FOLDS.get(name))):
            if figure is not None:
                rows += _rows(f"{name} {kind}: {figure.counted}", figure, [each[kind] for each in every])
    return rows


def _longest(path: Path) -> tuple[RecordedDialog, Things]:
    """Return the dialog of a file with the most calls, and what the replay needs to know of it."""
    traces = (
        recorded_dialog(found.store, dialog)
        for found in loaded(path)
        if isinstance(found, Loaded)
        for dialog in found.dialogs
    )
    longest = max(traces, key=lambda each: len(each.calls))
    return longest, things(longest)


def _compactions(name: str, of: RecordedDialog, known: Things) -> Mapping[str, list[_After]]:
    """Return the first compactions of a dialog under a preset by kind: those that clear outputs, fold, or only shorten what no view has room for."""
    made: dict[str, list[_After]] = {"clears": [], "folds": [], "shortens": []}
    each, meter = entrant(name, _MODEL, window=_WINDOW), Meter(counter(_MODEL))
    for step in Replay(of, known, each, stand_in="fold", meter=meter).steps():
        if step.cut:
            after = _After(step, each.budget.limit, meter)
            made[after.kind].append(after)
        if min(len(made["clears"]), len(made["folds"])) >= _TIMES:
            break
    return made


def _rows(what: str, figure: _Figure, sessions: Sequence[Sequence[_After]]) -> Iterator[Row]:
    for time in range(_TIMES):
        done = [compactions[time] for compactions in sessions if len(compactions) > time]
        if done:
            title = f"{what}, time {time + 1} ({len(done)} sessions)"
            yield Row(title, _spread(figure.ours, done), _spread(figure.source, done))


def _spread(measured: Callable[[_After], float], done: Sequence[_After]) -> str:
    sizes = sorted(map(measured, done))
    ends = f" ({sizes[0]:,.0f} to {sizes[-1]:,.0f})" if sizes[0] != sizes[-1] else ""
    return f"{median(sizes):,.0f}{ends}"
