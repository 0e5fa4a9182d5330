"""Sources: files that may hold transcripts, read as they lie there and as often as needed, never held in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Self

from palaver.errors import UnsupportedTranscript
from palaver.formats.events import Loss
from palaver.formats.records import Record, parse, records
from palaver.formats.splitting import Part, split
from palaver.formats.streams import Chunks, Layer, take, unpack

HEAD = 1 << 18
"""How much of a file its format is found from, in bytes."""

_LONG_HEAD = 1 << 24  # a first line may hold a picture; what has no line's end by then is not read line by line
_SAMPLE = 64  # records looked at
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
_BINARY = 0.05  # more control characters than that, and it is no text; terminal output in transcripts stays far below
_BLANKS = b" \t\r\n\0\xef\xbb\xbf"
_MAGIC = (  # what people most often hand over by mistake; each from the registry of its format
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x7fELF", "a program"),
)
_UTF = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_MULTIBYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)  # RFC 3629, section 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the first bytes of a stream show; formats are told apart by it.

    Attributes:
        size: How many bytes were looked at.
        text: The first bytes as text.
        records: The first JSON objects that stand on lines of their own.
        elements: The first elements of a document that is an array; objects only.
        keys: The top-level keys of a document that is an object, as far as they were seen.
        fields: Those of its values that ended within the opening.
    """

    size: int = 0
    text: str = ""
    records: tuple[Mapping[str, object], ...] = ()
    elements: tuple[Mapping[str, object], ...] = ()
    keys: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def describe(self) -> str:
        """Say in a few words what it looks like."""
        if self.elements:
            return f"a JSON array of objects with the keys {_some(self.elements[0])}"
        whole = self.text.strip() if self.size < HEAD else ""
        if whole in {"[]", "{}"}:
            return f"an empty JSON {'array' if whole == '[]' else 'object'}"
        if len(self.records) > 1 or (self.records and not self.keys):
            return f"JSON lines with the keys {_some(self.records[0])}"
        if self.keys:
            return f"a JSON object with the keys {_some(self.keys)}"
        if self.text.lstrip()[:1] not in {"[", "{"}:
            return "text that is no JSON"
        return "JSON without an object in it" if whole else "JSON whose first value is large"


def _some(keys: Collection[str]) -> str:
    shown = ", ".join(repr(key)[1:-1][:40] for key in list(keys)[:8])
    return f"{shown} …" if len(keys) > 8 else shown or "(none)"  # noqa: PLR2004  # one screen line


class Member:
    """One stream of a source: the file itself, or one file of an archive.

    Attributes:
        name: Its name within the archive, or empty.
        label: How an error names it.
    """

    def __init__(self, layer: Layer, *, label: str, prefix: str = "") -> None:
        self.name = layer.name
        self.label = label
        self._prefix = prefix
        self._opener = layer.opener

    def place(self, where: str) -> str:
        """Give a place for a report: the name of an archive's member goes before it."""
        return f"{self._prefix}{where}"

    def records(self) -> Iterator[Record | Loss]:
        """Read it as one JSON object a line, lazily, from the start each time; what cannot be read is reported in its place."""
        return records(self._opener(), self._prefix)

    def parts(self, into: Collection[str] = ()) -> Iterator[Part | Loss]:
        """Take it apart as one JSON document, lazily, from the start each time: an array into its elements, an object into its values.

        Args:
            into: The keys of a top-level object whose arrays are taken apart in turn.
        """
        early = yield from split(self._opener(), into)
        if early:
            reason = f"The document cannot be read to its end: {early}."
            yield Loss(place=self.place("end"), reason=reason, code="torn_tail", severity="loss")

    def read(self, limit: int) -> bytes:
        """Read at most `limit` bytes from the start, decompressed."""
        return take(self._opener, limit)[0]

    def reader(self) -> Callable[[int], bytes]:
        """Give a function that reads on from the start, at most so many bytes a call, decompressed; none at the end, also at a torn one."""
        chunks = self._opener()
        held = bytearray()

        def read(size: int) -> bytes:
            while len(held) < size:
                chunk = next(chunks, b"")
                if not chunk:
                    break
                held.extend(chunk)
            data = bytes(held[:size])
            del held[:size]
            return data

        return read

    @cached_property
    def opening(self) -> Opening:
        """What its first bytes show.

        Raises:
            UnsupportedTranscript: It is empty, binary, or in another encoding than UTF-8.
        """
        head, early = take(self._opener, HEAD)
        if len(head) == HEAD and b"\n" not in head:
            head, early = take(self._opener, _LONG_HEAD)
        found = _first_records(head)
        why, hint = _refusal(head, early, found=bool(found))
        if why:
            raise UnsupportedTranscript(self.label, why, hint=hint)
        elements, keys, fields = _first_parts(head)
        text = head[:HEAD].decode(errors="replace").removeprefix("\ufeff")
        return Opening(size=len(head), text=text, records=found, elements=elements, keys=keys, fields=fields)


