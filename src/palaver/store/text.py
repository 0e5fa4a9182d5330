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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from math import log1p
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

SNIPPET_CHARACTERS = 160
"""About how long a snippet is, in characters."""

OPEN, CLOSE = "\x02", "\x03"
"""The marks around each match in a snippet."""

TOKEN_CHARACTERS = 64
"""Longer tokens are cut to this length in an index; the text itself decides afterwards."""

MOST_TERMS = 32
"""Of a longer query only the first terms narrow the search down; the text decides about the rest."""

MOST_POSTINGS = 20_000
"""Of the entries with one word, so many of the newest are considered."""

MOST_RANKED = 300
"""The texts of so many of the entries with the rarest words are read and ranked: about 0.3 s of work."""

APART = "\x1e"
"""Between what a person or model said and the rest of an entry: what tools were asked and returned, and what the program put in."""

BEGINNING = 3
"""Longer words that begin with a word of the query count from so many letters on; with fewer it would be most words."""

COPIES = frozenset({"compaction", "branch_summary"})
"""The kinds of entries that say again what others said; ranked, the others come first."""

# The weights of the ranking, as BM25 has them (https://doi.org/10.1561/1500000019), chosen with `python -m bench search`; half or twice of any moves few.
_REST = 0.3  # of the rest of an entry, against what was said
_LENGTHS, _USUAL = 0.75, 400  # how much a text's length counts, against one of so many characters
_LONGEST = 4_000  # a longer text counts as one of so many characters: it may say anything, the answer too
_SATURATES = 0.6  # a word that occurs so often, in a text of the usual length, counts half
_OFTEN = 4  # more places of a word do not count
_BEGINS = 2  # the power of how much of a longer word it is
_NEAR = 0.5  # two words that follow each other, against the rarity of the more frequent
_AGAIN = 0.05  # how much less each further hit of a session counts

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
_DELIMITS = re.compile(rf"[{_SINGLE}]")
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
    field = _Field(said)
    return tuple(phrase for phrase in wanted if any(field.matches(phrase)))


class Candidate(NamedTuple, Generic[T]):
    """An entry that may be a hit.

    Attributes:
        number: Its number in the index.
        session: Its session.
        kind: The entry's kind.
        text: Its text as the index keeps it.
        what: What to yield for it.
    """

    number: int
    session: str
    kind: str
    text: str
    what: T


def ranked(
    query: str,
    postings: Callable[[str], Iterable[tuple[int, bool]]],
    read: Callable[[Sequence[int]], Iterable[Candidate[T]]],
) -> Iterator[tuple[float, tuple[str, ...], T]]:
    """Yield what has any word or phrase of a query with its score, best first.

    An entry scores for each word by its rarity; more when it was said than when a tool had it, when it is the whole word, occurs more
    often and in a shorter text; and again for two words of the query that follow each other. Copies come last; of equals the newer is first.
    A session's best hit comes before its others of about the same score.

    Args:
        query: The query.
        postings: Returns which entries may have one of them, newest first: the number in the index, and whether it was said.
        read: Yields the entries of numbers that may be hits, in the order of the numbers.
    """
    having = {phrase: dict(islice(postings(phrase), MOST_POSTINGS)) for phrase in sought(query)}
    among = len(set().union(*having.values()))
    rarity = {
        phrase: log1p((among - len(numbers) + 0.5) / (len(numbers) + 0.5))
        for phrase, numbers in having.items()
        if numbers
    }
    promise: Counter[int] = Counter()
    for phrase, weight in rarity.items():
        for number, said in having[phrase].items():
            promise[number] += weight if said else weight * _REST  # type: ignore[assignment]
    promising = sorted(promise, key=lambda number: (promise[number], number), reverse=True)
    scored = [(*_score(entry.text, rarity), entry) for entry in islice(read(promising), MOST_RANKED)]
    scored = [row for row in scored if row[0]]

    def rank(row: tuple[float, tuple[str, ...], Candidate[T]]) -> tuple[bool, float, int]:
        return row[2].kind not in COPIES, row[0], row[2].number

    earlier: Counter[str] = Counter()
    damped = []
    for score, held, entry in sorted(scored, key=rank, reverse=True):
        damped.append((score / (1 + _AGAIN * earlier[entry.session]), held, entry))
        earlier[entry.session] += 1
    yield from ((score, held, entry.what) for score, held, entry in sorted(damped, key=rank, reverse=True))


