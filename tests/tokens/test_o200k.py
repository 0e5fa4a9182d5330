"""The vendored tokenizer: it is the published one, it needs nothing from outside, and no text can hurt it."""

from __future__ import annotations

import base64
import hashlib
import inspect
import subprocess
import sys

import tiktoken_ext.openai_public  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.tokens import o200k

PUBLISHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""What tiktoken expects of the file it would download."""

TEXT = st.text(max_size=300)
WORDS = st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12), min_size=1, max_size=30)


def test_the_packed_ranks_are_the_published_ones() -> None:
    """Written in the published form, the packed ranks have the checksum that tiktoken asks for."""
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in o200k.ranks().items())
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == PUBLISHED_SHA256


def test_the_checksum_and_the_pattern_are_tiktokens() -> None:
    """Both are as the installed tiktoken has them, so that an update of the tokenizer would be seen here."""
    source = inspect.getsource(tiktoken_ext.openai_public.o200k_base)
    assert PUBLISHED_SHA256 in source
    for alternative in o200k.PATTERN:
        assert f'r"""{alternative}"""' in source


def test_published_examples() -> None:
    """The counts are those of the OpenAI Cookbook, "How to count tokens with tiktoken"."""
    examples = {"": 0, "antidisestablishmentarianism": 6, "2 + 2 = 4": 7, "お誕生日おめでとう": 8}
    assert {text: o200k.count(text) for text in examples} == examples


@given(TEXT, st.integers(1, 400))
@example("a", 30_000)
@example(" \t", 20_000)
@example("中", 20_000)
def test_pieces_are_the_text(text: str, times: int) -> None:
    """Pieces joined are the text, and none is longer than a piece and the stretch in which a safe cut is looked for."""
    whole = text * times
    parts = list(o200k.pieces(whole))
    assert "".join(parts) == whole
    assert all(0 < len(part) <= o200k.PIECE + 2_048 for part in parts)


@given(WORDS, st.sampled_from([" ", "\n", "  ", "\n\n", " \n ", ".\n", "\t "]), st.integers(60, 200))
def test_pieces_count_as_the_whole(words: list[str], between: str, times: int) -> None:
    """Where words are parted by spaces, counting in pieces gives exactly what tiktoken gives for the whole text."""
    text = between.join([*words, "end 7"] * times)
    encoding = o200k.encoding()
    parted = sum(len(encoding.encode_ordinary(piece)) for piece in o200k.pieces(text))
    assert parted == len(encoding.encode_ordinary(text))


def test_a_megabyte_of_anything_can_be_counted() -> None:
    """A million spaces make tiktoken panic, as its pattern overflows the stack; special tokens and lone surrogates are plain text."""
    for unit in (" ", "\t ", "a", "\n", "aB1!"):
        text = unit * (1_000_000 // len(unit))
        assert 0 < o200k.count(text) <= len(text)
    assert o200k.count("<|endoftext|>") > 1
    assert o200k.count("a\ud800b") == o200k.count("a\ufffdb")


def test_nothing_outside_is_read_or_changed() -> None:
    """Counting needs no network, no cache folder and no variable, and leaves the environment as it was."""
    program = """
import os, sys
before = dict(os.environ)
import palaver.tokens
assert not {"tiktoken", "genai_prices"} & set(sys.modules), "loaded at import"
def no(event, arguments):
    assert not event.startswith("socket."), event
    assert not (event == "open" and "w" in str(arguments[1])), arguments
sys.addaudithook(no)
assert palaver.tokens.counter("gpt-4o").text("hello world") == 2
assert dict(os.environ) == before
"""
    subprocess.run([sys.executable, "-I", "-B", "-c", program], check=True, env={"TIKTOKEN_CACHE_DIR": "/"})