class Source:
    """A file that may hold transcripts. Use it as a context manager: an archive that had to be unpacked is held until it is closed.

    Attributes:
        path: The file.
        members: Its streams: one, unless it is an archive.
        losses: What could not be unpacked.
    """

    def __init__(
        self, path: Path, members: tuple[Member, ...], losses: tuple[Loss, ...] = (), spool: IO[bytes] | None = None
    ) -> None:
        self.path = path
        self.members = members
        self.losses = losses
        self._spool = spool

    @property
    def opening(self) -> Opening:
        """The opening of its first member.

        Raises:
            UnsupportedTranscript: As `Member.opening`.
        """
        return self.members[0].opening

    def alone(self, member: Member) -> Source:
        """Give one member as a source. It is readable as long as this one is not closed."""
        return Source(self.path, (member,))

    def close(self) -> None:
        """Release what an unpacked archive holds. Closing twice is allowed."""
        if self._spool is not None:
            self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(path: str | Path) -> Source:
    """Open a file that may hold transcripts: as it is, compressed (.zst, .gz), or an archive (.tar) of such files.

    What it is, its content says, not its name. Nothing but its beginning, and an archive's index, is read.

    Raises:
        UnsupportedTranscript: It is no file that can be read, or an archive without a file.
    """
    path = Path(path)
    why, hint = _not_a_file(path)
    if why:
        raise UnsupportedTranscript(path, why, hint=hint)
    try:
        found = unpack(path)
    except OSError as error:
        raise UnsupportedTranscript(path, f"it cannot be read ({error.strerror or error})") from error
    losses = tuple(
        Loss(place=place, reason=f"It could not be unpacked: {why}.", code="skipped", severity="loss")
        for place, why in found.faults
    )
    members = tuple(
        Member(
            layer,
            label=f"{path}, member {layer.name}" if found.archive else str(path),
            prefix=f"{layer.name}, " if found.archive else "",
        )
        for layer in found.layers
    )
    source = Source(path, members, losses, found.spool)
    if not members:
        source.close()
        raise UnsupportedTranscript(path, f"it is an archive without a file{'; ' + losses[0].reason if losses else ''}")
    return source


def _not_a_file(path: Path) -> tuple[str, str]:
    if not path.exists():
        return "there is no such file", "Check the path."
    if path.is_dir():
        return "it is a directory", "Name the files in it."
    if not path.is_file():
        return "it is no regular file", "Save what it gives to a file first."
    return "", ""


def _refusal(head: bytes, early: str, *, found: bool) -> tuple[str, str]:
    """Give why a stream cannot be a transcript of any format, and what to do; empty when it may be one."""
    why = hint = ""
    if not head:
        why = f"nothing can be read from it: {early}" if early else "it is empty"
    elif not head.strip(_BLANKS):
        why = "it holds nothing but blanks"
    elif not found and (utf := _utf(head)):
        why, hint = f"it is text in {utf}", f"Convert it first: iconv -f {utf} -t UTF-8."
    elif not found and (kind := _binary(head)):
        why, hint = f"it is {kind}", "Hand over the transcript itself."
    elif _looks_latin(head, found=found):
        why, hint = "it is not UTF-8 text; perhaps Latin-1", "Convert it first: iconv -f LATIN1 -t UTF-8."
    return why, hint


def _binary(head: bytes) -> str:
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    controls = len(head) - len(head.translate(None, _CONTROL))
    return "binary data" if controls > _BINARY * len(head) else ""


def _utf(head: bytes) -> str:
    for mark, name in _UTF:
        if head.startswith(mark):
            return name
    even, odd = head[0:HEAD:2], head[1:HEAD:2]
    zeros = max(even.count(0), odd.count(0))
    return "UTF-16" if zeros > len(even) // 2 and min(even.count(0), odd.count(0)) < zeros // 8 else ""


def _looks_latin(head: bytes, *, found: bool) -> bool:
    """Tell a text in a one-byte encoding from UTF-8 text with a damaged record: the former has no character of several bytes at all.

    Where records were found, only lines that look like records count: noise between them is no encoding.
    """
    lines = [line for line in head.split(b"\n") if line.strip() and (not found or line.lstrip()[:1] == b"{")]
    if len(head) >= HEAD:
        lines[-1] = lines[-1][: max(len(lines[-1]) - 4, 0)]
    bad = sum(1 for line in lines if not line.isascii() and "\ufffd" in line.decode(errors="replace"))
    return bad > 0 and (bad > 1 or len(lines) == 1) and not _MULTIBYTE.search(head)


def _first_records(head: bytes) -> tuple[Mapping[str, object], ...]:
    found: list[Mapping[str, object]] = []
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _SAMPLE)[:_SAMPLE]:
        if line.lstrip()[:1] == b"{":
            found.extend(value for value, _ in parse(line).values if isinstance(value, dict))
    return tuple(found)


def _first_parts(head: bytes) -> tuple[tuple[Mapping[str, object], ...], tuple[str, ...], Mapping[str, object]]:
    elements: list[Mapping[str, object]] = []
    fields: dict[str, object] = {}
    keys: list[str] = []
    for part in split(_once(head)):
        value = _value(part)
        if part.nth < 0:
            keys.append(part.key)
            if value is not None:
                fields[part.key] = value
        elif isinstance(value, dict):
            elements.append(value)
        if len(elements) >= _SAMPLE:
            break
    return tuple(elements), tuple(keys), MappingProxyType(fields)


def _value(part: Part) -> object:
    """Give a part's value; of an array that does not end within the opening, the elements that do."""
    if part.whole:
        values = parse(part.data).values
        return values[0][0] if values else None
    if part.data[:1] != b"[":
        return None
    inner = (parse(element.data).values for element in split(_once(part.data)) if element.whole)
    return [values[0][0] for values in inner if values]


def _once(data: bytes) -> Chunks:
    yield data
    return ""
