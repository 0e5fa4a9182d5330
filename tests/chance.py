"""Ids as chance draws them seldom, so that a test that depends on what it draws fails at every run, not at one in a thousand.

`./run test --ids=literals` puts into each id the hexadecimal numbers and words that stand in the test and in its module: an assertion that a text
has "4711" nowhere fails then, where an id in that text may have it by chance. `most-tokens` and `fewest-tokens` give ids that are as dear, or as
cheap, to a model as one of sixty: a test whose budget is met by the margin of an id fails under one of them.
"""

from __future__ import annotations

import ast
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from palaver import ids
from palaver.store.records import SHORT_DIGITS
from palaver.tokens import o200k

__all__ = ["CHANCES", "drawn_by", "fewest_tokens", "literals", "most_tokens", "tokens"]

_LITERAL = re.compile("[0-9a-f]{1,8}")
_TRIES = 60
_IN_HEAD = 5  # of what a handle shows: by the rest, dialogs of one session differ


@cache
def _said(path: Path, test: str) -> tuple[str, ...]:
    """Give the constants that may stand in an id: those of a test, then those of its module, the longest first."""
    module = ast.parse(path.read_bytes())
    tests = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    parts = [*(node for node in tests if node.name == test), module]
    return tuple(dict.fromkeys(word for part in parts for word in sorted(_literals(part), key=len, reverse=True)))


def _literals(part: ast.AST) -> Iterator[str]:
    constants = [node.value for node in ast.walk(part) if isinstance(node, ast.Constant)]
    words = (str(one) for one in constants if isinstance(one, str) or type(one) is int)
    return (word for word in words if _LITERAL.fullmatch(word))


def literals(path: Path, test: str) -> Iterator[bytes]:
    """Give ids of 16 bytes with literals of a test and its module in them, and chance around them."""
    words = _said(path, test)
    return (_with(words, number % max(len(words), 1)) for number in count())


def _with(words: tuple[str, ...], turn: int) -> bytes:
    """Give one id; it begins as chance has it, since a name that was cut to six digits is a name, and nobody meets another one."""
    chance = os.urandom(ids._ID_BYTES).hex()
    head = chance[0] + _filled((*words[turn:], *words[:turn]), _IN_HEAD)
    tail = _filled(words, len(chance) - SHORT_DIGITS)
    return bytes.fromhex(f"{head}{chance[len(head) : len(chance) - len(tail)]}{tail}")


def _filled(words: tuple[str, ...], room: int) -> str:
    """Give as many of the words, one behind the other, as have room."""
    found = ""
    for word in words:
        found += word if len(found) + len(word) <= room else ""
    return found


def most_tokens(_path: Path, _test: str) -> Iterator[bytes]:
    """Give the id of sixty that costs a model most."""
    while True:
        yield max(_some(), key=tokens)


def fewest_tokens(_path: Path, _test: str) -> Iterator[bytes]:
    """Give the id of sixty that costs a model least."""
    while True:
        yield min(_some(), key=tokens)


def _some() -> Iterator[bytes]:
    return (os.urandom(ids._ID_BYTES) for _ in range(_TRIES))


def tokens(drawn: bytes) -> int:
    """Count what a handle shows of an id."""
    return o200k.count(drawn.hex()[:SHORT_DIGITS])


CHANCES: Mapping[str, Callable[[Path, str], Iterator[bytes]]] = MappingProxyType(
    {"literals": literals, "most-tokens": most_tokens, "fewest-tokens": fewest_tokens}
)


def drawn_by(name: str) -> Callable[[Path, str], None]:
    """Have ids drawn so from now on, and give the function that is told which test, of which module, is next."""
    source, lock = [most_tokens(Path(), "")], threading.Lock()

    def drawn(_bytes: int) -> bytes:
        with lock:
            return next(source[0])

    def comes(path: Path, test: str) -> None:
        source[0] = CHANCES[name](path, test)

    # What chance comes from has no seam, and needs one for nothing else.
    pytest.MonkeyPatch().setattr(ids, "os", SimpleNamespace(urandom=drawn))

    return comes
