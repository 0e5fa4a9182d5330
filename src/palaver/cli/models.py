"""palaver models: what each model accepts, and what the vendors' lists say."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated

import anyio
from typer import Argument

from palaver.browsing.models import ModelsRow, models
from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.terminal import emit, paged, print_rows
from palaver.errors import MissingExtra, ProviderError
from palaver.plurals import counted
from palaver.providers import connect_provider
from palaver.providers.models import Columns, learned, write_own_table

_REFRESH = "refresh"
_KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""The variables in which each vendor's client finds its key."""


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def thinking(row: ModelsRow) -> str:
    """Return how the models of a row think, and what may be asked."""
    asked = ", ".join(row["thinking"] or row["efforts"])
    return ": ".join(filter(None, (row["thinks"], asked)))


COLUMNS: Mapping[str, Callable[[ModelsRow], str]] = {
    "maker": lambda row: row["maker"],
    "models": lambda row: row["models"] + (" (yours)" if row["own"] else ""),
    "thinking": thinking,
    "forced tool": lambda row: _yes(row["forced"]),
    "sampling": lambda row: {"old": "2023-06-01"}.get(row["sampling"], row["sampling"]),
    "prefill": lambda row: _yes(row["prefill"]),
    "system inside": lambda row: _yes(row["system_inside"]),
    "schema": lambda row: _yes(row["schema"]),
    "checks": lambda row: _yes(row["bound"]),
    "reads": lambda row: row["reads"],
    "tools in chat": lambda row: _yes(row["functions"]) if row["maker"] == "openai" else "",
}
"""The columns of the table, and what each shows of a row."""


def run(
    model: Annotated[
        str, Argument(metavar="MODEL|refresh", help="Only this model; or read the vendors' lists into your own table.")
    ] = "",
    json: JsonOption = False,
) -> int:
    """List what models accept, from palaver's tables and your own; `refresh` reads the vendors' lists of models into your own.

    A vendor without a key in the environment is skipped. Your own table is in your data folder, and wins.
    """
    if model == _REFRESH:
        return _refresh(json=json)
    with paged(data=json):
        print_rows(
            json,
            models(model),
            COLUMNS,
            cut={"thinking": 24, "reads": 12},
            drop=("schema", "prefill", "reads", "system inside"),
        )
    return Exit.OK


def _refresh(*, json: bool) -> int:
    """Read the lists of the vendors whose key is set, and write what they say."""
    found: dict[str, Mapping[str, Columns]] = {}
    failed = False
    for maker, keys in _KEYS.items():
        try:
            if not any(os.environ.get(key) for key in keys):
                emit(
                    json,
                    {"maker": maker, "skipped": f"no {keys[0]}"},
                    f"{maker}: skipped, {' or '.join(keys)} is not set",
                )
                continue
            found[maker] = learned(maker, anyio.run(_listed, maker))
        except (MissingExtra, ProviderError) as error:
            emit(json, {"maker": maker, "failed": str(error)}, f"{maker}: {error}")
            failed = True
            continue
        known = sum(bool(columns) for columns in found[maker].values())
        row = {"maker": maker, "models": len(found[maker]), "described": known}
        emit(json, row, f"{maker}: {counted(len(found[maker]), 'model')}, {known:,} with what they accept")
    if found:
        path = write_own_table(found)
        emit(json, {"written": str(path)}, f"Written to {path}.")
    return Exit.FOUND if failed else Exit.OK


async def _listed(maker: str) -> list[Mapping[str, object]]:
    provider = connect_provider(maker)
    try:
        return await provider.listed()  # type: ignore[attr-defined,no-any-return] # the three vendors' adapters have it
    finally:
        await provider.aclose()
