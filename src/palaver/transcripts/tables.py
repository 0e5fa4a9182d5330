"""Sessions as Parquet files, for pandas, polars and DuckDB: one file a table, in row groups, so that memory does not grow with the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Self

from palaver.errors import MissingExtra
from palaver.ids import SessionId
from palaver.log import Handle, Header, MessageEntry, Node, Span, decoded, every_body, every_header, repeated
from palaver.log.entries import Inbox, LateResult
from palaver.messages import (
    AudioContent,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from palaver.session.costs import own_paid
from palaver.session.recall import searchable
from palaver.store.protocol import SessionRecord, Store
from palaver.store.redacting import RedactLike, redactor_of
from palaver.store.text import APART
from palaver.store.titles import title
from palaver.transcripts.exporting import partial_path
from palaver.transfer.bundle import redacted_copy

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("An export of tables", "arrow", package="pyarrow") from error

ROWS, BYTES = 10_000, 16_000_000
"""A row group is written when it has so many rows, or texts of so many characters; one entry is never divided."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        type: Its type, in Arrow's words.
        meaning: What it says.
    """

    type: str
    meaning: str


_TEXT, _INT, _WHEN, _YES = "string", "int64", "timestamp", "bool"
_TYPES: Mapping[str, Any] = {
    _TEXT: pa.string(),
    _INT: pa.int64(),
    _WHEN: pa.timestamp("us", tz="UTC"),
    _YES: pa.bool_(),
    "double": pa.float64(),
}
_PLACE = {
    "session": Column(_TEXT, "the session's id"),
    "dialog": Column(_TEXT, "the id of the dialog that the row belongs to; an entry that branches share is in one"),
}

TABLES: Mapping[str, Mapping[str, Column]] = MappingProxyType(
    {
        "sessions": {
            "session": Column(_TEXT, "its id"),
            "name": Column(_TEXT, "its name, or null"),
            "title": Column(_TEXT, "its title, or the beginning of its first message"),
            "subject": Column(_TEXT, "whose data it is, or null"),
            "folder": Column(_TEXT, "the folder that it was about, or null"),
            "format": Column(_TEXT, "the format that it was imported from, or null"),
            "created": Column(_WHEN, "when it was created"),
            "updated": Column(_WHEN, "when it was last active"),
            "dialogs": Column(_INT, "how many dialogs (branches) it has"),
        },
        "entries": {
            **_PLACE,
            "seq": Column(_INT, "its number in the dialog"),
            "handle": Column(_TEXT, "its name for `palaver show`"),
            "at": Column(_WHEN, "when it happened, or null"),
            "kind": Column(_TEXT, "`message`, `compaction`, `label` and so on"),
            "role": Column(_TEXT, "of a message: `user`, `assistant`, `tool` or `system`; else null"),
            "speaker": Column(_TEXT, "of a message: `human`, `model`, `tool`, `harness` or `summary`; else null"),
            "model": Column(_TEXT, "the model that said it, or null"),
            "provider": Column(_TEXT, "the provider of the model, or null"),
            "text": Column(_TEXT, "its texts, one below the other, without thinking, arguments and results"),
            "thinking": Column(_TEXT, "the model's readable thinking, or null"),
            "calls": Column(_INT, "how many tools it calls"),
            "results": Column(_INT, "how many results of tools it has"),
            "images": Column(_INT, "how many images it has, those in results included"),
            "sounds": Column(_INT, "how many sounds it has"),
            "bytes": Column(_INT, "the size of its stored form, without images and sounds"),
            "repeats": Column(_YES, "whether it repeats a message of the branch that it was rewritten from"),
        },
        "tool_calls": {
            **_PLACE,
            "call": Column(_TEXT, "the call's id, as the provider gave it"),
            "tool": Column(_TEXT, "the tool's name"),
            "arguments": Column(_TEXT, "its arguments, in JSON; null where the call is in another dialog"),
            "seq": Column(_INT, "the entry with the call; null where it is in another dialog"),
            "called": Column(_WHEN, "when the model called, or null"),
            "result_seq": Column(_INT, "the entry with the result; null where it has none in this dialog"),
            "answered": Column(_WHEN, "when the result came, or null"),
            "failed": Column(_YES, "whether the result says that the call failed; null without a result"),
            "result": Column(_TEXT, "the text of the result, or null"),
        },
        "costs": {
            **_PLACE,
            "seq": Column(_INT, "the entry with the answer or summary that was paid for"),
            "at": Column(_WHEN, "when, or null"),
            "model": Column(_TEXT, "the model, or null"),
            "role": Column(_TEXT, "the role of the answer; `summary` for the summary of a compaction"),
            "input_tokens": Column(_INT, "tokens read, those from a cache included"),
            "cache_read_tokens": Column(_INT, "tokens read from a cache"),
            "cache_write_tokens": Column(_INT, "tokens written to a cache"),
            "output_tokens": Column(_INT, "tokens written, thinking included"),
            "reasoning_tokens": Column(_INT, "tokens of thinking"),
            "dollars": Column("double", "US dollars"),
            "estimated": Column(_YES, "whether the dollars are estimated from list prices"),
        },
    }
)
"""The tables and their columns, in order."""


def write_tables(
    sessions: Iterable[tuple[Store, SessionId]], folder: Path, *, redact: RedactLike = False
) -> Mapping[str, int]:
    """Write sessions as Parquet files of a folder, one a table, readable only by their owner. Files of the same names are replaced when all are whole.

    Args:
        sessions: Each session and its store.
        folder: The folder, which is made if it is missing.
        redact: A redactor that removes secrets, or True for one that recognises common keys and tokens.

    Returns:
        The number of rows of each table.

    Raises:
        NotFound: There is no such session.
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    redactor = redactor_of(redact)
    with ExitStack() as stack:
        files = {name: stack.enter_context(_File(folder / f"{name}.parquet", name)) for name in TABLES}
        for store, session_id in sessions:
            source = store if redactor is None else redacted_copy(store, session_id, redactor)
            for name, row in _rows(source, source.session(session_id)):
                files[name].add(row)
        for file in files.values():
            file.finish()
        for file in files.values():
            file.show()
        return {name: file.rows for name, file in files.items()}