class _Field:
    """A text to be ranked."""

    def __init__(self, said: str) -> None:
        self.folded = said.casefold()
        self._said = said

    @cached_property
    def _origin(self) -> Sequence[int]:
        return range(len(self._said)) if len(self.folded) == len(self._said) else _origins(self._said)

    def matches(self, phrase: str) -> Iterator[float]:
        """Yield for each place where a word or phrase begins how much of the word there it is."""
        for match in _sought(phrase).finditer(self.folded):
            start = match.start()
            before = self.folded[start - 1 : start]
            if not (
                before.isalnum() and phrase[0].isalnum() and not _DELIMITS.match(before) and not _DELIMITS.match(phrase)
            ) or _HUMP.match(self._said, self._origin[start]):
                yield len(phrase) / (len(phrase) + len(match[1]))


def _score(said: str, rarity: Mapping[str, float]) -> tuple[float, tuple[str, ...]]:
    """Return the score of a text, and which of the words and phrases are in it."""
    people, _, rest = said.partition(APART)
    fields = [
        (_Field(part), weight / (1 - _LENGTHS + _LENGTHS * min(len(part), _LONGEST) / _USUAL))
        for part, weight in ((people, 1.0), (rest, _REST))
        if part
    ]
    often = {
        phrase: sum(
            weight * share**_BEGINS for field, weight in fields for share in islice(field.matches(phrase), _OFTEN)
        )
        for phrase in rarity
    }
    score = sum(rarity[phrase] * much / (much + _SATURATES) for phrase, much in often.items())
    held = [phrase for phrase in rarity if often[phrase]]
    for one, other in pairwise(rarity):
        if often[one] and often[other] and _following(one, other).search(fields[0][0].folded):
            score += _NEAR * min(rarity[one], rarity[other])
    return score, tuple(sorted(held, key=lambda phrase: -rarity[phrase]))


def _following(one: str, other: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(one)}[^\W_]*[\W_]+{re.escape(other)}")


@lru_cache(MOST_TERMS)
def _sought(phrase: str) -> re.Pattern[str]:
    letters = re.escape(phrase).replace(r"\ ", r"\s+")
    return re.compile(rf"{letters}([^\W_]*)" if begins(phrase) else rf"{letters}()(?![^\W_])")


def begins(phrase: str) -> bool:
    """Return whether longer words that begin with a word or phrase count: of one or two letters it would be most words."""
    return len(phrase) >= BEGINNING or not phrase.isascii()


# --- what an index keeps ----------------------------------------------------------------------------------------------------------


def deflated(text: str) -> bytes:
    """Return a text compressed for an index."""
    return zlib.compress(text.encode("utf-8", "replace"), _DEFLATE_LEVEL)


def inflated(data: bytes) -> str:
    """Read a text that an index keeps."""
    return zlib.decompress(data).decode()


def columns(text: str) -> tuple[str, str]:
    """Return the tokens of what people and models said, and those of the rest, with blanks between them."""
    said, _, rest = text.partition(APART)
    return _column(said), _column(rest)


def _column(text: str) -> str:
    """Return all tokens of a text: their finest parts, then identifiers such as `getUserName` as a whole."""
    joined = _LONG.sub(r"\1", " ".join(tokens(text)))
    wholes = [token for token in joined.split(" ") if not token.islower() and _HUMP.search(token)]
    return " ".join([_HUMP.sub(" ", joined), *wholes]).casefold()


def terms(query: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return what a query demands of an index: tokens as (whole, parts). A token without parts must be there; else the whole or all parts."""
    found = (_term(token) for token in tokens(composed(query)))
    return islice(dict.fromkeys(found), MOST_TERMS)


def _term(token: str) -> tuple[str, tuple[str, ...]]:
    cut = token[:TOKEN_CHARACTERS]
    parts = _HUMP.split(cut)
    return cut.casefold(), tuple(part.casefold() for part in parts) if len(parts) > 1 else ()


# --- snippets ---------------------------------------------------------------------------------------------------------------------


def snippet(text: str, wanted: Sequence[str], first: int | None = None) -> str:
    """Return the composed text around the first match of any of the `first` words on one line, with U+0002 before and U+0003 after each match.

    A match inside a longer word is marked only when the word never occurs by itself. Control characters of the text are shown as blanks, so
    that no text can forge a mark.
    """
    folded = text.casefold()
    origins: Sequence[int] = range(len(text) + 1) if len(folded) == len(text) else _origins(text)
    pattern = _pattern(folded, wanted)
    match = (pattern if first is None else _pattern(folded, wanted[:first])).search(folded)
    begin, reach = match.span() if match else (0, 0)
    start = max(0, begin - SNIPPET_CHARACTERS // 4)
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
