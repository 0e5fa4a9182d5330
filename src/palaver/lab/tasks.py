"""Tasks of a run that a worker can do: to hold a policy to the laws, and to replay the sessions of a file."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from palaver.errors import PalaverError
from palaver.lab.conformance import examined
from palaver.lab.entrants import Entrant
from palaver.lab.loading import key_of, loaded
from palaver.lab.prices import Sheet, sheet
from palaver.lab.results import CallRow, Problem, ReplayRow
from palaver.lab.sessions import Session, replayed
from palaver.lab.settings import Settings, entrant_of
from palaver.lab.workers import Began
from palaver.lab.writing import Done, Results
from palaver.tokens import counter
from palaver.transcripts.sources import file_digest

__all__ = ["Asked", "Examine", "ReplayFile"]

_Place = tuple[str, str, str]
"""A session, a policy and a stand-in: what is replayed at a time."""

_Replay = tuple[ReplayRow, tuple[CallRow, ...]]
"""What came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examine:
    """Holds a policy of a user's to the laws; gives what it broke.

    Attributes:
        name: The policy.
        settings: What was asked.
        why: With what a worker was ended that did this before, or empty.
    """

    name: str
    settings: Settings
    why: str = ""

    def __call__(self, began: Began) -> tuple[str, ...]:
        """Do it."""
        if self.why:
            return (f"while it was held to the laws, {self.why}",)
        began(self.name)
        settings = self.settings
        return examined(lambda: entrant_of(self.name, settings).manager, settings.model, seed=settings.seed)

    def after(self, _doing: Hashable | None, why: str) -> Examine:
        """Give what is left to do: to say why."""
        return replace(self, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about each file.

    Attributes:
        settings: What was asked.
        policies: The policies that are in order.
        folder: Where the results go.
        run: The key of the run.
    """

    settings: Settings
    policies: tuple[str, ...]
    folder: Path
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFile:
    """Replays the sessions of a file, as far as they are not done.

    Attributes:
        path: The file.
        asked: What is asked.
        ended: At which replays a worker was ended, and why.
        given_up: The policies that are not tried any more.
        refused: Why the file cannot be read: its reader did not survive it.
    """

    path: Path
    asked: Asked
    ended: tuple[tuple[_Place, str], ...] = ()
    given_up: tuple[str, ...] = ()
    refused: str = ""

    def __call__(self, began: Began) -> Done:
        """Do it."""
        source, asked = str(self.path), self.asked
        if self.refused:
            return _unreadable(source, f"While it was read, {self.refused}.")
        try:
            digest = file_digest(self.path)
        except OSError as error:
            return _unreadable(source, f"It cannot be read: {error.strerror or error}.")
        results = Results(asked.folder)
        known = results.file_done(digest, asked.run)
        if known is not None and known.source == source and not _longer(asked.settings.timeout, known.limit):
            return known
        done = self._replayed(digest, results, began)
        results.write_file(digest, asked.run, done)
        return done

    def after(self, doing: Hashable | None, why: str) -> ReplayFile:
        """Give what is left to do: all but the replay that the worker was ended at; all, where it was at none, is to say why."""
        if isinstance(doing, tuple):
            return replace(self, ended=(*self.ended, (doing, why)))
        return replace(self, refused=why)

    def _replayed(self, digest: str, results: Results, began: Began) -> Done:
        source, settings, run = str(self.path), self.asked.settings, self.asked.run
        entrants = [entrant_of(name, settings) for name in self.asked.policies]
        prices, counting = sheet(settings.model, lifetime=settings.lifetime), counter(settings.model)
        keys: list[str] = []
        problems: list[Problem] = []
        stopped: list[ReplayRow] = []
        for found in loaded(self.path):
            if isinstance(found, Problem):
                problems.append(found)
                continue
            key = key_of(digest, found.ordinal)
            done = results.session_done(key, run)
            had = list(results.replays(key)) if done else []
            kept = [row for row in had if not _longer(settings.timeout, row.limit)]
            if not done or len(kept) < len(had):
                try:
                    session = Session.of(found, key, run, counting)
                except PalaverError as error:
                    problems.append(Problem(kind="unreadable", text=str(error), source=source, session=key))
                    continue
                again = {_place(row): partial(results.replay, row) for row in kept}
                results.write_session(session.row, self._replays(session, entrants, prices, began, again))
                had = list(results.replays(key))
            stopped += (row for row in had if row.limit is not None)
            keys.append(key)
        limit = min((row.limit for row in stopped if row.limit is not None), default=None)
        return Done(source=source, sessions=tuple(keys), problems=tuple(problems), limit=limit)

    def _replays(
        self,
        session: Session,
        entrants: Sequence[Entrant],
        prices: Sheet,
        began: Began,
        kept: Mapping[_Place, Callable[[], _Replay]],
    ) -> Iterator[_Replay]:
        """Give each replay: again what is kept of an earlier run, and what is not made."""
        ended, limit = dict(self.ended), self.asked.settings.timeout
        for each in entrants:
            for stand_in in self.asked.settings.stand_ins:
                place = (session.row.session, each.name, stand_in)
                why = ended.get(
                    place, "it had to be ended before on other sessions" if each.name in self.given_up else ""
                )
                if place in kept:
                    yield kept[place]()
                elif why:
                    yield _stopped(place, why, limit), ()
                else:
                    began(place)
                    yield replayed(session, each, stand_in, prices)
        began(None)


def _unreadable(source: str, text: str) -> Done:
    return Done(source=source, sessions=(), problems=(Problem(kind="unreadable", text=text, source=source),))


def _stopped(place: _Place, why: str, limit: float | None) -> ReplayRow:
    session, policy, stand_in = place
    return ReplayRow(session=session, policy=policy, stand_in=stand_in, status="stopped", error=why, limit=limit)


def _place(row: ReplayRow) -> _Place:
    return row.session, row.policy, row.stand_in


def _longer(limit: float | None, before: float | None) -> bool:
    """Tell whether a bound leaves more time than the one under which something was stopped; None before: nothing was."""
    return before is not None and (limit is None or limit > before)
