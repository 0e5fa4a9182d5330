"""Write a session that Claude Code can resume: a file for ~/.claude/projects, as versions 2.1 write it.

Content goes through the wire's passes for Anthropic, because Claude Code sends the content of its file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from palaver.formats.writing import Continuing, Heading, TranscriptLine, spelled, stamp, text_of, uuid
from palaver.messages import Speaker
from palaver.providers import profile
from palaver.providers.anthropic.write import written as items_of
from palaver.view import Exchange, View
from palaver.wire import How
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes, Speech

_VERSION = "2.1.39"
"""The newest version whose files were compared."""

_ANTHROPIC = profile("anthropic")
_ANSWER: dict[str, object] = {
    "type": "message",
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 0, "output_tokens": 0},
}


def continuing(heading: Heading) -> Continuing:
    """Return where to put the file and what to type."""
    folder = heading.folder or "/your/folder"
    place = f"~/.claude/projects/{re.sub('[^a-zA-Z0-9]', '-', folder)}/{heading.session}.jsonl"
    return Continuing("Claude Code", place, heading.folder, f"claude --resume {heading.session}")


def written(view: View, heading: Heading, load: Load, notes: ChangeNotes) -> Iterator[TranscriptLine]:
    """Write a view as the records of a Claude Code session, each the child of the one before it.

    A record or summary that begins the view is written as Claude Code writes its own after a compaction.
    """
    if view.system:
        notes.add(None, "instructions", How.DROPPED, "Claude Code sends its own")
    if view.tools:
        notes.add(None, "tools", How.DROPPED, "Claude Code declares its own")
    chain = _Chain(heading)
    for exchange, at, script in spelled(view, _ANTHROPIC, heading, load, notes):
        if exchange.derived and script and not chain.count:
            yield from (TranscriptLine(record, exchange) for record in chain.compaction(exchange, at))
            continue
        meta = {} if exchange.speaker is Speaker.HUMAN else {"isMeta": True}
        for speech in script:
            yield from (TranscriptLine(record, exchange) for record in chain.speech(speech, meta, at, notes))
    if heading.title:
        yield TranscriptLine({"type": "custom-title", "customTitle": heading.title, "sessionId": heading.session})


class _Chain:
    """The records of a session so far. Each names the one before it."""

    def __init__(self, heading: Heading) -> None:
        self._heading = heading
        self._last: str | None = None
        self._response = ""
        self.count = 0

    def link(self, kind: str, at: float, **fields: object) -> Mapping[str, object]:
        """Return the next record of the chain."""
        session = self._heading.session
        own = uuid(session, str(self.count))
        record = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._heading.folder,
            "sessionId": session,
            "version": _VERSION,
            "gitBranch": "",
            "type": kind,
            **fields,
            "uuid": own,
            "timestamp": stamp(at),
        }
        self._last, self.count = own, self.count + 1
        return record

    def speech(
        self, speech: Speech, meta: Mapping[str, object], at: float, notes: ChangeNotes
    ) -> Iterator[Mapping[str, object]]:
        """Yield a record for each block of a response and for each result, as Claude Code does, or one for a user's message.

        Consecutive responses get one id: Claude Code sends all records of an id as one message, and roles must alternate.
        """
        if speech.role != "assistant" or not self._response:
            self._response = f"msg_{uuid(self._heading.session, str(self.count)).replace('-', '')}"
        for item in items_of(speech, _ANTHROPIC, notes):
            if speech.role == "user":
                yield self.link("user", at, **meta, message=item)
                continue
            for block in item["content"]:
                message = {**item, "content": [block]}
                if speech.role == "assistant":
                    message |= _ANSWER | {"id": self._response, "model": speech.model or self._heading.model}
                yield self.link(item["role"], at, message=message)

    def compaction(self, exchange: Exchange, at: float) -> Iterator[Mapping[str, object]]:
        """Yield the records of a compaction by Claude Code: a boundary and the summary."""
        notice: Mapping[str, object] = {"content": "Conversation compacted", "isMeta": False, "level": "info"}
        bounds = {"trigger": "manual", "preTokens": 0}
        yield self.link("system", at, subtype="compact_boundary", **notice, compactMetadata=bounds)
        message = {"role": "user", "content": text_of(exchange.blocks())}
        yield self.link("user", at, message=message, isVisibleInTranscriptOnly=True, isCompactSummary=True)
