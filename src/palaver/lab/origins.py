"""Origins: which code made a result. Results of two codes do not belong into one table, and a version does not tell them apart while one is being made."""

from __future__ import annotations

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from palaver.lab.entrants import Entrant

__all__ = ["code_digest", "source_digest"]

_PACKAGE = Path(__file__).parents[1]
_ABOVE = frozenset({"cli", "explorer", "integrations"})
"""Rooms above the lab: nothing that they do changes a figure."""

_ENDINGS = frozenset({".py", ".sql", ".xz"})
_DIGITS = 16


@cache
def code_digest() -> str:
    """Return the digest of the code of palaver that makes results: every room but those above the lab, and the lab's own report."""
    digest = sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        place = path.relative_to(_PACKAGE)
        if path.suffix not in _ENDINGS or place.parts[0] in _ABOVE or place.parts[:2] == ("lab", "report"):
            continue
        digest.update(f"{place.as_posix()}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]


def source_digest(entrant: Entrant) -> str:
    """Return the digest of the file that a policy of a user's comes from; empty for one of ours, which `code_digest` covers.

    What that file imports does not count.
    """
    if not entrant.own:
        return ""
    digest = sha256()
    module = sys.modules.get(type(entrant.manager).__module__)
    for path in dict.fromkeys((_named(entrant.name), getattr(module, "__file__", None))):
        if path is not None and Path(path).is_file():
            digest.update(sha256(Path(path).read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]


def _named(asked: str) -> str | None:
    path = asked.rpartition(":")[0]
    return path if path.endswith(".py") else None
