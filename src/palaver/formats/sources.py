"""Sources: files that may contain transcripts. They are read from disk as often as needed, not kept in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic_core import from_json

from palaver.errors import MissingFile, UnsupportedTranscript
from palaver.formats.archives import Closing, unpack
from palaver.formats.databases import is_database, sessions
from palaver.formats.documents import Element, elements
from palaver.formats.events import NOTHING, Loss
from palaver.formats.records import Record, parse, records, text_lines
from palaver.formats.streams import Layer, ReadLimits, read_head

HEAD = 1 << 18
"""The number of leading bytes used to detect a file's format."""

_LONG_HEAD = 1 << 24  # a first line may contain an image; a file without a line end by then is not read line by line
_SAMPLE = 64  # records looked at
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
_BINARY = (
    0.05  # the share of control characters above which it is not text; terminal output in transcripts stays far below
)
_UNPACK = "Unpack it, and import what is in it."
_MAGICS = (
    (b"\xff\xfe", "it is text in UTF-16", "Convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW"),
    (b"\xfe\xff", "it is text in UTF-16", "Convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW"),
    (b"\x89PNG", "it is a PNG image", ""),
    (b"\xff\xd8\xff", "it is a JPEG image", ""),
    (b"GIF8", "it is a GIF image", ""),
    (b"RIFF", "it is a WebP image, a sound or a video", ""),
    (b"%PDF-", "it is a PDF document", ""),
    (b"PAR1", "it is a Parquet file", "Write its rows as JSON lines first."),
    (b"SQLite format 3\0", "it is an SQLite database, but not OpenCode's", ""),
    (b"7z\xbc\xaf", "it is a 7z archive", _UNPACK),
    (b"Rar!", "it is a RAR archive", _UNPACK),
    (b"BZh", "it is compressed with bzip2", _UNPACK),
    (b"\xfd7zXZ", "it is compressed with xz", _UNPACK),
    (b"PK\x03\x04", "it is a zip file in an archive", _UNPACK),
    (b"\x7fELF", "it is a program", ""),
)
"""How other files begin (the list of file signatures of Wikipedia), and what to say of them."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BLANKS = b" \t\r\n\0\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first bytes of a stream, by which formats are detected.

    Attributes:
        text: The first bytes as text.
        records: The first JSON objects that are on separate lines.
        document: The beginning of a document in these bytes: an array, an object, or None.
        complete: Whether the document ends within these bytes.
    """

    text: str = ""
    records: tuple[Mapping[str, object], ...] = ()
    document: object = None
    complete: bool = False

    @property
    def fields(self) -> Mapping[str, object]:
        """The document's values if it is an object, or else empty."""
        return self.document if isinstance(self.document, dict) else NOTHING

    @property
    def elements(self) -> list[Mapping[str, object]]:
        """The objects among the document's first elements if it is an array, or else empty."""
        values = self.document if isinstance(self.document, list) else []
        return [value for value in values[:_SAMPLE] if isinstance(value, dict)]

    def describe(self) -> str:
        """Return a short description of the content."""
        if self.complete and self.text.strip() in {"[]", "{}"}:
            return "an empty JSON document"
        if self.elements:
            return f"a JSON array of objects with the keys {_some(self.elements[0])}"
        if len(self.records) > 1 or (self.records and not self.fields):
            return f"JSON lines with the keys {_some(self.records[0])}"
        if self.fields:
            return f"a JSON object with the keys {_some(self.fields)}"
        if self.document is None:
            return "JSON that is nested too deeply" if _deep(self.text) else "text that is not JSON"
        return "JSON without an object in it"


def _some(keys: Collection[str]) -> str:
    shown = ", ".join(repr(key)[1:-1][:40] for key in list(keys)[:8])
    return f"{shown} …" if len(keys) > 8 else shown or "(none)"  # noqa: PLR2004 - one screen line


class Member:
    """One stream of a source: the file itself, or one file of an archive.

    Attributes:
        name: Its name within the archive, or empty.
        label: Its name in errors.
    """

    def __init__(self, layer: Layer, limits: ReadLimits, *, label: str, prefix: str = "") -> None:
        self.name = layer.name
        self.label = label
        self._prefix = prefix
        self._limits = limits
        self._opener = layer.opener

    def place(self, where: str) -> str:
        """Return a place for a report, prefixed with the name of the archive's member."""
        return f"{self._prefix}{where}"

    def records(self) -> Iterator[Record | Loss]:
        """Read it lazily as one JSON object per line, from the start each time. Yield a report for each unreadable line."""
        return records(self._opener(), self._limits, self._prefix)

    def text_lines(self) -> Iterator[tuple[int, str, bool]]:
        """Read it lazily as text, from the start each time: each line's number from 1, its text with the line end, and whether it ends.

        A line over `MAX_LINE` bytes is cut there.
        """
        return text_lines(self._opener())

    def elements(self, into: Collection[str] = ()) -> Iterator[Element | Loss]:
        """Read it lazily as one JSON document, from the start each time: an array by its elements, an object by its values.

        Args:
            into: The keys of a top-level object whose arrays are read element by element.
        """
        early = yield from elements(self._opener(), self._limits, into)
        if early:
            reason = f"The document cannot be read to its end: {early}."
            yield Loss(place=self.place("end"), reason=reason, code="torn_tail", severity="loss")

    def read(self, limit: int) -> bytes:
        """Read at most `limit` bytes from the start, decompressed."""
        return read_head(self._opener, limit)[0]

    def reader(self) -> Callable[[int], bytes]:
        """Return a function that reads the next bytes, decompressed, up to a maximum per call. At the end it returns no bytes.

        The function raises `UnsupportedTranscript` if the stream ends too early, or unpacks to more than the limit.
        """
        chunks = self._opener()
        pending = bytearray()

        def read(size: int) -> bytes:
            while len(pending) < size:
                try:
                    pending.extend(next(chunks))
                except StopIteration as end:
                    if end.value:
                        raise UnsupportedTranscript(self.label, end.value) from None
                    break
            data = bytes(pending[:size])
            del pending[:size]
            return data

        return read

    @cached_property
    def opening(self) -> Opening:
        """Its first bytes.

        Raises:
            UnsupportedTranscript: It is empty, or not UTF-8 text.
        """
        head, early = read_head(self._opener, HEAD)
        if len(head) == HEAD and b"\n" not in head:
            head, early = read_head(self._opener, _LONG_HEAD)
        records = _first_records(head)
        if not head.strip(_BLANKS):
            why = f"nothing can be read from it: {early}" if early else "it is empty"
            raise UnsupportedTranscript(self.label, why)
        if not records and len(head) - len(head.translate(None, _CONTROL)) > _BINARY * len(head):
            looks = (found for magic, *found in _MAGICS if head.startswith(magic))
            why, hint = next(looks, ("it is binary, or not UTF-8 text", ""))
            raise UnsupportedTranscript(self.label, why, hint=hint)
        text = head.decode(errors="replace").removeprefix("\ufeff")
        document, complete = _document(text)
        if b"\n" not in head and isinstance(document, dict) and not records:
            records = (document,)  # a first line that does not end here
        return Opening(text=text[:HEAD], records=records, document=document, complete=complete)