class _File:
    """A table while it is written: it appears when it is whole."""

    def __init__(self, target: Path, name: str) -> None:
        """Open a file beside the target."""
        self.rows = 0
        self._target, self._partial = target, partial_path(target)
        self._columns = TABLES[name]
        fields = [
            pa.field(key, _TYPES[column.type], metadata={"description": column.meaning})
            for key, column in self._columns.items()
        ]
        self._schema = pa.schema(fields)
        self._partial.unlink(missing_ok=True)
        self._file = os.fdopen(os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        self._group: list[Sequence[Any]] = []
        self._size = 0

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Close it, and delete what is not whole."""
        with suppress(OSError, pa.ArrowException):  # on a full disk closing fails, too
            self._writer.close()
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def add(self, row: Sequence[Any]) -> None:
        """Add a row."""
        values = [_storable(value) for value in row]
        self._group.append(values)
        self._size += sum(len(value) for value in values if isinstance(value, str))
        self.rows += 1
        if len(self._group) >= ROWS or self._size >= BYTES:
            self._flush()

    def finish(self) -> None:
        """Write the last rows."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())

    def show(self) -> None:
        """Put the file in its place."""
        self._partial.replace(self._target)

    def _flush(self) -> None:
        if not self._group:
            return
        columns = zip(*self._group, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._group, self._size = [], 0


def _storable(value: object) -> object:
    """Return a value that Parquet can store: its texts are UTF-8, which has no lone surrogates."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


# --- rows ---------------------------------------------------------------------------------------------------------------


def _rows(store: Store, record: SessionRecord) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the rows of a session, each with the name of its table."""
    nodes = store.nodes(record.session_id)
    formats = sorted({source.format for source in store.sources(record.session_id) if not source.is_export})
    yield (
        "sessions",
        (
            record.session_id,
            record.name or None,
            title(store, record) or None,
            record.subject or None,
            record.workdir or None,
            ", ".join(formats) or None,
            _when(record.created_at),
            _when(record.updated_at),
            len(nodes),
        ),
    )
    for node in nodes:
        place = (record.session_id, node.dialog_id)
        for paid in own_paid(store, node):
            cost, usage = paid.cost(), paid.usage
            yield (
                "costs",
                (
                    *place,
                    paid.seq,
                    _when(paid.at),
                    paid.model or None,
                    paid.role,
                    usage.input_tokens,
                    usage.cache_read_tokens,
                    usage.cache_write_tokens,
                    usage.output_tokens,
                    usage.reasoning_tokens,
                    cost.cost,
                    cost.estimated > 0,
                ),
            )
        yield from _of_dialog(store, node, place)


class _OpenCall(NamedTuple):
    """A call whose result was not read yet."""

    call: ToolCallContent
    header: Header


def _of_dialog(store: Store, node: Node, place: tuple[str, str]) -> Iterator[tuple[str, Sequence[Any]]]:
    span = Span(node.dialog_id, 0, store.last(node.dialog_id).seq + 1)
    again = repeated(store, node)
    calls: dict[str, _OpenCall] = {}
    for header, (seq, body) in zip(every_header(store, span), every_body(store, span), strict=False):
        handle = Handle(node.dialog_id, seq)
        entry = decoded(store, handle, body)
        message = entry.message if isinstance(entry, MessageEntry | Inbox | LateResult) else None
        said = _of_message(message) if message is not None else _of_other(header, body)
        first = (*place, seq, str(handle), _when(header.at), header.kind, header.role or None)
        yield "entries", (*first, *said, header.size, seq in again)
        for content in () if message is None else message.contents:
            if isinstance(content, ToolCallContent):
                if content.id in calls:  # the id was given twice
                    yield "tool_calls", (*place, *_called(calls[content.id]), *_UNANSWERED)
                calls[content.id] = _OpenCall(content, header)
            elif isinstance(content, ToolResultContent):
                known = calls.pop(content.id, None)
                called = (content.id, content.name or None, None, None, None) if known is None else _called(known)
                answered = (seq, _when(header.at), content.is_error, content.text())
                yield "tool_calls", (*place, *called, *answered)
    yield from (("tool_calls", (*place, *_called(call), *_UNANSWERED)) for call in calls.values())


_UNANSWERED = (None, None, None, None)


def _called(opened: _OpenCall) -> Sequence[Any]:
    call, header = opened
    return (call.id, call.name, call.arguments, header.seq, _when(header.at))


def _of_message(message: Message) -> Sequence[Any]:
    """Return the columns of an entry that come from its message."""
    results = [content for content in message.contents if isinstance(content, ToolResultContent)]
    inside = [part for result in results if isinstance(result.content, tuple) for part in result.content]
    media = [*message.contents, *inside]
    return (
        str(message.speaker.value),
        message.model or None,
        message.provider or None,
        _joined(content.content for content in message.contents if isinstance(content, TextContent)),
        _joined(content.content for content in message.contents if isinstance(content, ThinkingContent)),
        sum(isinstance(content, ToolCallContent) for content in message.contents),
        len(results),
        sum(len(content.media) for content in media if isinstance(content, ImageContent)),
        sum(len(content.media) for content in media if isinstance(content, AudioContent)),
    )


def _of_other(header: Header, body: bytes) -> Sequence[Any]:
    text = searchable(header.kind, body).replace(APART, "\n") if body else ""
    return (None, None, None, text or None, None, 0, 0, 0, 0)


def _joined(texts: Iterable[str]) -> str | None:
    return "\n".join(text for text in texts if text) or None


def _when(seconds: float) -> int | None:
    """Return a time in microseconds; None for one that is unknown."""
    return round(seconds * 1_000_000) if seconds else None
