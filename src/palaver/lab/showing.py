"""Showing: from any call of a run to the exact view, made again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from palaver.errors import InvalidInput, NotFound
from palaver.lab.entrants import Settings, entrant_of
from palaver.lab.loading import Loaded, files_in, key_of, loaded
from palaver.lab.prices import sheet
from palaver.lab.replay import Step
from palaver.lab.results import CallRow, Problem, Run
from palaver.lab.sessions import Session, measured
from palaver.plurals import counted
from palaver.store import SessionRecord
from palaver.tokens import counter
from palaver.transcripts.sources import file_digest

__all__ = ["ShownCall", "command", "shown"]


@dataclass(frozen=True, kw_only=True)
class ShownCall:
    """A call of a replay, made again.

    Attributes:
        record: The session.
        step: The call as it would have been; its `view` is what the policy would have sent.
        row: Its row, as a run has it.
    """

    record: SessionRecord
    step: Step
    row: CallRow


def command(run: Run, row: CallRow, source: str) -> str:
    """Return the command that shows the view of a call again.

    Args:
        run: The run.
        row: The call.
        source: The file of its session (`SessionRow.source`).
    """
    words = ["palaver", "lab", source, "--policies", row.policy, "--model", run.model, "--window", str(run.window)]
    words += ["--budget", str(run.budget)] if run.budget is not None else []
    words += ["--stand-in", row.stand_in] if row.stand_in != "fold" else []
    lives = run.prices["lifetime"]
    words += ["--cache", f"{lives:g}"] if lives != sheet(run.model).lifetime else []
    return shlex.join([*words, "--show", f"{row.session}:{row.call}"])


def shown(settings: Settings, session: str, call: int) -> ShownCall:
    """Replay a session up to a call, under the first policy and the first stand-in that are named.

    Args:
        settings: What was asked; the files must hold the session.
        session: The session's key, or the first digits of it.
        call: The number of the call.

    Raises:
        NotFound: There is no such session in the files, or no such call in it.
        InvalidInput: The policy failed before.
    """
    if not settings.policies or not settings.stand_ins:
        raise InvalidInput("No policy is named.", hint="Name the one whose view is to be shown.")
    found, key = _found(settings.paths, session)
    one = Session.of(found, key, "", counter(settings.model))
    entrant = entrant_of(settings.policies[0], settings)
    prices = sheet(settings.model, lifetime=settings.lifetime)
    for each in measured(one, entrant, settings.stand_ins[0], prices):
        for step, row in each.each(key):
            if row.call == call:
                return ShownCall(record=found.store.session(found.session_id), step=step, row=row)
        if each.replay.error:
            raise InvalidInput(
                f"The policy failed before call {call}: {each.replay.error}.", hint="Show an earlier call."
            )
    raise NotFound(f"{key}:{call}", what="call", hint=f"The session has {counted(one.row.calls, 'call')}.")


def _found(paths: tuple[Path, ...], session: str) -> tuple[Loaded, str]:
    files, _ = files_in(paths)
    for path in files:
        digest = file_digest(path)
        for found in _sessions(path):
            key = key_of(digest, found.ordinal)
            if session and key.startswith(session):
                return found, key
    raise NotFound(session, what="session", hint="Name the file that it came from.")


def _sessions(path: Path) -> Iterator[Loaded]:
    return (found for found in loaded(path) if not isinstance(found, Problem))
