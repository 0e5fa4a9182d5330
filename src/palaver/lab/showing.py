"""Show any call of a run: rebuild its exact view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.lab.entrants import Settings, entrant_of
from palaver.lab.loading import Loaded, files_in, key_of, loaded
from palaver.lab.prices import sheet
from palaver.lab.replay import ReplayStep
from palaver.lab.results import CallRow, Problem
from palaver.lab.sessions import LabSession, measured
from palaver.log.redaction import Redactor
from palaver.plurals import counted
from palaver.session import Dialog, Session
from palaver.tokens import counter
from palaver.transcripts import redacted_copy
from palaver.transcripts.sources import file_digest


@dataclass(frozen=True, kw_only=True)
class ShownCall:
    """A rebuilt call of a replay.

    Attributes:
        dialog: The dialog in which it was made.
        of: How many calls the session has.
        step: The call under the policy; its `view` is the view that the policy would have sent.
        row: Its row, as in a run.
    """

    dialog: Dialog
    of: int
    step: ReplayStep
    row: CallRow


@contextmanager
def shown(settings: Settings, session: str, call: int, *, redactor: Redactor | None = None) -> Iterator[ShownCall]:
    """Yield a call of a session, replayed under the first policy and the first stand-in that are named; its store is open inside the block.

    Args:
        settings: The settings; the session must be in the files.
        session: The session's key, or the first digits of it.
        call: The number of the call.
        redactor: Removes secrets from the session first; None to keep them.

    Raises:
        NotFound: There is no such session in the files, or no such call in it.
        InvalidInput: The policy failed before.
    """
    if not settings.policies or not settings.stand_ins:
        raise InvalidInput("No policy is given.", hint="Pass the policy whose view you want.")
    with _found(settings.paths, session) as (found, key):
        store = found.store if redactor is None else redacted_copy(found.store, found.session_id, redactor)
        yield _replayed(replace(found, store=store), key, settings, call)


def _replayed(found: Loaded, key: str, settings: Settings, call: int) -> ShownCall:
    one = LabSession.of(found, key, "", counter(settings.model))
    entrant = entrant_of(settings.policies[0], settings)
    prices = sheet(settings.model, lifetime=settings.lifetime)
    for each in measured(one, entrant, settings.stand_ins[0], prices):
        for step, row in each.each(key):
            if row.call == call:
                dialog = Session.open(found.store, found.session_id).dialog(DialogId(row.dialog))
                return ShownCall(dialog=dialog, of=one.row.calls, step=step, row=row)
        if each.replay.error:
            raise InvalidInput(
                f"The policy failed before call {call}: {each.replay.error}.", hint="Show an earlier call."
            )
    raise NotFound(f"{key}:{call}", what="call", hint=f"The session has {counted(one.row.calls, 'call')}.")


@contextmanager
def _found(paths: tuple[Path, ...], session: str) -> Iterator[tuple[Loaded, str]]:
    """Yield a session and its key; its store is open inside the block."""
    files, _ = files_in(paths)
    for path in files:
        digest = file_digest(path)
        with closing(loaded(path)) as sessions:
            for found in sessions:
                if isinstance(found, Problem):
                    continue
                key = key_of(digest, found.ordinal)
                if session and key.startswith(session):
                    yield found, key
                    return
    raise NotFound(session, what="session", hint="Pass the file that it came from.")
