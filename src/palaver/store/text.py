"""How a search finds words in a text, the same in every store.

- *Sound*: a hit contains every word of the query, ignoring case.
- *Complete*: an entry is a hit when it contains every word delimited, not inside a longer run of letters and digits. Each character of a script
  that is written without spaces delimits itself.

A word is a piece between blanks of the query; punctuation in it must match exactly. A piece without a letter, digit or pictograph is
not a word. An index that was made with other tokens answers wrongly: changing them needs a migration that drops it.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

SNIPPET_CHARACTERS = 160
"""About how long a snippet is, in characters."""

OPEN, CLOSE = "\x02", "\x03"
"""The marks around each match in a snippet."""

TOKEN_CHARACTERS = 64
"""Longer tokens are cut to this length in an index; the text itself decides afterwards."""

MOST_TERMS = 32
"""Of a longer query only the first terms narrow the search down; the text decides about the rest."""

MOST_RANKED = 300
"""Of the entries with one word, so many of the newest are ranked: about 0.1 s of work for a frequent word."""

COPIES = frozenset({"compaction", "branch_summary"})
"""The kinds of entries that say again what others said; ranked, the others come first."""

_DEFLATE_LEVEL = 1

# Scripts written without spaces: Thai to Tibetan, Myanmar, Hangul Jamo, Khmer; CJK radicals to Yi; Hangul; compatibility forms; half-width kana;
# the supplementary ideographic planes. Then symbols and pictographs. https://www.unicode.org/Public/UCD/latest/ucd/Blocks.txt
_SINGLE = (
    "\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u30ff\u3100-\u9fff\ua000-\ua4cf"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
    "\u2600-\u27bf\U0001f000-\U0001faff"
)
_TOKEN = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
_LONG = re.compile(rf"(\S{{{TOKEN_CHARACTERS}}})\S+")
_SOUGHT = re.compile(r'(?<!\S)"([^"]+)"(?!\S)|(\S+)')
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def composed(text: str) -> str:
    """Return the text in normal form C; file names of some systems are not."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """Return the text as searches compare it: composed, without case."""
    return composed(text).casefold()


def words(query: str) -> tuple[str, ...]:
    """Return the folded words of a query, each once, in order."""
    found = (fold(word) for word in query.split() if _TOKEN.search(word))
    return tuple(dict.fromkeys(found))


def holds(folded: str, wanted: Sequence[str]) -> bool:
    """Return whether a folded text contains every word."""
    return all(word in folded for word in wanted)


def tokens(text: str) -> list[str]:
    """Return the tokens of a text; each character of a script without spaces is one."""
    return _TOKEN.findall(text)


# --- ranking ----------------------------------------------------------------------------------------------------------------------


def sought(query: str) -> tuple[str, ...]:
    """Return the folded words and "quoted phrases" of a query, each once, in order."""
    pieces = (
        " ".join(fold(phrase or word).split())
        for phrase, word in _SOUGHT.findall(query)
        if _TOKEN.search(phrase or word)
    )
    return tuple(islice(dict.fromkeys(pieces), MOST_TERMS))


def begun(said: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the words and phrases in a text that begin where a token does, or a part of an identifier."""
    folded = said.casefold()

    def there(phrase: str) -> bool:
        pattern = _beginning(phrase)
        return bool(pattern.search(folded) or pattern.search(_HUMP.sub("\0", said).casefold()))

    return tuple(phrase for phrase in wanted if (" " in phrase or phrase in folded) and there(phrase))


@lru_cache(MOST_TERMS)
def _beginning(word: str) -> re.Pattern[str]:
    """Return the pattern of a word or phrase in a text whose identifiers have U+0000 between their parts."""
    letters = "\0?".join(r"\s+" if letter == " " else re.escape(letter) for letter in word)
    delimits = not word[0].isalnum() or re.match(f"[{_SINGLE}]", word)
    return re.compile(letters if delimits else rf"(?:\0|(?<![^\W_{_SINGLE}])){letters}")


def ranked(query: str, newest: Callable[[str], Iterable[tuple[int, str, str, T]]]) -> Iterator[T]:
    """Yield what has any word or phrase of a query, best first: originals, then more words, then rarer ones, then newer.

    Args:
        query: The query.
        newest: Returns the candidates for one of them, newest first: its number in the index, its kind, its text, and what to yield.
    """
    wanted = sought(query)
    best: dict[int, tuple[tuple[str, ...], bool, T]] = {}
    for phrase in wanted:
        for number, kind, said, what in islice(newest(phrase), MOST_RANKED):
            if number not in best:
                best[number] = begun(said, wanted), kind not in COPIES, what
    counts = Counter(phrase for held, _, _ in best.values() for phrase in held)

    def rank(number: int) -> tuple[bool, int, float, int]:
        held, original, _ = best[number]
        return original, len(held), sum(1 / counts[phrase] for phrase in held), number

    yield from (best[number][-1] for number in sorted(best, key=rank, reverse=True) if best[number][0])


# --- what an index keeps ----------------------------------------------------------------------------------------------------------


def deflated(text: str) -> bytes:
    """Return a text compressed for an index."""
    return zlib.compress(text.encode("utf-8", "replace"), _DEFLATE_LEVEL)


def inflated(data: bytes) -> str:
    """Read a text that an index keeps."""
    return zlib.decompress(data).decode()


def columns(text: str) -> tuple[str, str]:
    """Return all tokens of a text with blanks between them: their finest parts, and identifiers such as `getUserName` as a whole."""
    joined = _LONG.sub(r"\1", " ".join(tokens(text)))
    wholes = [token for token in joined.split(" ") if not token.islower() and _HUMP.search(token)]
    return _HUMP.sub(" ", joined).casefold(), " ".join(wholes).casefold()


def terms(query: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return what a query demands of an index: tokens as (whole, parts). A token without parts must be there; else the whole or all parts."""
    found = (_term(token) for token in tokens(composed(query)))
    return islice(dict.fromkeys(found), MOST_TERMS)


def _term(token: str) -> tuple[str, tuple[str, ...]]:
    cut = token[:TOKEN_CHARACTERS]
    parts = _HUMP.split(cut)
    return cut.casefold(), tuple(part.casefold() for part in parts) if len(parts) > 1 else ()


# --- snippets ---------------------------------------------------------------------------------------------------------------------


def snippet(text: str, wanted: Sequence[str]) -> str:
    """Return the composed text around the first match on one line, with U+0002 before and U+0003 after each match.

    A match inside a longer word is marked only when the word never occurs by itself. Control characters of the text are shown as blanks, so
    that no text can forge a mark.
    """
    folded = text.casefold()
    origins: Sequence[int] = range(len(text) + 1) if len(folded) == len(text) else _origins(text)
    pattern = _pattern(folded, wanted)
    match = pattern.search(folded)
    first, reach = match.span() if match else (0, 0)
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


def delimited(word: str) -> str:
    """Return the pattern of a word that is not inside a longer run of letters and digits."""
    return f"{_BEFORE if word[0].isalnum() else ''}{re.escape(word)}{_AFTER if word[-1].isalnum() else ''}"


def _pattern(folded: str, wanted: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for the words: each delimited where it occurs so anywhere, else inside longer runs, too."""
    longest = sorted(wanted, key=len, reverse=True)
    found = (delimited(word) if re.search(delimited(word), folded) else re.escape(word) for word in longest)
    return re.compile("|".join(found))


def _origins(text: str) -> list[int]:
    """Return for each folded character the place of the character of `text` that it came from, and the end."""
    return [place for place, character in enumerate(text) for _ in character.casefold()] + [len(text)]


def _line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
