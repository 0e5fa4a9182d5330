"""Policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any, Final

from palaver.context.manager import ContextManager, Policy
from palaver.context.policies.default import DefaultContextManager
from palaver.context.policies.fold import FoldContextManager
from palaver.context.policies.full import FullContext
from palaver.context.policies.offload import OffloadContextManager
from palaver.context.policies.scheduled import Scheduled
from palaver.context.presets import PRESETS
from palaver.context.presets.palaver import Palaver
from palaver.errors import InvalidInput, UnknownPolicy
from palaver.prompts import Runtime

__all__ = ["DEFAULT_POLICY", "POLICIES", "policy", "require_policy"]

_OWN: tuple[type[Policy], ...] = (
    DefaultContextManager,
    OffloadContextManager,
    FoldContextManager,
    Scheduled,
    FullContext,
)

POLICIES: Mapping[str, type[Policy]] = MappingProxyType({each.name: each for each in (*_OWN, *PRESETS)})
"""The policies that come with palaver, by name."""

DEFAULT_POLICY: Final = Palaver.name
"""The policy of a view that is asked for with a budget and no policy."""


def policy(
    config: str | ContextManager | Mapping[str, Any] | None, model: str = "", *, runtime: Runtime | None = None
) -> ContextManager | None:
    """Make a context manager.

    Args:
        config: A name; a configuration with `type` and the words of its constructor; a manager, which is given back; or None (or the
            type None, or `null`) for none.
        model: The model, unless the configuration names one.
        runtime: Where further managers are registered; theirs win over ours of the same name.

    Raises:
        UnknownPolicy: There is none of that name; the error has close matches.
        InvalidInput: The configuration is none.
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
        raise InvalidInput(f"{name!r} is no policy.", hint=f"Policies: {', '.join(POLICIES)}.")
    made: ContextManager = _named(name, runtime)(**({"model_name": model} | words))
    return made


def require_policy(given: object, argument: str) -> None:
    """Insist that something may stand where a policy is meant; whether there is one of its name is not looked at.

    Args:
        given: What stands there.
        argument: The argument, as errors name it.

    Raises:
        InvalidInput: It is neither a name nor a configuration nor a context manager.
    """
    if given is None or isinstance(given, str | ContextManager | Mapping):
        return
    if isinstance(given, type) and issubclass(given, ContextManager):
        raise InvalidInput(
            f"The {argument} is the class {given.__name__}, not an object of it.",
            hint=f"Give an object: {given.__name__}().",
        )
    raise InvalidInput(
        f"The {argument} is {shortened(given)}.",
        hint="Give a name such as 'palaver', a configuration with 'type', or an object whose class is a Policy or ContextManager.",
    )


def _named(name: str, runtime: Runtime | None) -> type[Any]:
    registered = runtime.context_managers() if runtime is not None else ()
    if runtime is not None and name in registered:
        return runtime.get_context_manager(name)
    if name not in POLICIES:
        known = (*POLICIES, *registered)
        raise UnknownPolicy(name, close=get_close_matches(name, known), hint=f"Policies: {', '.join(sorted(known))}.")
    return POLICIES[name]
