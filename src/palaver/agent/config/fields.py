"""Fields: what an agent's configuration may say, and what each value must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_args

from palaver.agent.config.reading import Steps, Where
from palaver.agent.settings import OnRefused

__all__ = ["FIELDS", "check", "renamed"]

_NAMES: Mapping[str, str] = MappingProxyType(
    {"model": "model_name", "mcp_servers_list": "mcp_servers", "llm_invoker": "invoker"}
)
"""Other words for the same."""

Check = Callable[[Any], str]


def _text(value: object) -> str:
    return "" if isinstance(value, str) and value.strip() else "a text"


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _count(value: object) -> str:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if good else "a whole number, at least 0"


def _mapping(value: object) -> str:
    return "" if isinstance(value, dict) else "a mapping"


def _texts(value: object) -> str:
    good = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
    return "" if good else "a list of references"


def _mappings(value: object) -> str:
    return "" if isinstance(value, list) and all(isinstance(each, dict) for each in value) else "a list of mappings"


def _named(value: object) -> str:
    return "" if isinstance(value, dict) or not _text(value) else "a name, or a mapping"


def _or_null(check: Check) -> Check:
    return lambda value: "" if value is None else check(value) and f"{check(value)}, or null"


def _figures(value: object) -> str:
    return "" if isinstance(value, dict) or not _count(value) else "a whole number, or a mapping"


def _switch(value: object) -> str:
    return (
        "" if value is None or isinstance(value, bool) or not _named(value) else "true or false, a name, or a mapping"
    )


def _interface(value: object) -> str:
    return "" if value in ("completion", "response") else "completion or response"


def _refusal(value: object) -> str:
    return "" if value in get_args(OnRefused) else " or ".join(get_args(OnRefused))


FIELDS: Mapping[str, Check] = MappingProxyType(
    {
        "name": _text,
        "model_name": _text,
        "system_prompt": _text,
        "system_prompt_path": _text,
        "model_args": _mapping,
        "api_type": _interface,
        "invoker": _named,
        "retry": _or_null(_figures),
        "max_exception_retry": _count,
        "max_interrupt_steps": _count,
        "max_llm_recall": _count,
        "on_refused": _refusal,
        "context_manager": _or_null(_named),
        "budget": _or_null(_figures),
        "compact": _switch,
        "memory": _switch,
        "recall": _flag,
        "tools": _texts,
        "mcp_servers": _mappings,
        "addon_args": _mapping,
        "format": _mapping,
        "inherit_system_contract": _flag,
        "parallel_tools": _flag,
        "metadata": _mapping,
    }
)
"""Each key, and what its value must be: an empty text when it is, else the words for it."""

_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("summarizer", "summariser", "triggers", "focus"),
            "It stands under `compact`, with what else compacting takes.",
        ),
        "blocks": "It stands under `memory`.",
        "base": "Configurations do not include others: write what agents share under `global`.",
        **dict.fromkeys(
            ("temperature", "max_tokens", "top_p", "max_completion_tokens", "reasoning_effort", "seed", "stop"),
            "What goes to the model stands under `model_args`.",
        ),
    }
)


def renamed(section: Mapping[str, Any], path: Steps, where: Where) -> dict[str, Any]:
    """Give a section in our own words.

    Raises:
        InvalidConfig: Two words for the same thing differ.
    """
    out: dict[str, Any] = {}
    for key, value in section.items():
        own = _NAMES.get(key, key)
        if own in out and out[own] != value:
            said = f"it says {_shown(value)}, and another word for the same says {_shown(out[own])}."
            raise where.fault((*path, key), said)
        out[own] = value
    return out


def check(section: Mapping[str, Any], path: Steps, where: Where) -> None:
    """Hold a section to the table.

    Raises:
        InvalidConfig: A key is not known, or a value is not what it must be.
    """
    for key, value in section.items():
        own = _NAMES.get(key, key)
        if own not in FIELDS:
            raise where.unknown((*path, key), {*FIELDS, *_NAMES}, _HINTS.get(key, ""))
        wanted = FIELDS[own](value)
        if wanted:
            raise where.fault((*path, key), f"it must be {wanted}, not {_shown(value)}.")


def _shown(value: object) -> str:
    """Show a value in a message; of what holds others, which may be secrets, only what it is."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else repr(value)[:80]
