"""Redaction: keys and tokens are taken out of what is written, before it is written. Pure: text in, text out."""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from math import log2
from re import Match
from typing import Any, NamedTuple, Protocol, runtime_checkable

from palaver.log.secret_patterns import PATTERNS, SECRET_KEY, Pattern, is_placeholder
from palaver.messages import canonical_json

__all__ = ["PATTERNS", "Found", "Pattern", "PatternRedactor", "Redacted", "Redactor", "redact_body", "redact_json"]

_MARK_DIGITS = 12
_ENTROPY_CHARACTERS = 256  # of a longer secret its beginning is judged
_PASSES = 16  # a placeholder may uncover what was written next to the secret; real texts need two passes


class Found(NamedTuple):
    """A secret that was taken out; never the secret itself.

    Attributes:
        kind: Which pattern found it.
        mark: A keyed hash of it when the redactor has a key, else empty. Equal secrets have equal marks.
    """

    kind: str
    mark: str = ""


class Redacted(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: The text, with a placeholder for each.
        found: What was taken out, in any order.
    """

    text: str
    found: tuple[Found, ...]


@runtime_checkable
class Redactor(Protocol):
    """Finds secrets in texts.

    Laws: it is pure, its output holds nothing that it would find again, and it takes time linear in the text.
    """

    def redact(self, text: str, name: str = "") -> Redacted:
        """Return a text without its secrets.

        Args:
            text: The text.
            name: The name of the field whose value it is, or empty.
        """
        ...


class PatternRedactor:
    """A redactor by patterns of keys and tokens, and by names of fields such as `password`.

    Attributes:
        patterns: The patterns, in the order in which they are tried.
    """

    def __init__(self, patterns: Sequence[Pattern] = PATTERNS, *, key: bytes | None = None) -> None:
        """Make a redactor.

        Args:
            patterns: What it looks for; by default the keys and tokens of the services that agents use most.
            key: A secret key that adds a mark to placeholders (HMAC-SHA-256, 12 digits), by which equal secrets are recognised.
        """
        self.patterns = tuple(patterns)
        self._key = key

    def redact(self, text: str, name: str = "") -> Redacted:
        """Return a text without its secrets."""
        found: list[Found] = []
        if name and text and SECRET_KEY.fullmatch(name) and not is_placeholder(text):
            return Redacted(self._placeholder("named-secret", text, found), tuple(found))
        for _ in range(_PASSES):
            before = len(found)
            text = self._pass(text, found)
            if len(found) == before:
                break
        return Redacted(text, tuple(found))

    def _pass(self, text: str, found: list[Found]) -> str:
        low = text.lower()
        for pattern in self.patterns:
            if any(word in low for word in pattern.words):
                text = pattern.regex.sub(partial(self._taken, pattern, found), text)
        return text

    def _taken(self, pattern: Pattern, found: list[Found], match: Match[str]) -> str:
        whole = match.group()
        named = "secret" in match.re.groupindex
        secret = match["secret"] if named else whole
        if is_placeholder(secret) or (pattern.entropy and entropy(secret) < pattern.entropy):
            return whole
        placeholder = self._placeholder(pattern.kind, secret, found)
        if not named:
            return placeholder
        start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
        return whole[:start] + placeholder + whole[end:]

    def _placeholder(self, kind: str, secret: str, found: list[Found]) -> str:
        mark = ""
        if self._key is not None:
            mark = hmac.new(self._key, secret.encode("utf-8", "surrogatepass"), sha256).hexdigest()[:_MARK_DIGITS]
        found.append(Found(kind, mark))
        return f"[redacted:{kind}#{mark}]" if mark else f"[redacted:{kind}]"


def entropy(text: str) -> float:
    """Return the Shannon entropy of the first 256 characters of a text, in bits a character; 0 for an empty text."""
    judged = text[:_ENTROPY_CHARACTERS]
    return -sum(count / len(judged) * log2(count / len(judged)) for count in Counter(judged).values())


# --- entries and other JSON ---------------------------------------------------------------------------------------------------


_FREE = frozenset(
    {"args", "arguments", "caption", "data", "logprobs", "manifest", "metadata", "parameters", "parsed", "usage"}
)
"""Fields of entries and messages whose content is foreign: names of fields in it have no meaning here."""

_STRUCTURE = frozenset(
    {
        "agent", "api_type", "at", "base", "call_id", "decision", "dialog", "digest", "erased", "format", "id", "kind", "label_of",
        "left", "media_type", "modality", "model", "outcome", "policy", "provider", "receipt", "response_id",
        "role", "seq", "size", "source", "sources", "speaker", "stop_reason", "target", "timestamp", "trust", "type", "vectors",
    }
)  # fmt: skip
"""Fields of entries and messages that the log is made of."""

_SEALED = frozenset({"artefact", "encrypted_content", "redacted", "signature", "thoughtSignature", "thought_signature"})
"""What a provider sealed: it goes back unchanged or not at all, and no secret can be read in it."""

_INSIDE_JSON = frozenset({"raw_args"})
"""Texts that are JSON themselves."""


def redact_body(body: bytes, redactor: Redactor) -> bytes:
    """Return an entry's bytes without secrets, with a note of what was taken out; the same bytes when nothing was.

    A second call changes nothing. Bytes that are not a JSON object are no entry, and are returned unchanged.
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
    """Return any JSON value without secrets. What providers sealed stays unchanged."""
    return _Walk(redactor).value(value, "", "", free=True)


class _Walk:
    """A walk through JSON that counts what it takes out."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.found: Counter[tuple[str, str, str]] = Counter()

    def notes(self) -> list[dict[str, Any]]:
        """Return what was taken out: kind, place, count and marks, sorted by place."""
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
        """Redact JSON inside a text, so that it stays JSON; redact any other text as text."""
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
