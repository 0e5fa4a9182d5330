"""One session under every policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from palaver.context import Meter
from palaver.lab.entrants import Entrant
from palaver.lab.finder import Index
from palaver.lab.loading import Loaded
from palaver.lab.looks import Looks, ShownParts
from palaver.lab.measuring import Measured, Recording
from palaver.lab.optimum import Load, optimum
from palaver.lab.prices import Sheet
from palaver.lab.recorded import RecordedDialog, recorded_dialog
from palaver.lab.results import CallRow, Problem, ReplayRow, SessionRow
from palaver.lab.things import things, words
from palaver.messages import Role, Speaker
from palaver.store.records import payloads_of
from palaver.tokens import ModelCounter

_VIOLATIONS = 5
"""The maximum number of violations of one replay that are listed."""


@dataclass(frozen=True, kw_only=True)
class LabSession:
    """A session prepared for replays.

    Attributes:
        row: Its row in the results.
        recordings: Its dialogs with model calls.
        growth: For each of them, the new tokens before each call.
    """

    row: SessionRow
    recordings: tuple[Recording, ...]
    growth: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, found: Loaded, key: str, run: str, counting: ModelCounter) -> LabSession:
        """Prepare a session.

        Args:
            found: The session.
            key: Its key.
            run: The key of the run.
            counting: Counts the tokens of the run's model.
        """
        traces = [each for dialog in found.dialogs if (each := recorded_dialog(found.store, dialog)).calls]
        recordings = tuple(_recording(each, found, counting) for each in traces)
        growth = tuple(_growth(each) for each in recordings)
        calls = [call for each in traces for call in each.calls]
        row = SessionRow(
            session=key,
            run=run,
            source=str(found.source),
            ordinal=found.ordinal,
            name=found.name,
            format=found.format,
            dialogs=len(traces),
            messages=sum(found.store.last(dialog).number for dialog in found.dialogs),
            calls=len(calls),
            tokens=max((sum(each) for each in growth), default=0),
            started=next((call.at for call in calls if call.at is not None), None),
            model=next((each.models[-1] for each in reversed(traces) if each.models), ""),
            summaries=sum(len(each.summaries) for each in traces),
            problems=(*_problems(traces, found, key), *_unmeasured(recordings, found, key)),
        )
        return cls(row=row, recordings=recordings, growth=growth)


def _recording(found: RecordedDialog, loaded: Loaded, counting: ModelCounter) -> Recording:
    known = things(found)
    looks = Looks(known, Meter(counting))
    outputs = tuple(
        call.output if call.output is not None else _written(found, looks, number)
        for number, call in enumerate(found.calls)
    )
    index = Index()
    for exchange in found.whole.exchanges:
        index.add("\n".join(words(block.content) for block in exchange.blocks()))
    return Recording(
        trace=found,
        things=known,
        looks=looks,
        humans=tuple(
            (number, exchange.first)
            for number, exchange in enumerate(found.whole.exchanges)
            if exchange.speaker is Speaker.HUMAN and exchange.role is Role.USER and exchange.first is not None
        ),
        index=index,
        outputs=outputs,
        media=payloads_of(loaded.store, loaded.session_id),
    )


def _written(found: RecordedDialog, looks: Looks, number: int) -> int:
    """Return the counted tokens of a response without recorded usage."""
    response = found.responses[found.calls[number].first]
    return sum(looks.meter.block(block.content) for turn in response.turns[:1] for block in turn.blocks)


def _growth(recording: Recording) -> tuple[int, ...]:
    shown, sizes = ShownParts(recording.looks), []
    for _, view in recording.trace.views():
        shown.take(view)
        sizes.append(shown.tokens)
    return tuple(max(size - before, 0) for before, size in zip((0, *sizes), sizes, strict=False))


def _problems(traces: Sequence[RecordedDialog], found: Loaded, key: str) -> Iterator[Problem]:
    calls = [call for each in traces for call in each.calls]
    source = str(found.source)
    if found.lost:
        more = f" (and {len(found.lost) - 1:,} more)" if len(found.lost) > 1 else ""
        yield Problem(kind="damaged", text=f"It is incomplete: {found.lost[0]}{more}", source=source, session=key)
    if not calls:
        yield Problem(kind="empty", text="It has no model call.", source=source, session=key)
        return
    late = sum(call.at is None for call in calls)
    if late:
        text = f"{late} of {len(calls)} calls have no time: the cache is assumed to be warm there."
        yield Problem(kind="no timestamps", text=text, source=source, session=key)
    bare = sum(call.output is None for call in calls)
    if bare:
        text = f"{bare} of {len(calls)} calls have no usage: the output is counted from the model's text."
        yield Problem(kind="no usage", text=text, source=source, session=key)
    if not any(each.models for each in traces):
        yield Problem(kind="no model", text="It names no model; the run's model is used.", source=source, session=key)


def _unmeasured(recordings: Sequence[Recording], found: Loaded, key: str) -> Iterator[Problem]:
    """Yield a problem where no call refers to anything, as where commands are part of the text: no policy can lose evidence there."""
    if recordings and not any(needs for each in recordings for needs in each.things.needs):
        text = (
            "No argument of a call repeats a name that was said before: it counts for the bill, not for the evidence."
        )
        yield Problem(kind="no evidence", text=text, source=str(found.source), session=key)


def replayed(
    session: LabSession, entrant: Entrant, stand_in: str, sheet: Sheet
) -> tuple[ReplayRow, tuple[CallRow, ...]]:
    """Replay a session under a policy, dialog by dialog.

    Args:
        session: The session.
        entrant: The policy.
        stand_in: The replacement for a model's summaries.
        sheet: The prices.
    """
    rows: list[CallRow] = []
    optima: list[float] = []
    violations: list[str] = []
    error = ""
    dialogs = zip(measured(session, entrant, stand_in, sheet), session.recordings, session.growth, strict=True)
    for each, recording, growth in dialogs:
        own = [row for _, row in each.each(session.row.session)]
        rows += own
        violations += each.violations
        if error := each.replay.error:
            break
        optima.append(_optimum(own, growth, recording, entrant, sheet))
    return _summed(session, entrant, stand_in, rows, error, optima, violations), tuple(rows)


def measured(session: LabSession, entrant: Entrant, stand_in: str, sheet: Sheet) -> Iterator[Measured]:
    """Yield each dialog of a session under a policy, ready to be measured. Calls are numbered through the session."""
    first = 1
    for recording in session.recordings:
        yield Measured(recording, entrant, stand_in=stand_in, sheet=sheet, first=first)
        first += len(recording.trace.calls)


def _optimum(
    rows: Sequence[CallRow], growth: Sequence[int], recording: Recording, entrant: Entrant, sheet: Sheet
) -> float:
    prefix = rows[0].system + rows[0].tools
    cuts = [row.tokens - row.system - row.tools for row in rows if row.mark == "cut"]
    room = max(entrant.budget.limit, prefix + 1)
    return optimum(
        Load(
            new=(max(growth[0] - prefix, 0), *growth[1:]),
            warm=tuple(row.warm for row in rows),
            prefix=prefix,
            output=sum(recording.outputs),
            after=sum(cuts) // len(cuts) if cuts else (room - prefix) // 2,
            room=room,
        ),
        sheet,
    )


_SUMS = frozenset(each.name for each in fields(ReplayRow)) & frozenset(each.name for each in fields(CallRow)) - {
    "session",
    "policy",
    "stand_in",
    "infeasible",
    "checked",
}


def _summed(  # noqa: PLR0913, PLR0917 - the parts of a replay
    session: LabSession,
    entrant: Entrant,
    stand_in: str,
    rows: Sequence[CallRow],
    error: str,
    optima: Sequence[float],
    violations: Sequence[str],
) -> ReplayRow:
    ends = {row.dialog: row.call for row in rows}
    return ReplayRow(
        session=session.row.session,
        policy=entrant.name,
        stand_in=stand_in,
        status="failed" if error else "ok",
        error=error,
        calls=len(rows),
        infeasible=sum(row.infeasible > 0 for row in rows),
        cuts=sum(row.mark == "cut" for row in rows),
        stable_of=sum(row.tokens for row in rows if ends[row.dialog] != row.call),
        optimum=None if error or not optima else sum(optima),
        complete=sum(0 < row.references == row.in_view for row in rows),
        referring=sum(row.references > 0 for row in rows),
        checked=sum(row.checked for row in rows),
        violations=tuple(violations[:_VIOLATIONS]),
        **{name: sum(getattr(row, name) for row in rows) for name in sorted(_SUMS)},
    )
