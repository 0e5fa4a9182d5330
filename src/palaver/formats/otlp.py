"""OTLP in JSON, as OpenTelemetry's collector and SDKs write it to files: spans and log records with their attributes as plain values.

A file is one document, or has a line for each export. Based on OTLP 1.9 (opentelemetry.io/docs/specs/otlp, JSON Protobuf encoding).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from palaver.formats import fields
from palaver.formats.dialogs import bad_record
from palaver.formats.events import Loss
from palaver.formats.lists import Item, document_parts, numbered, values
from palaver.formats.sources import Member
from palaver.formats.unread import Unread

BATCHES = {"resourceSpans": ("scopeSpans", "spans"), "resourceLogs": ("scopeLogs", "logRecords")}
"""The keys of a document, and for each those of the lists in its elements."""
_TIMES = ("endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano")
_NANO = 1e9
_DIGITS = 19  # of nanoseconds until the year 2286
_PAIR, _VALUES = {"key", "value"}, {"values"}
_LISTS = frozenset({"arrayValue", "kvlistValue"})
_KINDS = _LISTS | {"stringValue", "boolValue", "intValue", "doubleValue", "bytesValue"}

KEYS = {
    "": " ".join(BATCHES),
    "batch": "resource schemaUrl scopeSpans scopeLogs",
    "batch.resource": "attributes",
    **{f"batch.{scope}": f"scope schemaUrl {records}" for scope, records in BATCHES.values()},
    **{f"batch.{scope}.scope": "name version" for scope, _ in BATCHES.values()},
    "record": f"traceId spanId parentSpanId name eventName kind status attributes severityText startTimeUnixNano {' '.join(_TIMES)}",
    "record.status": "code",
    "pair": "key value",
    "value": " ".join(_KINDS),
    "value.arrayValue": "values",
    "value.kvlistValue": "values",
}
"""The keys that are read, for `Unread`: of a document, its batches, a record, and a value."""


class OtlpRecord(NamedTuple):
    """A span or a log record.

    Attributes:
        name: Its place in the file, the same when the file has grown.
        value: The record without its attributes.
        attributes: Its attributes.
        resource: The attributes of the program that recorded it.
        is_span: Whether it is a span.
    """

    name: str
    value: Mapping[str, object]
    attributes: dict[str, object]
    resource: Mapping[str, object]
    is_span: bool

    def link(self, key: str) -> tuple[str, str]:
        """Return its trace, and the span that `spanId` or `parentSpanId` names."""
        return fields.text(self.value, "traceId"), fields.text(self.value, key)

    @property
    def at(self) -> float:
        """When it ended or happened, in seconds since 1970-01-01 UTC; 0.0 if it is not recorded."""
        times = (str(self.value.get(key) or "") for key in _TIMES)
        return next((int(time) / _NANO for time in times if time.isdecimal() and len(time) <= _DIGITS), 0.0)


def recorded(member: Member, unread: Unread, details: str) -> Iterator[OtlpRecord | Loss]:
    """Yield the spans and log records of a file in its order. The attributes of a span's events called `details` are its own."""
    count = 0
    for batch in _batches(member, unread):
        if isinstance(batch, Loss):
            yield batch
            continue
        unread.see(batch.value, batch.place, "batch")
        for scope, record in _records(batch.fields):
            name = member.place(f"record {count}")
            try:
                resource = _attributes(fields.mapping(batch.fields, "resource"), batch.place, unread)
                own, others = _attributes(record, name, unread), list[Mapping[str, object]]()
                for event in fields.objects(record, "events"):
                    if event.get("name") == details:
                        own |= _attributes(event, name, unread)
                    else:
                        others.append(event)
                rest = {key: value for key, value in record.items() if key != "attributes"}
                yield OtlpRecord(name, {**rest, "events": others}, own, resource, scope == "scopeSpans")
            except RecursionError:
                yield bad_record(batch.place, "it is nested too deeply")
            count += 1


def _records(batch: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for scope, records in BATCHES.values():
        for group in fields.objects(batch, scope):
            yield from ((scope, record) for record in fields.objects(group, records))


def _batches(member: Member, unread: Unread) -> Iterator[Item | Loss]:
    if member.opening.document is None:
        for record in values(member):
            if isinstance(record, Loss):
                yield record
                continue
            unread.see(record.value, record.place)
            for key in BATCHES:
                yield from numbered(record.fields.get(key), f"{record.place}, {key}")
        return
    for part in document_parts(member, BATCHES):
        if isinstance(part, Loss) or part.ordinal >= 0:
            yield part
        else:
            unread.see({part.key: part.value}, part.place)


def _attributes(record: Mapping[str, object], place: str, unread: Unread) -> dict[str, object]:
    return _mapping(fields.items(record, "attributes"), place, unread)


def _mapping(pairs: object, place: str, unread: Unread) -> dict[str, object]:
    made: dict[str, object] = {}
    for pair in pairs if isinstance(pairs, list) else ():
        if not isinstance(pair, dict) or pair.keys() != _PAIR:
            unread.see(pair, place, "pair")
        if isinstance(pair, dict):
            made[fields.text(pair, "key")] = _plain(pair.get("value"), place, unread)
    return made


def _plain(value: object, place: str, unread: Unread) -> object:
    """Return the JSON value of an AnyValue. Whole numbers are texts there."""
    kind, inner = next(iter(value.items()), ("", None)) if isinstance(value, dict) else ("", None)
    if not isinstance(value, dict) or len(value) > 1 or kind not in _KINDS:
        unread.see(value, place, "value")
    if kind in _LISTS:
        if not isinstance(inner, dict) or inner.keys() != _VALUES:
            unread.see(inner, place, f"value.{kind}")
        values = inner.get("values") if isinstance(inner, dict) else None
        if kind == "kvlistValue":
            return _mapping(values, place, unread)
        return [_plain(part, place, unread) for part in values] if isinstance(values, list) else []
    if kind == "intValue" and isinstance(inner, str) and inner.removeprefix("-").isdecimal() and len(inner) <= _DIGITS:
        return int(inner)
    return inner if kind in _KINDS else None