class SourceFile:
    """A file that may contain transcripts. Use it as a context manager: it keeps an unpacked archive until it is closed.

    Attributes:
        path: The file.
        members: Its streams: one, unless it is an archive.
        losses: Content that could not be unpacked.
        apart: Whether each member is a separate source in a file, a database, that contains more than these.
    """

    def __init__(
        self,
        path: Path,
        members: tuple[Member, ...],
        losses: tuple[Loss, ...] = (),
        spool: Closing | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self.path = path
        self.members = members
        self.losses = losses
        self.apart = apart
        self._spool = spool

    @property
    def member(self) -> Member:
        """Its first stream, and the only one that most formats are given."""
        return self.members[0]

    @property
    def opening(self) -> Opening:
        """The opening of its first member.

        Raises:
            UnsupportedTranscript: See `Member.opening`.
        """
        return self.member.opening

    def alone(self, member: Member) -> SourceFile:
        """Return one member as a source, readable until this one is closed."""
        return SourceFile(self.path, (member,), apart=self.apart)

    def close(self) -> None:
        """Release an unpacked archive. Closing twice is allowed."""
        if self._spool is not None:
            self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(path: str | Path, limits: ReadLimits | None = None) -> SourceFile:
    """Open a file that may contain transcripts: plain, compressed (.zst, .gz), an archive (.tar, .zip), or OpenCode's database.

    The content, not the name, determines the type. Only the beginning, and an archive's index, are read.

    Args:
        path: The file.
        limits: How much of it is read; None for the defaults.

    Raises:
        MissingFile: The file does not exist.
        UnsupportedTranscript: It cannot be read, or is an archive without a file.
    """
    path = Path(path)
    if not path.exists():
        raise MissingFile(path, hint="Check the path.")
    if not path.is_file():
        hint = "Name the files in it." if path.is_dir() else "Save its output to a file first."
        raise UnsupportedTranscript(
            path, f"it is {'a directory' if path.is_dir() else 'not a regular file'}", hint=hint
        )
    limits = limits or ReadLimits()
    try:
        unpacked = sessions(path, limits) if is_database(path) else unpack(path, limits)
    except OSError as error:
        raise UnsupportedTranscript(path, f"it cannot be read ({error.strerror or error})") from error
    losses = tuple(
        Loss(place=place, reason=f"It could not be unpacked: {why}.", code="skipped", severity="loss")
        for place, why in unpacked.faults
    )
    members = tuple(
        Member(
            layer,
            limits,
            label=f"{path}, member {layer.name}" if unpacked.archive else str(path),
            prefix=f"{layer.name}, " if unpacked.archive else "",
        )
        for layer in unpacked.layers
    )
    source = SourceFile(path, members, losses, unpacked.spool, apart=unpacked.apart)
    if not members:
        source.close()
        raise UnsupportedTranscript(
            path, f"it is an archive without a file{'. ' + losses[0].reason.rstrip('.') if losses else ''}"
        )
    return source


def _first_records(head: bytes) -> tuple[Mapping[str, object], ...]:
    records: list[Mapping[str, object]] = []
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _SAMPLE)[:_SAMPLE]:
        if line.lstrip()[:1] == b"{":
            records.extend(value for value, _ in parse(line).values if isinstance(value, dict))
    return tuple(records)


def _document(text: str) -> tuple[object, bool]:
    """Return the document at the beginning of a text, and whether it is complete; None if each line is a separate value."""
    first, _, rest = text.lstrip().partition("\n")
    if rest.strip() and _value(first) is not None:
        return None, False
    whole = _value(text)
    return (_value(text.rstrip(), "trailing-strings"), False) if whole is None else (whole, True)


def _value(text: str, partial: Literal["off", "trailing-strings"] = "off") -> object:
    for tried in (
        text,
        _SURROGATE.sub(r"\\ufffd", text),
    ):  # from_json refuses lone surrogates, which the readers of records keep
        with suppress(ValueError):
            return from_json(tried, allow_partial=partial)
    return None


def _deep(text: str) -> bool:
    try:
        from_json(text, allow_partial="trailing-strings")
    except ValueError as error:
        return str(error).startswith("recursion limit")
    return False
