"""Write a transcript that another tool can resume.

Each writable format has a module `writing` with the two functions of a `Tool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from palaver.ids import derive_id
from palaver.messages import TextContent
from palaver.view import Block, Exchange, View
from palaver.wire import Profile
from palaver.wire.gather import gather
from palaver.wire.media import Load, with_media
from palaver.wire.pairing import Names, opened, paired
from palaver.wire.reasoning import with_reasoning
from palaver.wire.script import ChangeNotes, Speech, Taken
from palaver.wire.served import with_own_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """Data for the first record of a transcript.

    Attributes:
        session: The conversation's id in the tool, a UUID.
        created: When the conversation began, in seconds since 1970-01-01 UTC.
        folder: Its working folder, or empty.
        title: A name for people, or empty.
        model: The model in force, or empty.
    """

    session: str
    created: float
    folder: str = ""
    title: str = ""
    model: str = ""


class Continuing(NamedTuple):
    """How a tool continues a transcript.

    Attributes:
        tool: The tool's name.
        place: Where it looks for the file, `~` for the home folder; by default, as it may be configured.
        folder: The working folder, or empty where it is not known: then the place may be incomplete.
        command: What to type there.
    """

    tool: str
    place: str
    folder: str
    command: str

    def __str__(self) -> str:
        """Return where to put the file and what to type."""
        folder = self.folder or "/your/folder"
        return f"To continue in {self.tool}, put it at {self.place} and type in {folder}: {self.command}"


class TranscriptLine(NamedTuple):
    """A record of a transcript.

    Attributes:
        record: The record, which is written as one line.
        exchange: The exchange that it shows a part of; None where it shows none.
    """

    record: Mapping[str, object]
    exchange: Exchange | None = None


class Tool(Protocol):
    """The module that writes one tool's transcripts."""

    def written(self, view: View, heading: Heading, load: Load, notes: ChangeNotes, /) -> Iterator[TranscriptLine]:
        """Write a view as the records of a transcript.

        Args:
            view: The view, loaded (`View.load`).
            heading: Data for the first record.
            load: Returns the bytes of a payload that is not in memory.
            notes: Collects content that the format cannot express, or expresses differently; complete after all records were yielded.
        """
        ...

    def continuing(self, heading: Heading, /) -> Continuing:
        """Return where to put the file and what to type to continue."""
        ...


def dated(view: View, heading: Heading) -> Iterator[tuple[Exchange, float]]:
    """Yield each exchange with the time of its first entry. A derived exchange has the time of the one before it."""
    at = heading.created
    for exchange in view.exchanges:
        first = exchange.first
        if first is not None and view.reader is not None:
            at = view.reader.header(first.dialog, first.seq).at
        yield exchange, at


def spelled(
    view: View, rules: Profile, heading: Heading, load: Load, notes: ChangeNotes
) -> Iterator[tuple[Exchange, float, Sequence[Speech]]]:
    """Yield each exchange with its time, in the form that a provider accepts, for a tool that sends its transcript's content.

    Thinking is kept for all models of the provider: a transcript is not a request yet.
    """
    names, taken = Names((), rules, notes), Taken(set())
    scripts: list[Sequence[Speech]] = []
    for exchange in view.exchanges:
        script = tuple(paired(gather(exchange, rules, notes), rules, names, notes, taken))
        script = tuple(with_own_blocks(script, rules, notes, taken))
        speeches = ((speech,) for speech in script)
        sent = (with_reasoning(speech, rules, speech[0].model, notes, taken, thinks=True) for speech in speeches)
        script = tuple(speech for kept in sent for speech in kept if speech.parts)
        begins = "" if any(scripts) or not script else script[0].role
        scripts.append((*opened(begins, rules, notes), *script))
    with_bytes = with_media(scripts, rules, load, rules.request_bytes, notes)
    for (exchange, at), script in zip(dated(view, heading), with_bytes, strict=True):
        yield exchange, at, script


def text_of(blocks: Iterable[Block]) -> str:
    """Return the texts of blocks, separated by empty lines."""
    return "\n\n".join(block.content.content for block in blocks if isinstance(block.content, TextContent))


def stamp(at: float) -> str:
    """Return a time as ISO 8601 text with milliseconds, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def uuid(*parts: str) -> str:
    """Derive a UUID from strings. Equal strings produce the same UUID."""
    return str(UUID(derive_id(*parts), version=4))
