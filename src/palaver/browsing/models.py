"""Models: what each accepts, as rows of palaver's tables and of the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypedDict

from palaver.providers import APIS
from palaver.providers.models import own_columns, own_table
from palaver.wire.models import EVERY, ModelRow, ModelTable, Reach, Version, read_model


class ModelsRow(TypedDict):
    """Models that accept the same, by the columns of `palaver.wire.models.ModelRow`."""

    maker: str
    models: str
    own: bool
    thinking: list[str]
    thinks: str
    efforts: list[str]
    forced: bool
    sampling: str
    prefill: bool
    system_inside: bool
    system_first: bool
    schema: bool
    bound: bool
    reads: str
    functions: bool
    source: str


def models(name: str = "") -> Iterator[ModelsRow]:
    """Yield the rows of all tables, from the newest to the oldest, those of the user's own table after those of palaver.

    Args:
        name: Only what holds for this model.
    """
    tables = {row.maker: row.table for row in APIS.values()}
    if name:
        yield from _of_model(tables, name)
        return
    own = own_table()
    for maker, table in tables.items():
        for row in table.rows:
            yield _shown(maker, _models(row), row, own=False)
        for model, columns in sorted(own.get(maker, {}).items()):
            if columns:
                yield _shown(maker, model, table.row(model, columns), own=True)


def _of_model(tables: dict[str, ModelTable], name: str) -> Iterator[ModelsRow]:
    maker = read_model(name).maker or "openai"
    columns = own_columns(maker, name)
    yield _shown(maker, name, tables[maker].row(name, columns), own=bool(columns))


def _shown(maker: str, said: str, row: ModelRow, *, own: bool) -> ModelsRow:
    return {
        "maker": maker,
        "models": said,
        "own": own,
        "thinking": list(row.thinking),
        "thinks": row.thinks,
        "efforts": list(row.efforts),
        "forced": row.forced,
        "sampling": row.sampling,
        "prefill": row.prefill,
        "system_inside": row.system_inside,
        "system_first": row.system_first,
        "schema": row.schema,
        "bound": row.bound,
        "reads": ", ".join(map(_reach, row.reads)),
        "functions": row.functions,
        "source": row.source,
    }


def _models(row: ModelRow) -> str:
    """Return the models of a row in words: their lines and families, and the version they begin with."""
    if row.names:
        return ", ".join(row.names)
    since = "" if row.floor == (0, 0) else f" {_version(row.floor)}+"
    return f"{row.line}{_families(row.families)}{since}"


def _reach(reach: Reach) -> str:
    """Return a reach in words."""
    if reach == EVERY:
        return "all"
    first = "" if reach.first == (0, 0) else f"{_version(reach.first)}-"
    last = _version(reach.last)
    versions = last if first == f"{last}-" else f"{first or '≤'}{last}"
    return f"{_families(reach.families).lstrip('-')} {versions}".strip()


def _families(families: Iterable[str]) -> str:
    named = "/".join(family for family in families if family)
    return f"-{named}" if named else ""


def _version(version: Version) -> str:
    major, minor = version
    return f"{major}.x" if minor == EVERY.last[1] else f"{major}.{minor}" if minor else str(major)
