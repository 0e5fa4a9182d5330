"""Redactors: what finds secrets in a text and puts placeholders in their place."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from math import log2
from re import Match
from typing import NamedTuple, Protocol, runtime_checkable

from palaver.log.redaction.patterns import PATTERNS, SECRET_KEY, Pattern, is_placeholder

__all__ = ["Found", "PatternRedactor", "Redacted", "Redactor", "StreamRedactor"]

_MARK_DIGITS = 12
_ENTROPY_CHARACTERS = 256  # of a longer secret its beginning is judged
_LOOKS = 16  # a placeholder may lay bare what was written to the secret that it stands for; nothing sensible takes a third look
_BEGIN, _END = "-----BEGIN ", "-----END "


class Found(NamedTuple):
    """A secret that was taken out; never what it was.

    Attributes:
        kind: Which pattern found it.
        mark: A keyed hash of it, where the redactor has a key: the same secret has the same mark; empty otherwise.
    """

    kind: str
    mark: str = ""


class Redacted(NamedTuple):
    """A text without its secrets.

    Attributes:
        text: The text, with a placeholder for each.
        found: What was taken out, in no order that matters.
    """

    text: str
    found: tuple[Found, ...]


@runtime_checkable
class Redactor(Protocol):
    """Finds secrets in texts.

    Laws: it is pure; what it gives back holds no secret that it would find (`redact(redact(t).text).found` is empty); it takes time linear in
    the text. To be used on a stream it finds what lies within a line, or a block that begins with `-----BEGIN` and ends with `-----END`.
    """

    def redact(self, text: str, name: str = "") -> Redacted:
        """Give a text without its secrets.

        Args:
            text: The text.
            name: The name of the field that it is the value of, or empty.
        """
        ...


class PatternRedactor:
    """A redactor by patterns, for keys and tokens; and by names of fields, such as `password`, for values of any form.

    Attributes:
        patterns: The patterns, in the order in which they are tried.
    """

    def __init__(self, patterns: Sequence[Pattern] = PATTERNS, *, key: bytes | None = None) -> None:
        """Make a redactor.

        Args:
            patterns: What is looked for; the default ones know the keys and tokens of the services that agents use most.
            key: With one, placeholders bear a mark by which the same secret is known again (HMAC-SHA-256, 12 digits); keep it as you keep secrets.
        """
        self.patterns = tuple(patterns)
        self._key = key

    def redact(self, text: str, name: str = "") -> Redacted:
        """Give a text without its secrets."""
        found: list[Found] = []
        if name and text and SECRET_KEY.fullmatch(name) and not is_placeholder(text):
            return Redacted(self._placeholder("named-secret", text, found), tuple(found))
        for _ in range(_LOOKS):
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
    """Give the Shannon entropy of the first 256 characters of a text, in bits a character; 0 for an empty one."""
    judged = text[:_ENTROPY_CHARACTERS]
    return -sum(count / len(judged) * log2(count / len(judged)) for count in Counter(judged).values())


class StreamRedactor:
    """Redacts a text that comes in pieces: what it gives, joined, is the redacted text, wherever the pieces were cut.

    It holds back the line that is not ended yet, and a key block until its end: a secret may be cut anywhere. `close` gives the rest.
    """

    def __init__(self, redactor: Redactor) -> None:
        """Begin a stream."""
        self._redactor = redactor
        self._held: list[str] = []

    def feed(self, piece: str) -> str:
        """Take the next piece, and give what can be given of the text so far."""
        self._held.append(piece)
        if "\n" not in piece:
            return ""
        text = "".join(self._held)
        cut = self._cut(text)
        self._held = [text[cut:]]
        return self._redactor.redact(text[:cut]).text if cut else ""

    def _cut(self, text: str) -> int:
        """Give up to where a text can be given: the end of the last line that no key block is open behind."""
        cut = text.rfind("\n") + 1
        while (begin := text.rfind(_BEGIN, 0, cut)) >= 0 and text.find(_END, begin, cut) < 0:
            cut = text.rfind("\n", 0, begin) + 1  # a line may end one key and begin the next
        return cut

    def close(self) -> str:
        """Give the rest."""
        text, self._held = "".join(self._held), []
        return self._redactor.redact(text).text
