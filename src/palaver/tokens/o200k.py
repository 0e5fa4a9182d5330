"""The one tokenizer palaver runs: ``o200k_base``, from ranks that come with the package.

tiktoken fetches its ranks from the network on first use and looks for a cache folder in the environment. Neither is
needed here: the encoding is built from a file in this package (``tools/pack_ranks.py`` says how it was made,
``NOTICE`` under which licence). Nothing is loaded before the first count.

Three things keep counting cheap and safe:

* Texts are cut into pieces of about 8,000 characters before they are encoded. tiktoken's splitting pattern overflows
  its stack on some hundred thousand characters of white space, and merging gets slower with the square of a piece that
  has no white space; neither can happen in a short piece. Where a text has a space or a line break after a letter or a
  digit, which its splitting pattern never joins, the pieces count exactly as the whole would. Where it has none for
  some thousand characters (base64, one long word), the cut may cost a token or two per 8,000 characters.
* Counts are kept by the digest of the text, a bounded number of them.
* Special tokens such as ``<|endoftext|>`` have no meaning in stored text: they count as the characters they are.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

PIECE = 8_192
"""Characters after which a text is cut, at the next safe place."""

_SEARCH = 2_048
"""How many characters after :data:`PIECE` are searched for a safe place; without one, the text is cut at their end."""

SEPARATOR = b"\xff\n"
"""The separator of two tokens in the file of the ranks; no token contains it."""

_SAFE_CUT = re.compile(r"[^\W_](?=[ \n])")
"""A letter or digit before a space or line break. No alternative of the splitting pattern crosses that place."""

_REMEMBERED = 65_536
"""How many counts are kept, some 10 MB; then all are forgotten."""

_DIGEST_BYTES = 16

_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = (
    f"{_LEAD}[{_UPPER}]*[{_LOWER}]+{_CONTRACTION}",
    f"{_LEAD}[{_UPPER}]+[{_LOWER}]*{_CONTRACTION}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)
"""How o200k_base splits a text before it merges (tiktoken_ext/openai_public.py), the first alternative that fits: words by the
case of their letters, with a leading sign and an English contraction; numbers by three digits; signs; line breaks; spaces."""


class Encoding(Protocol):
    """What is used of ``tiktoken.Encoding``."""

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the tokens of a text; special tokens have no meaning."""


_counts: dict[bytes, int] = {}
"""Counts by digest of the text. No lock: a count that another thread loses is only counted again."""


def ranks() -> dict[bytes, int]:
    """Read the ranks: every token's bytes and its number.

    Returns:
        A fresh dictionary of 199,998 tokens.
    """
    tokens = Path(__file__).with_name("o200k_base.tokens").read_bytes().split(SEPARATOR)
    return dict(zip(tokens, range(len(tokens)), strict=True))


@functools.cache
def encoding() -> Encoding:
    """Build the encoding on first use."""
    import tiktoken  # noqa: PLC0415 - not before the first count, and not at all for who never counts

    return tiktoken.Encoding("o200k_base", pat_str="|".join(PATTERN), mergeable_ranks=ranks(), special_tokens={})


def pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces that together are the text, each at most 10,240 characters long."""
    start, end = 0, len(text)
    while end - start > PIECE:
        aim = start + PIECE
        safe = _SAFE_CUT.search(text, aim, aim + _SEARCH)
        cut = safe.end() if safe else aim
        yield text[start:cut]
        start = cut
    if start < end:
        yield text[start:]


def count(text: str) -> int:
    """Count the o200k_base tokens of a text.

    Lone surrogates count as the replacement character. The same text always gives the same count.
    """
    raw = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).digest()
    known = _counts.get(digest)
    if known is not None:
        return known
    encode = encoding().encode_ordinary
    tokens = sum(len(encode(piece)) for piece in pieces(text))
    if len(_counts) >= _REMEMBERED:
        _counts.clear()
    _counts[digest] = tokens
    return tokens
