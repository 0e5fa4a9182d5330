"""The text of searches: how words are found in it, whatever the backend.

Two rules bound what a search may find, and every backend keeps to them:

- *Sound*: an entry that is found holds every word of the query, ignoring case.
- *Complete*: an entry is found when it holds every word of the query delimited, that is, not inside a longer run of letters and digits
  (each character of a script that is written without spaces delimits itself).

A word is what stands between blanks in the query; punctuation in it is looked for as it stands. A word without any letter, digit or
pictograph is no word.

An index that was made with other tokens answers wrongly: a change of them needs a migration that drops it.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from palaver.errors import InvalidInput
from palaver.log import rule
from palaver.plurals import counted

Told: TypeAlias = Callable[[str, bytes], str]
"""Gives the text of an entry, of its kind and body."""

SNIPPET_CHARACTERS = 160
"""About how long a snippet is, in characters."""

OPEN, CLOSE = "\x02", "\x03"
"""What stands around each match in a snippet."""

TOKEN_CHARACTERS = 64
"""Longer tokens are cut to this length in an index; the text itself decides afterwards."""

# Scripts written without spaces: Thai to Tibetan, Myanmar, Hangul Jamo, Khmer; CJK radicals to Yi; Hangul; compatibility forms; half-width kana;
# the supplementary ideographic planes. Then symbols and pictographs. https://www.unicode.org/Public/UCD/latest/ucd/Blocks.txt
_SINGLE = (
    "\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u30ff\u3100-\u9fff\ua000-\ua4cf"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
    "\u2600-\u27bf\U0001f000-\U0001faff"
)
_TOKEN = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")
_UNSPACED = re.compile(rf"[{_SINGLE}]")
_RUN = re.compile(rf"[{_SINGLE}]+|[^\W_{_SINGLE}]+")
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
_LONG = re.compile(rf"(\S{{{TOKEN_CHARACTERS}}})\S+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def composed(text: str) -> str:
    """Give the text in normal form C, as file names of some systems are not."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """Give the text as searches compare it: composed, without case."""
    return composed(text).casefold()


def words(query: str) -> tuple[str, ...]:
    """Give the folded words of a query, each once, in order; pieces without letter, digit or pictograph are left out."""
    found = (fold(word) for word in query.split() if _TOKEN.search(word))
    return tuple(dict.fromkeys(found))


def delimited(word: str) -> str:
    """Give the pattern of a word that stands by itself, not inside a longer run of letters and digits."""
    return f"{_BEFORE if word[0].isalnum() else ''}{re.escape(word)}{_AFTER if word[-1].isalnum() else ''}"


def unspaced(word: str) -> bool:
    """Tell whether a word has characters of a script that is written without spaces: where it ends is not to be seen there."""
    return _UNSPACED.search(word) is not None


def parts(word: str) -> tuple[str, ...]:
    """Give what such a word may be found by: each two characters that are neighbours, and what stands beside them in other scripts.

    (As Lucene's CJKBigramFilter cuts them; a character that stands alone is a part by itself.)
    """
    found = []
    for run in _RUN.findall(word):
        found += [run[n : n + 2] for n in range(max(1, len(run) - 1))] if unspaced(run) else [run]
    return tuple(dict.fromkeys(found))


def holds(folded: str, wanted: Sequence[str]) -> bool:
    """Tell whether folded text holds every word."""
    return all(word in folded for word in wanted)


def weight(folded: str, wanted: Sequence[str]) -> float:
    """Give which share of a text the words are: what ranks texts where no index does."""
    return sum(folded.count(word) * len(word) for word in wanted) / (1.0 + len(folded))


def tokens(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give each token of a text as (whole, parts): an identifier such as `getUserName` has parts, other tokens have none."""
    for token in _TOKEN.findall(text):
        cut = token[:TOKEN_CHARACTERS]
        parts = _HUMP.split(cut)
        yield cut.casefold(), tuple(part.casefold() for part in parts) if len(parts) > 1 else ()


def columns(text: str) -> tuple[str, str]:
    """Give all tokens of a text, blanks between them: the finest parts, and the identifiers that have parts as they stand.

    It is what `tokens` says, for a whole text at once: indexing spends its time here.
    """
    joined = _LONG.sub(r"\1", " ".join(_TOKEN.findall(text)))
    wholes = [token for token in joined.split(" ") if not token.islower() and _HUMP.search(token)]
    return _HUMP.sub(" ", joined).casefold(), " ".join(wholes).casefold()


def _pattern(folded: str, wanted: Sequence[str]) -> re.Pattern[str]:
    """Give what finds the words: each delimited where it stands so anywhere, else inside longer runs too."""
    longest = sorted(wanted, key=len, reverse=True)
    found = (delimited(word) if re.search(delimited(word), folded) else re.escape(word) for word in longest)
    return re.compile("|".join(found))


def _origins(text: str) -> list[int]:
    """Give for each folded character the place of the character of `text` that it came from, and the end."""
    return [place for place, character in enumerate(text) for _ in character.casefold()] + [len(text)]


def snippet(text: str, wanted: Sequence[str]) -> str:
    """Give the composed text around the first match on one line, with U+0002 before and U+0003 after each match.

    A match inside a longer word is marked only when the word stands nowhere by itself.

    Control characters of the text itself are shown as blanks, so that no text can forge a mark.
    """
    folded = text.casefold()
    origins: Sequence[int] = range(len(text) + 1) if len(folded) == len(text) else _origins(text)
    pattern = _pattern(folded, wanted)
    found = pattern.search(folded)
    first, reach = found.span() if found else (0, 0)
    start = max(0, first - SNIPPET_CHARACTERS // 4)
    stop = min(len(folded), max(start + SNIPPET_CHARACTERS, reach))
    pieces, done = [], origins[start]
    for match in pattern.finditer(folded, start, stop):
        begin, end = origins[match.start()], origins[match.end() - 1] + 1  # whole characters
        if begin >= done:
            pieces += [_line(text[done:begin]), OPEN, _line(text[begin:end]), CLOSE]
            done = end
    pieces.append(_line(text[done : max(done, origins[stop])]))
    return f"{'…' if start else ''}{''.join(pieces)}{'…' if stop < len(folded) else ''}"


class Indexed(NamedTuple):
    """What an index says of a dialog.

    Attributes:
        number: The dialog's number in the store.
        dialog_id: Its id, or None when there is no such dialog.
        upto: How many of its entries are said to be indexed.
        length: How many it holds.
    """

    number: int
    dialog_id: str | None
    upto: int
    length: int


Judged: TypeAlias = tuple[int, bytes | None, bytes | None, str, bool]
"""What judges the text of an entry: its number, its body, the text that is kept, its kind, whether it has tokens."""


def index_faults(
    said: Indexed, extract: Told | None, read: Callable[[int], Iterator[Judged]]
) -> Iterator[tuple[str, str, str]]:
    """Find what an index holds of a dialog otherwise than the log: (place, code, what).

    Args:
        said: What the index says of it.
        extract: Gives the text of an entry, of its kind and body; None to look at the form only.
        read: Reads so many entries from the first on.
    """
    place = f"dialog number {said.number}" if said.dialog_id is None else said.dialog_id[:12]
    if said.dialog_id is None or not 0 <= said.upto <= said.length:
        yield place, "wrong_index", f"The index says that it holds {said.upto} of its {counted(said.length, 'entry')}."
        return
    for seq, body, deflated, kind, has_tokens in read(said.upto):
        why = differs(extract, kind, body, deflated, tokens=has_tokens)
        if why:
            yield f"{place}:{seq}", "wrong_index", why


def differs(extract: Told | None, kind: str, body: bytes | None, deflated: bytes | None, *, tokens: bool) -> str:
    """Say in which way what an index keeps of an entry is not what the entry says; empty when it is.

    Args:
        extract: Gives the text of an entry, of its kind and body; None to look at the form only.
        kind: The entry's kind.
        body: Its body; None when that is lost, and then nothing is compared.
        deflated: The text that is kept, or None where none is.
        tokens: Whether tokens of it are kept.
    """
    if tokens != (deflated is not None):
        return "The index has tokens of it without its text." if tokens else "The index has its text without tokens."
    try:
        kept = "" if deflated is None else zlib.decompress(deflated).decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        return f"The text that the index keeps of it cannot be read: {error}."
    return differs_from(extract, kind, body, kept)


def differs_from(extract: Told | None, kind: str, body: bytes | None, kept: str) -> str:
    """Say in which way the text that is kept of an entry is not what the entry says; empty when it is. As `differs`."""
    if extract is None or body is None:
        return ""
    try:
        said = composed(extract(kind, body)) if rule(kind).searched else ""
    except InvalidInput:
        return ""  # its body is no entry: that is told of where bodies are judged
    if not kept and b'"erased":' in body:
        return ""  # the index holds nothing of what was erased
    said = said.encode("utf-8", "replace").decode("utf-8")
    return "" if kept == said else "The index keeps another text of it than it has."


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
