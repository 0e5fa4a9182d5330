"""Redacting entries and other JSON: every text in it, and nothing that the log or a provider needs as it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from palaver.log.redaction.redactor import Redactor
from palaver.messages import canonical_json

__all__ = ["redact_body", "redact_json"]

_FREE = frozenset(
    {"args", "arguments", "caption", "data", "logprobs", "manifest", "metadata", "parameters", "parsed", "usage"}
)
"""Fields of entries and messages whose content is somebody else's: in it, no name of a field means anything to us."""

_STRUCTURE = frozenset(
    {
        "agent", "api_type", "at", "base", "call_id", "decision", "dialog", "digest", "erased", "format", "id", "kind", "label_of",
        "left", "media_type", "modality", "model", "outcome", "policy", "provider", "receipt", "response_id",
        "role", "seq", "size", "source", "sources", "speaker", "stop_reason", "target", "timestamp", "trust", "type", "vectors",
    }
)  # fmt: skip
"""Fields of entries and messages that the log is made of."""

_SEALED = frozenset({"artefact", "encrypted_content", "redacted", "signature", "thoughtSignature", "thought_signature"})
"""What a provider sealed: it comes back as it was or not at all, and no secret can be read in it."""

_INSIDE_JSON = frozenset({"raw_args", "facts"})
"""Texts that are JSON themselves."""


def redact_body(body: bytes, redactor: Redactor) -> bytes:
    """Give an entry's bytes without secrets, with a note of what was taken out; the same bytes where nothing was.

    Idempotent. Bytes that are no JSON are given back as they are: no entry of palaver's is.
    """
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(entry, dict):
        return body
    walk = _Walk(redactor)
    made = walk.fields(entry, "", free=False)
    if not walk.found:
        return body
    noted = entry.get("redacted")
    made["redacted"] = [*(noted if isinstance(noted, list) else []), *walk.notes()]
    return canonical_json(made)


def redact_json(value: Any, redactor: Redactor) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Give a JSON value, of whatever maker, without secrets; what providers sealed stays as it is."""
    return _Walk(redactor).value(value, "", "", free=True)


class _Walk:
    """A walk through JSON that remembers what it took out."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.found: Counter[tuple[str, str, str]] = Counter()

    def notes(self) -> list[dict[str, Any]]:
        """Give what was taken out: kind, place, count and marks, by place."""
        counts: Counter[tuple[str, str]] = Counter()
        marks: dict[tuple[str, str], list[str]] = {}
        for (place, kind, mark), count in self.found.items():
            counts[place, kind] += count
            if mark:
                marks.setdefault((place, kind), []).append(mark)
        return [
            {"kind": kind, "place": place, "count": count}
            | ({"marks": sorted(marks[place, kind])} if (place, kind) in marks else {})
            for (place, kind), count in sorted(counts.items())
        ]

    def fields(self, value: Mapping[str, Any], place: str, *, free: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, one in value.items():
            where = f"{place}.{name}" if place else name
            if name in _SEALED or (not free and name in _STRUCTURE):
                made[name] = one
            elif name in _INSIDE_JSON and isinstance(one, str):
                made[name] = self._json_text(one, where)
            else:
                key = self._text(name, "", f"{place}.*" if place else "*") if free else name
                made[key] = self.value(one, name, where, free=free or name in _FREE)
        if not free and made.get("type") == "thinking" and made.get("content") != value.get("content"):
            made = {name: one for name, one in made.items() if name not in _SEALED}  # it was signed for other words
        return made

    def value(self, value: Any, name: str, place: str, *, free: bool) -> Any:  # noqa: ANN401 - JSON in, JSON out
        if isinstance(value, str):
            return self._text(value, name if free else "", place)
        if isinstance(value, Mapping):
            return self.fields(value, place, free=free)
        if isinstance(value, list | tuple):
            return [self.value(one, name, f"{place}.{index}", free=free) for index, one in enumerate(value)]
        return value

    def _json_text(self, text: str, place: str) -> str:
        """Redact JSON inside a text: it stays JSON. What is none is a text like any other."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self._text(text, "", place)
        before = self.found.total()
        made = self.value(value, "", place, free=True)
        return text if self.found.total() == before else json.dumps(made, ensure_ascii=False)

    def _text(self, text: str, name: str, place: str) -> str:
        redacted = self._redactor.redact(text, name)
        for one in redacted.found:
            self.found[place, one.kind, one.mark] += 1
        return redacted.text
