"""A transcript read record by record: what is wrong with it, in one pass, holding nothing of what was said.

Importing a transcript into memory tells more, and takes as much memory as the file is long. This reads a file of any length in the same
memory: a few dozen bytes are kept for each call and each record that has an id, and at most `LISTED` findings of a kind.

Formats with one record a line are looked at as they lie there; of every other format the reader's own events are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from palaver.formats import matches, open_source
from palaver.formats.events import Conversation, Loss, Put
from palaver.formats.records import Record
from palaver.formats.registry import Match
from palaver.log import MessageEntry
from palaver.messages import Message, ToolCallContent, ToolResultContent
from palaver.transcripts import poison
from palaver.transcripts.findings import Diagnosis, Finding
from palaver.transcripts.looks import LOOKS, Look
from palaver.wire import PROFILES

__all__ = ["LISTED", "Scan", "scan_file"]

LISTED = 1_000
"""How many findings of a kind are listed; more are counted."""

_MARKS = (rb"\u0000", rb"\ud", rb"\uD")
"""What a line holds that may hold NUL or half a surrogate pair; JSON spells both as escapes."""

_LOST = frozenset({"bad_record", "torn_tail"})
_FAULTS = frozenset(
    {"surrogate", "nul", "orphan_result", "duplicate_id", "bad_record", "torn_tail", "malformed_arguments"}
)
_SEEN_HERE = frozenset({"orphan_result", "surrogate", "nul", "malformed_arguments"})
"""What a reader reports of messages that are looked at here all the same."""
_FEWEST_IMAGES = min(profile.media.count for profile in PROFILES.values())


class Scan:
    """What was seen of one conversation so far.

    A look tells it, in the order of the file, what a record holds; it keeps which calls wait for results.

    Attributes:
        findings: What was found so far, at most `LISTED` of a kind.
        counts: How many findings of each kind there are.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.records = 0
        self.unread = 0
        self._ids: set[int] = set()
        self._made: set[int] = set()
        self._waiting: dict[str, tuple[str, int]] = {}
        self._turn = 0
        self._response: str | None = None
        self._images = 0
        self._thinkers: dict[str, str] = {}

    def add(self, finding: Finding) -> None:
        """Take down a finding."""
        self.counts[finding.code] += 1
        if self.counts[finding.code] <= LISTED:
            self.findings.append(finding)

    def _fault(self, place: str, code: str, what: str) -> None:
        self.add(poison.told(Finding(place=place, code=code, what=what, severity="fault")))

    # --- what a look tells ---------------------------------------------------------------------------------------------------------

    def lost(self, loss: Loss) -> None:
        """Take down what a reader reports."""
        self.unread += loss.code in _LOST
        self.records += loss.code in _LOST
        severity = "fault" if loss.code in _FAULTS else {"loss": "fault", "note": "note"}.get(loss.severity, "warning")
        self.add(Finding(place=loss.place, code=loss.code, what=loss.reason, severity=severity))

    def record(self, place: str, name: str, parent: str) -> None:
        """A record has an id, and names the one before it."""
        key = hash(name)
        if key in self._ids:
            what = f"The id {name[:40]!r} was used before."
            self.add(Finding(place=place, code="repeated_record", what=what, severity="note"))
        self._ids.add(key)
        if parent and hash(parent) not in self._ids:
            what = f"Its parent {parent[:40]!r} does not stand before it in the file."
            self.add(Finding(place=place, code="dangling_parent", what=what, severity="warning"))

    def dirty(self, place: str, code: str) -> None:
        """A record holds what no provider takes in a text."""
        self._fault(place, code, f"A text holds what cannot be sent ({code}).")

    def said(self, response: str | None) -> None:
        """Somebody speaks: the model, with the id of its response, or anybody else (None)."""
        if response is None or response != self._response:
            self._turn += 1
        self._response = response

    def text(self, place: str, text: str) -> None:
        """A block is a text that says nothing."""
        for finding in poison.of_text(place, text):
            self.add(finding)

    def call(self, place: str, call_id: str, name: str, error: str = "") -> None:
        """A call is made."""
        for finding in poison.of_call(place, call_id, name, error):
            self.add(finding)
        key = hash(call_id)
        if key in self._made:
            what = f"An earlier call has its id, {call_id[:60]!r}, too."
            self._fault(place, "duplicate_id", what)
        self._made.add(key)
        self._waiting[call_id] = (place, self._turn)

    def result(self, place: str, call_id: str) -> None:
        """A call is answered."""
        if self._waiting.pop(call_id, None) is not None:
            return
        if hash(call_id) in self._made:
            what = "A call has a second result; the first one counts."
            self.add(Finding(place=place, code="duplicate_result", what=what, severity="fault"))
        else:
            self._fault(place, "orphan_result", "A tool result has no call before it.")

    def image(self, place: str, media_type: str, data: str) -> None:
        """A block is an image with its bytes in base64."""
        self._images += 1
        if poison.suspicious_image(media_type, data):
            for finding in poison.of_image(place, media_type, data):
                self.add(finding)

    def thought(self, place: str, said: str, signature: str, thinker: str) -> None:
        """A block is a thought; `thinker` is the family of the models that take it back, empty where that is not known."""
        if thinker == "claude":
            for finding in poison.of_thought(place, said, signature):
                self.add(finding)
        if thinker:
            self._thinkers.setdefault(thinker, place)

    def begin(self) -> None:
        """Another conversation begins: its calls are its own."""
        self._made, self._waiting = set(), {}
        self._turn, self._response = 0, None

    def end(self) -> None:
        """The conversation ends: what waits, waits for good, unless the newest response made it."""
        for place, turn in self._waiting.values():
            if turn == self._turn:
                what = "A tool call waits for its result."
                self.add(Finding(place=place, code="open_call", what=what, severity="note"))
            else:
                self._fault(place, "unanswered_call", "A tool call has no result.")
        if len(self._thinkers) > 1:
            what = f"Models of several families thought here: {', '.join(self._thinkers)}."
            place = list(self._thinkers.values())[1]
            self.add(Finding(place=place, code="foreign_reasoning", what=what, severity="note"))
        if self._images > _FEWEST_IMAGES:
            few = tuple(name for name, profile in PROFILES.items() if profile.media.count < self._images)
            what = f"It holds {self._images:,} images."
            self.add(Finding(place="whole file", code="too_many_images", what=what, severity="warning", providers=few))


