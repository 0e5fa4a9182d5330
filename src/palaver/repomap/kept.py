"""Keeping what files were found to say, by their content, in a file: the next process parses only what changed since.

A file that cannot be read, or was written by other grammars or another palaver, is as good as none.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput
from palaver.repomap.grammars import grammars_version
from palaver.repomap.languages import LANGUAGES
from palaver.repomap.tags import Definition, Line, Tags, Use
from palaver.repomap.walking import read

__all__ = ["load", "save"]

_FORM = 2
"""The form of the file."""

_MOST = 1 << 28
"""Bytes of the file that are read, and bytes that are made of them."""


def load(path: Path) -> dict[str, Tags | None]:
    """Give what was kept; nothing where it is of no use."""
    packed = read(path, _MOST)
    if isinstance(packed, str):
        return {}
    try:
        said = json.loads(zlib.decompressobj().decompress(packed, _MOST))
        if said["made"] != _made():
            return {}
        return {str(key): None if tags is None else _tags(tags) for key, tags in said["files"].items()}
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return {}


def save(path: Path, known: Mapping[str, Tags | None]) -> None:
    """Keep it, whole or not at all.

    Raises:
        InvalidInput: It cannot be written there.
    """
    files = {key: None if tags is None else _data(tags) for key, tags in sorted(known.items())}
    text = json.dumps({"made": _made(), "files": files}, ensure_ascii=False, separators=(",", ":"))
    packed = zlib.compress(text.encode(errors="replace"), 1)
    try:
        number, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(number, "wb") as stream:
                stream.write(packed)
            Path(draft).replace(path)
        except OSError:
            with contextlib.suppress(OSError):  # the error that matters is the other one
                Path(draft).unlink()
            raise
    except OSError as error:
        raise InvalidInput(
            f"What was found cannot be kept in {path}: {error.strerror or error}.",
            hint="Name a file in a folder of yours.",
        ) from error


def _made() -> list[object]:
    """Give what the content depends on besides the files."""
    queries = zlib.crc32("".join(each.query for each in LANGUAGES).encode())
    return [_FORM, version("palaver"), grammars_version(), queries]


def _data(tags: Tags) -> list[Any]:
    """Give JSON; what several definitions stand in is written once."""
    around = list(dict.fromkeys(each.within for each in tags.definitions))
    place = {within: number for number, within in enumerate(around)}
    return [around, [[each.name, each.head, place[each.within], each.member] for each in tags.definitions], tags.uses]


def _tags(data: list[Any]) -> Tags:
    around, definitions, uses = data
    withins = [_lines(each) for each in around]
    return Tags(
        tuple(Definition(str(name), _lines(head), withins[place], bool(own)) for name, head, place, own in definitions),
        tuple(Use(str(name), int(times), bool(plain), str(module)) for name, times, plain, module in uses),
    )


def _lines(data: list[Any]) -> tuple[Line, ...]:
    return tuple(Line(int(number), str(text)) for number, text in data)
