"""Redaction: keys and tokens are taken out of what is written, before it is written. Pure: text in, text out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import log2
from re import Match
from typing import Any, NamedTuple, Protocol, runtime_checkable

from palaver.log.secret_patterns import PATTERNS, SECRET_KEY, Pattern, is_placeholder
from palaver.messages import canonical_json

_ENTROPY_CHARACTERS = 256  # of a longer secret its beginning is judged
_BEGINNING = 4  # characters of a secret that are shown, where it is long enough
_PASSES = 16  # a placeholder may uncover what was written next to the secret; real texts need two passes


class Redacted(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: The text, with a placeholder for each.
        found: Which patterns found them, one name for each secret.
        beginnings: How each secret begins, at most a quarter of it: enough to know which one it is. Empty where the redactor does not say.
    """

    text: str
    found: tuple[str, ...]
    beginnings: tuple[str, ...] = ()


@runtime_checkable
class Redactor(Protocol):
    """Finds secrets in texts.

    Laws: it is pure, its output contains nothing that it would find again, and it takes time linear in the text.
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

    def __init__(self, patterns: Sequence[Pattern] = PATTERNS) -> None:
        """Look for some patterns; by default for the keys and tokens of the services that agents use most."""
        self.patterns = tuple(patterns)

    def redact(self, text: str, name: str = "") -> Redacted:
        """Return a text without its secrets."""
        secrets: list[tuple[str, str]] = []
        if name and text and SECRET_KEY.fullmatch(name) and not is_placeholder(text):
            return Redacted("[redacted:named-secret]", ("named-secret",), (_beginning(text),))
        for _ in range(_PASSES):
            before = len(secrets)
            text = self._pass(text, secrets)
            if len(secrets) == before:
                break
        return Redacted(text, tuple(kind for kind, _ in secrets), tuple(beginning for _, beginning in secrets))

    def _pass(self, text: str, secrets: list[tuple[str, str]]) -> str:
        low = text.lower()
        for pattern in self.patterns:
            if any(word in low for word in pattern.words):
                text = re.sub(pattern.regex, partial(self._taken, pattern, secrets), text)
        return text

    def _taken(self, pattern: Pattern, secrets: list[tuple[str, str]], match: Match[str]) -> str:
        whole = match.group()
        named = "secret" in match.re.groupindex
        secret = match["secret"] if named else whole
        if is_placeholder(secret) or (pattern.entropy and entropy(secret) < pattern.entropy):
            return whole
        secrets.append((pattern.kind, _beginning(secret)))
        placeholder = f"[redacted:{pattern.kind}]"
        if not named:
            return placeholder
        start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
        return whole[:start] + placeholder + whole[end:]


def _beginning(secret: str) -> str:
    return f"{secret[: min(_BEGINNING, len(secret) // 4)]}…"


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

_INSIDE_JSON = frozenset({"raw", "raw_args"})
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
        self.found: Counter[tuple[str, str]] = Counter()

    def notes(self) -> list[dict[str, Any]]:
        """Return what was taken out: kind, place and count, sorted by place."""
        return [{"kind": kind, "place": place, "count": count} for (place, kind), count in sorted(self.found.items())]

    def fields(self, value: Mapping[str, Any], place: str, *, free: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, part in value.items():
            where = f"{place}.{name}" if place else name
            if name in _SEALED or (not free and name in _STRUCTURE):
                made[name] = part
            elif name in _INSIDE_JSON and isinstance(part, str):
                made[name] = self._json_text(part, where)
            else:
                key = self._text(name, "", f"{place}.*" if place else "*") if free else name
                made[key] = self.value(part, name, where, free=free or name in _FREE)
        if not free and made.get("type") == "thinking" and made.get("content") != value.get("content"):
            made = {name: part for name, part in made.items() if name not in _SEALED}  # it was signed for other words
        return made

    def value(self, value: Any, name: str, place: str, *, free: bool) -> Any:  # noqa: ANN401 - JSON in, JSON out
        if isinstance(value, str):
            return self._text(value, name if free else "", place)
        if isinstance(value, Mapping):
            return self.fields(value, place, free=free)
        if isinstance(value, list | tuple):
            return [self.value(part, name, f"{place}.{index}", free=free) for index, part in enumerate(value)]
        return value

    def _json_text(self, text: str, place: str) -> str:
        """Redact JSON inside a text, so that it stays JSON; redact any other text as text."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self._text(text, "", place)
        before = self.found.total()
        made = self.value(value, "", place, free=True)
        return text if self.found.total() == before else json.dumps(made, ensure_ascii=text.isascii())

    def _text(self, text: str, name: str, place: str) -> str:
        redacted = self._redactor.redact(text, name)
        self.found.update((place, kind) for kind in redacted.found)
        return redacted.text
