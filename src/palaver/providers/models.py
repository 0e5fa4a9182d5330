"""The user's own table of models, next to those of palaver: what the vendors' lists of models say.

`palaver models refresh` writes it. It knows columns of :class:`palaver.wire.models.ModelRow` better than palaver's tables, for models by name. A call
records the columns with which its request was compiled, so that the request can be made again after the table has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeAlias

from palaver.errors import warn
from palaver.folders import data_folder
from palaver.messages.frozen import EMPTY
from palaver.tokens.names import UnknownModelWarning, read_name

Columns: TypeAlias = Mapping[str, Any]
"""What is known of a model, by the name of a column."""

_LISTS = frozenset({"thinking", "efforts"})
_FLAGS = frozenset({"schema", "served", "compacts"})
_ALWAYS = ("adaptive",)


def table_path() -> Path:
    """Return the file of the user's own table."""
    return data_folder() / "models.json"


def own_columns(maker: str, model: str) -> Columns:
    """Return what the user's own table says of a maker's model; nothing where it does not have the model."""
    models = own_table().get(maker)
    return models.get(_key(model), EMPTY) if models and model else EMPTY


def own_table() -> Mapping[str, Mapping[str, Columns]]:
    """Return the user's own table: by maker and model, what it says."""
    try:
        return _read(table_path())
    except RuntimeError:  # the user has no home folder
        return {}


def write_own_table(learned: Mapping[str, Mapping[str, Columns]]) -> Path:
    """Replace what the user's own table says of these makers, and return its file."""
    path = table_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {maker: dict(models) for maker, models in {**own_table(), **learned}.items()}
    with NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        json.dump({"version": 1, "models": made}, file, indent=1, sort_keys=True)
    Path(file.name).replace(path)
    _read.cache_clear()
    return path


def _key(name: str) -> str:
    return read_name(name).readings[-1]


@cache
def _read(path: Path) -> dict[str, Mapping[str, Columns]]:
    try:
        text = path.read_text("utf-8")
    except OSError:  # there is none
        return {}
    try:
        makers = json.loads(text)["models"]
        return {
            maker: {_key(name): _known(columns) for name, columns in models.items()} for maker, models in makers.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        warn(f"{path} is not a table of models ({error}); only palaver's own is used.", UnknownModelWarning)
        return {}


def _known(columns: Columns) -> Columns:
    """Return the columns that this version has, with values of their types."""
    lists = {
        name: tuple(map(str, value)) for name, value in columns.items() if name in _LISTS and isinstance(value, list)
    }
    flags = {name: value for name, value in columns.items() if name in _FLAGS and isinstance(value, bool)}
    thinks = {"thinks": "always"} if lists.get("thinking") == _ALWAYS else {}
    return {**lists, **flags, **thinks}


# --- what vendors list ---------------------------------------------------------------------------------------------------


def learned(maker: str, listed: Iterable[Mapping[str, Any]]) -> Mapping[str, Columns]:
    """Return what a vendor's list of models says, by model. Only Anthropic's says what a request may have."""
    named = {str(model.get("id") or model.get("name") or "").removeprefix("models/"): model for model in listed}
    return {name: _capable(model) if maker == "anthropic" else {} for name, model in named.items() if name}


def _capable(model: Mapping[str, Any]) -> Columns:
    """Return the columns that a model of Anthropic's list has (the `anthropic` package 2.14, `types/model_capabilities`)."""
    able = model.get("capabilities")
    if not isinstance(able, Mapping):
        return {}
    kinds, efforts = _supported(_at(able, "thinking", "types")), _supported(able.get("effort"))
    said = {
        "schema": _at(able, "structured_outputs", "supported"),
        "served": _at(able, "server_tools", "supported"),
        "compacts": _at(able, "context_management", "compact_20260112", "supported"),
    }
    lists = {"thinking": kinds, "efforts": efforts}
    return {name: list(value) for name, value in lists.items() if value} | {
        name: value for name, value in said.items() if isinstance(value, bool)
    }


def _at(value: Any, *path: str) -> Any:  # noqa: ANN401 - any JSON value
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _supported(able: Any) -> Sequence[str]:  # noqa: ANN401 - any JSON value
    """Return the names below which `supported` is true."""
    named = able if isinstance(able, Mapping) else {}
    return [name for name, value in named.items() if _at(value, "supported") is True]
