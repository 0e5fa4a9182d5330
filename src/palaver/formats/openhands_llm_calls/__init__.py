"""OpenHands' logs of model calls: an archive of files, each the whole request and the answer of one call of a run.

The messages of a run are the union of its requests, in order, each recorded once; an invocation entry says of every call what of
them was sent. Read from logs of OpenHands 0.15 and of its SDK (`litellm` completion logs).
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname

from palaver.errors import UnsupportedTranscript
from palaver.formats.events import Event
from palaver.formats.openhands_llm_calls.reading import Reading
from palaver.formats.openhands_llm_calls.snapshots import NAME, is_snapshot
from palaver.formats.openhands_llm_calls.survey import Survey
from palaver.formats.sources import Member, Source

__all__ = ["OpenHandsCalls"]

_LOOKED_AT = 8  # files of an archive


class OpenHandsCalls:
    """OpenHands' logs of model calls: one conversation a run; the files of one folder are a run."""

    name = NAME
    title = "OpenHands model calls"
    signs = "an archive of JSON objects with messages, response, kwargs and timestamp"
    series = True

    def sniff(self, source: Source) -> float:
        """Tell how surely it is such a log: most of the first files are calls."""
        looked = source.members[:_LOOKED_AT]
        found = sum(1 for member in looked if _shows_call(member))
        return 1.0 if 2 * found > len(looked) else 0.0

    def read(self, source: Source) -> Iterator[Event]:
        """Read the files of every folder as the calls of a run."""
        runs: dict[str, list[Member]] = {}
        for member in source.members:
            runs.setdefault(dirname(member.name), []).append(member)
        for ordinal, members in enumerate(runs.values()):
            survey = Survey(members)
            yield from Reading(survey, ordinal).events()


def _shows_call(member: Member) -> bool:
    try:
        return is_snapshot(member.opening.fields, member.opening.keys)
    except UnsupportedTranscript:
        return False
