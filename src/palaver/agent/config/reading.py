"""Reading: a file, a text or a mapping into plain values, with the line of each.

Only YAML's safe part is read: no tag makes an object, no key is given twice, nothing is merged in by `<<`, no other file is included, and
`${…}` is a text like any other: whoever wants the environment in it puts it there himself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from palaver.errors import InvalidConfig, NotFound

__all__ = ["Read", "Steps", "Where", "read"]

Steps: TypeAlias = tuple[str | int, ...]

_MOST_NODES = 100_000
"""Values that a configuration may have, aliases followed: more is an attack or a mistake."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where values stand.

    Attributes:
        file: The file, or empty.
        lines: Lines by path, from 1; 0 throughout for a configuration that came as a mapping.
    """

    file: str = ""
    lines: Mapping[Steps, int] = field(default_factory=dict)

    def line(self, path: Steps) -> int:
        """Give the line of a value, or of the nearest one around it; 0 where there is none."""
        return next((self.lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.lines), 0)

    def fault(self, path: Steps, what: str, close: Iterable[str] = (), hint: str = "") -> InvalidConfig:
        """Make the error for a value that cannot be used."""
        return InvalidConfig(what, file=self.file, line=self.line(path), key=spelt(path), close=close, hint=hint)

    def unknown(self, path: Steps, known: Iterable[str], hint: str = "") -> InvalidConfig:
        """Make the error for a key that is not known."""
        known = sorted(known)
        near = get_close_matches(str(path[-1]), known)
        return self.fault(path, "there is no such key.", near, hint or f"Keys here: {', '.join(known)}.")

    def place(self, path: Steps) -> str:
        """Give the place of a value in words, for a hint."""
        line = self.line(path)
        file = f"{self.file}:{line}" if self.file and line else self.file or (f"line {line}" if line else "")
        return ", ".join(filter(None, (file, spelt(path))))


def spelt(path: Steps) -> str:
    """Write a path as `agent_configs[1].model_args`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Read:
    """A configuration as plain values, and where they stand."""

    value: dict[str, Any]
    where: Where


def read(source: str | Path | Mapping[str, Any]) -> Read:
    """Read a configuration.

    Args:
        source: A file; a text of YAML, which has a line break or begins with `{`; or a mapping.

    Raises:
        NotFound: There is no such file.
        InvalidConfig: It cannot be read, or is no mapping of JSON values.
    """
    if isinstance(source, Mapping):
        lines: dict[Steps, int] = {}
        where = Where(lines=lines)
        value = _plain(source, (), where, lines)
    else:
        file, text = _text(source)
        value, where = _Reader(file).whole(text)
    if not isinstance(value, dict):
        raise where.fault((), f"a configuration is a mapping, not {_kind(value)}.")
    return Read(value, where)


def _text(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return "", source
    path = Path(source)
    try:
        return str(path), path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = _neighbours(path)
        raise NotFound(str(path), what="configuration file", close=near) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"it cannot be read: {error}.", file=str(path)) from error


def _neighbours(path: Path) -> list[str]:
    if not path.parent.is_dir():
        return []
    return [
        str(path.with_name(name))
        for name in get_close_matches(path.name, (each.name for each in path.parent.iterdir()))
    ]


def _plain(value: object, path: Steps, where: Where, lines: dict[Steps, int]) -> Any:  # noqa: ANN401 - a JSON value
    """Copy a value of a mapping that is given; refuse what a file could not hold."""
    lines[path] = 0
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise where.fault((*path, str(key)), "a key is a text.")
        return {key: _plain(each, (*path, key), where, lines) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, (*path, index), where, lines) for index, each in enumerate(value)]
    return _scalar(value, path, where)


def _scalar(value: object, path: Steps, where: Where) -> object:
    if isinstance(value, float) and not isfinite(value):
        raise where.fault(path, f"{value} is no number that can be used.")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise where.fault(path, f"{_kind(value)} cannot stand here.", hint="Put it in quotes to have it as a text.")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


class _Reader:
    """Turns the nodes of YAML into values, and takes their lines down."""

    def __init__(self, file: str) -> None:
        self._lines: dict[Steps, int] = {}
        self._where = Where(file, self._lines)
        self._scalars = yaml.constructor.SafeConstructor()
        self._count = 0

    def whole(self, text: str) -> tuple[Any, Where]:
        """Read one document."""
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            value = None if node is None else self._value(node, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark is not None else 0
            raise InvalidConfig(
                f"it is no YAML: {error.problem or error}.", file=self._where.file, line=line
            ) from error
        except (yaml.YAMLError, RecursionError) as error:
            raise InvalidConfig(f"it is no YAML: {str(error).splitlines()[0]}.", file=self._where.file) from error
        return value, self._where

    def _value(self, node: yaml.Node, path: Steps) -> Any:  # noqa: ANN401 - a JSON value
        self._lines[path] = node.start_mark.line + 1
        self._count += 1
        if self._count > _MOST_NODES:
            raise self._where.fault((), f"it has more than {_MOST_NODES:,} values.")
        if isinstance(node, yaml.MappingNode):
            return dict(self._members(node, path))
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, (*path, index)) for index, each in enumerate(node.value)]
        try:
            value = self._scalars.construct_object(node)
        except ValueError as error:  # such as a date that is none
            raise self._where.fault(path, f"{node.value!r} cannot be read: {error}.") from error
        return _scalar(value, path, self._where)

    def _members(self, node: yaml.MappingNode, path: Steps) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key, value in node.value:
            name = self._name(key, path)
            line = key.start_mark.line + 1
            if name in first:
                raise InvalidConfig(
                    f"the key is given twice, first in line {first[name]}.",
                    file=self._where.file,
                    line=line,
                    key=spelt((*path, name)),
                )
            first[name] = line
            found = self._value(value, (*path, name))
            self._lines[*path, name] = line
            yield name, found

    def _name(self, key: yaml.Node, path: Steps) -> str:
        if not isinstance(key, yaml.ScalarNode):
            raise self._where.fault(path, "a key is a text.")
        if key.tag == "tag:yaml.org,2002:merge":
            self._lines[*path, "<<"] = key.start_mark.line + 1
            raise self._where.fault(
                (*path, "<<"), "nothing is merged in.", hint="Put what agents share under `global`."
            )
        return str(key.value)