# --- a file -----------------------------------------------------------------------------------------------------------------------


def scan_file(path: str | Path) -> Iterator[Diagnosis]:
    """Read a transcript record by record: one diagnosis for each file in it (an archive holds several).

    The memory it takes does not grow with what was said. Nothing is imported and nothing is compiled: `examine_file` does that.

    Raises:
        UnsupportedTranscript: The file is in no known format.
    """
    with open_source(path) as source:
        for found in matches(source):
            if isinstance(found, Loss):
                continue
            name = f"{path}: {found.format.title}"
            scan = Scan()
            look = LOOKS.get(found.format.name)
            if look is None:
                _of_events(scan, found)
            else:
                for member in found.source.members:
                    _of_lines(scan, look, member.records())
            scan.end()
            yield _diagnosis(scan, name)


def _diagnosis(scan: Scan, name: str) -> Diagnosis:
    more = {code: count - LISTED for code, count in scan.counts.items() if count > LISTED}
    return Diagnosis(
        name=name,
        session_id=None,
        dialogs=0,
        total=scan.records,
        reachable=scan.records - scan.unread,
        findings=tuple(scan.findings),
        valid={},
        more=more,
    )


def _of_lines(scan: Scan, look: Look, records: Iterator[Record | Loss]) -> None:
    """Look at each line; a record of an odd shape is as good as one that cannot be read."""
    for record in records:
        if not isinstance(record, Record):
            scan.lost(record)
            continue
        scan.records += 1
        data = record.data
        if any(mark in data for mark in _MARKS):
            _dirty(scan, record)
        try:
            look(scan, record.place, record.value)
        except (TypeError, ValueError, AttributeError, KeyError) as error:  # what an odd shape can cause
            what = f"The record cannot be read: {str(error)[:200]}"
            scan.lost(Loss(place=record.place, reason=what, code="bad_record", severity="loss"))
            scan.records -= 1


_ESCAPE = re.compile(rb"\\(?:\\|u([0-9a-fA-F]{4}))")
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)  # The Unicode Standard, section 23.6


def _dirty(scan: Scan, record: Record) -> None:
    """Find NUL and halves of surrogate pairs among the escapes of a line; an escaped backslash before them makes them plain letters."""
    found: dict[str, None] = {}
    half = -1  # where the escape after a first half must begin
    for match in _ESCAPE.finditer(record.data):
        code = int(match[1], 16) if match[1] else -1
        joined = half == match.start() and code in _LOW
        if (half >= 0 or code in _LOW) and not joined:
            found["surrogate"] = None
        half = match.end() if code in _HIGH else -1
        if code == 0:
            found["nul"] = None
    if half >= 0:
        found["surrogate"] = None
    for one in found:
        scan.dirty(record.place, one)


# --- any other format -------------------------------------------------------------------------------------------------------------


def _of_events(scan: Scan, found: Match) -> None:
    """Look at what the reader of a format tells, one event after another."""
    for event in found.format.read(found.source):
        if isinstance(event, Loss):
            if event.code not in _SEEN_HERE:
                scan.lost(event)
        elif isinstance(event, Conversation):
            scan.end()
            scan.begin()
        elif isinstance(event, Put) and isinstance(event.entry, MessageEntry):
            scan.records += event.counted
            _of_message(scan, f"record {event.record[:40]}", event.entry.message)


def _of_message(scan: Scan, place: str, message: Message) -> None:
    for kind in dict.fromkeys(change.kind for change in message.normalized):
        scan.dirty(place, kind)
    if message.role.value == "assistant" or message.tool_calls():
        scan.said(message.response_id or message.id)
    elif not any(isinstance(block, ToolResultContent) for block in message.contents):
        scan.said(None)
    for block in message.contents:
        if isinstance(block, ToolCallContent):
            scan.call(place, block.id, block.name, block.error or "")
        elif isinstance(block, ToolResultContent):
            scan.result(place, block.id)
        else:
            for finding in poison.of_content(place, block):
                scan.add(finding)
