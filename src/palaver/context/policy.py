"""Policies by name: those that come with palaver, and those that a runtime knows."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from palaver.context.manager import ContextManager
from palaver.errors import InvalidInput, NotFound
from palaver.prompts import Runtime

POLICIES: Mapping[str, str] = MappingProxyType(
    {
        "palaver": "presets:Palaver",
        "provider": "presets.provider:ProviderContext",
        "fold": "presets.own:FoldContextManager",
        "offload": "presets.own:OffloadContextManager",
        "default": "presets.own:DefaultContextManager",
        "full": "presets.own:FullContext",
        "lllm": "presets.own:LLLM",
        "openhands": "presets.coding:OpenHands",
        "claude-code": "presets.coding:ClaudeCode",
        "manus": "presets.assistants:Manus",
        "opencode": "presets.coding:OpenCode",
        "opencode-dcp": "presets.coding:OpenCodeDCP",
        "aider": "presets.aider:Aider",
        "swe-agent": "presets.coding:SWEAgent",
        "cat": "presets.assistants:CAT",
        "letta": "presets.assistants:Letta",
        "dynamiq": "presets.assistants:Dynamiq",
        "pi": "presets.coding:Pi",
    }
)
"""The policies that come with palaver: each name's module in `palaver.context` and class. A module is loaded when somebody asks for its policy."""

PolicyLike: TypeAlias = str | ContextManager | Mapping[str, Any]
"""A policy or context manager, its name, or its configuration."""

DEFAULT_POLICY: Final = "palaver"
"""The policy where a caller names none."""


def policy(config: PolicyLike | None, model: str = "", *, runtime: Runtime | None = None) -> ContextManager | None:
    """Return a context manager.

    Args:
        config: A name; a configuration with `type` and the words of its constructor; a manager, which is returned; or None (also `type: null`) for none.
        model: The model, unless the configuration names one.
        runtime: Where further managers are registered; they win over ours of the same name.

    Raises:
        NotFound: No policy has this name; the error lists close ones.
        InvalidInput: The configuration has no type, or a word that its policy does not know.
    """
    require_policy(config, "policy")
    if config is None or isinstance(config, ContextManager):
        return config
    words = {"type": config} if isinstance(config, str) else dict(config)
    if words and "type" not in words:
        raise InvalidInput(
            f"The policy's configuration has no 'type'; its keys: {', '.join(map(repr, words))}.",
            hint=f"Name the policy with 'type'. Policies: {', '.join(POLICIES)}.",
        )
    name = words.pop("type", None)
    if name is None or name == "null":
        return None
    if not isinstance(name, str):
        raise InvalidInput(f"The policy's type is {name!r}.", hint=f"Policies: {', '.join(POLICIES)}.")
    made: ContextManager = _named(name, runtime)(**({"model_name": model} | words))
    return made


def require_policy(given: object, argument: str) -> None:
    """Raise InvalidInput unless a value is a name, a configuration, a context manager or None; whether a policy has the name is not checked.

    Args:
        given: The value.
        argument: The argument's name, for the error.
    """
    if given is None or isinstance(given, str | ContextManager | Mapping):
        return
    if isinstance(given, type) and issubclass(given, ContextManager):
        raise InvalidInput(
            f"The {argument} is the class {given.__name__}, not an object of it.",
            hint=f"Pass an object: {given.__name__}().",
        )
    raise InvalidInput(
        f"The {argument} is {shortened(given)}.",
        hint="Pass a name such as 'palaver', a configuration with 'type', or an object whose class is a Policy or ContextManager.",
    )


def _named(name: str, runtime: Runtime | None) -> type[Any]:
    registered = runtime.context_managers() if runtime is not None else ()
    if runtime is not None and name in registered:
        return runtime.get_context_manager(name)
    if name not in POLICIES:
        known = (*POLICIES, *registered)
        raise NotFound(
            name, what="policy", close=get_close_matches(name, known), hint=f"Policies: {', '.join(sorted(known))}."
        )
    module, _, wanted = POLICIES[name].partition(":")
    named: type[ContextManager] = getattr(import_module(f"palaver.context.{module}"), wanted)
    return named
