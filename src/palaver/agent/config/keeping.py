"""Keeping: what a specification says of compacting and of memory, built. Each mistake is told with the path of the value it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from palaver.agent.agent import Agent
from palaver.agent.auto_compact import AutoCompact
from palaver.agent.config.specs import AgentSpec
from palaver.agent.invoking import Invoker, call_words
from palaver.agent.summarizing import ModelSummarizer
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.triggers import EventCount, Idle, Overflow, Own, Tokens, Trigger
from palaver.errors import InvalidInput
from palaver.ids import BlobId
from palaver.messages import thaw
from palaver.models import Provider
from palaver.session import Dialog
from palaver.session.memory import CoreMemory, SubjectMemory, shared_memory
from palaver.session.memory.whose import warn_of_shared
from palaver.tokens import Budget, model_info
from palaver.wire import Call

__all__ = ["ConfiguredSummarizer", "compacting", "remembering"]

Used = Callable[[AgentSpec, tuple[str | int, ...], Callable[[], Any]], Any]
"""Makes something of values, and says where they stand when they cannot be used."""

_TRIGGERS: Mapping[str, type[Trigger]] = MappingProxyType(
    {each.name: each for each in (Tokens, EventCount, Idle, Overflow, Own)}
)
_COMPACT = frozenset({"policy", "triggers", "summarizer", "budget", "focus", "seconds", "input_tokens"})
_SUMMARIZER = frozenset({"model_name", "model", "invoker", "max_tokens"})
_MEMORY = frozenset({"name", "blocks", "shared"})
_BLOCK = frozenset({"value", "description", "limit", "unit", "read_only"})


class ConfiguredSummarizer:
    """Asks for summaries whom a configuration names: by default the agent's own model, whoever that is by then.

    Attributes:
        agent: The agent.
        model: The model; empty for the agent's own.
        invoker: Who asks it; None for the agent's own.
        max_tokens: Tokens that an answer may have; None for the provider's own limit.
    """

    def __init__(
        self,
        agent: Agent,
        model: str = "",
        invoker: Invoker | None = None,
        max_tokens: int | None = None,
        *,
        call: Call | None = None,
    ) -> None:
        """Take whom to ask, and what the agent asks its model with."""
        self.agent = agent
        self.model = model
        self.invoker = invoker
        self.max_tokens = max_tokens
        self.call = call

    @property
    def window(self) -> int:
        """What the model can read at once, in tokens; 0 where that is not known."""
        info = model_info(self.model or self.agent.model)
        return info.max_input if info.known else 0

    def sending(self, call: Call) -> ConfiguredSummarizer:
        """Give the same, which asks with what an agent asks its model with."""
        return ConfiguredSummarizer(self.agent, self.model, self.invoker, self.max_tokens, call=call)

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Summarise.

        Raises:
            InvalidInput: Whoever asks the agent's model has no provider that could be asked for a summary.
            ProviderError: The provider gave no whole answer.
        """
        provider = provider_of(self.invoker or self.agent.llm_invoker)
        store, model = self.agent.store, self.agent.model
        call = self.call or Call(model=model, **call_words(self.agent.system_prompt, self.agent.model_args))
        by = ModelSummarizer(
            provider,
            self.model or model,
            max_tokens=self.max_tokens,
            media=lambda digest: store.blob(BlobId(digest)),
            call=call,
        )
        return await by(request)


def provider_of(invoker: Invoker) -> Provider:
    """Give the provider that an invoker asks.

    Raises:
        InvalidInput: It has none.
    """
    provider = getattr(invoker, "provider", None)
    if not isinstance(provider, Provider):
        raise InvalidInput(
            f"{type(invoker).__name__} has no provider that could be asked for a summary.",
            hint="Name an invoker that has one under `summarizer`.",
        )
    return provider


# --- compacting ----------------------------------------------------------------------------------------------------------------


def compacting(
    spec: AgentSpec, agent: Agent, used: Used, policy: Callable[[Any], Any], invoker: Callable[[Any], Invoker]
) -> AutoCompact | None:
    """Give when and how an agent compacts, as its specification says; None where it does not.

    Args:
        spec: The specification.
        agent: The agent.
        used: Makes something of values.
        policy: Makes a policy.
        invoker: Makes an invoker.
    """
    given = spec.settings.get("compact")
    if given is None or given is False:
        return None
    words: dict[str, Any] = {} if given is True else {"policy": given} if isinstance(given, str) else thaw(given)
    _known(spec, words, _COMPACT, "compact")
    made: dict[str, Any] = {
        name: words[name] for name in ("focus", "seconds", "input_tokens") if words.get(name) is not None
    }
    _held(spec, made, {"focus": str, "seconds": (int, float), "input_tokens": int}, "compact")
    if words.get("policy") is not None:
        at = ("compact", "policy") if isinstance(given, Mapping) else ("compact",)
        if not isinstance(words["policy"], str | Mapping):
            raise spec.where.fault(spec.path(*at), "it must be the name of a policy, or a mapping with its type.")
        made["policy"] = used(spec, at, lambda: policy(words["policy"]))
    if words.get("budget") is not None:
        made["budget"] = used(spec, ("compact", "budget"), lambda: _budget(words["budget"], agent))
    if words.get("triggers") is not None:
        made["triggers"] = tuple(_triggers(spec, words["triggers"], used))
    if words.get("summarizer") not in (None, False):
        made["summarizer"] = _summarizer(spec, agent, words["summarizer"], used, invoker)
    return AutoCompact(**made)


def _budget(given: Any, agent: Agent) -> Budget | int:  # noqa: ANN401 - whatever a budget is written as
    return given if type(given) is int and given > 0 else Budget.parse(given, agent.model)


def _triggers(spec: AgentSpec, given: object, used: Used) -> list[Trigger]:
    if not isinstance(given, list):
        raise spec.where.fault(spec.path("compact", "triggers"), "it must be a list of triggers.")
    return [_trigger(spec, each, index, used) for index, each in enumerate(given)]


def _trigger(spec: AgentSpec, given: object, index: int, used: Used) -> Trigger:
    at: tuple[str | int, ...] = ("compact", "triggers", index)
    words = {"type": given} if isinstance(given, str) else given
    if not isinstance(words, dict) or "type" not in words:
        raise spec.where.fault(spec.path(*at), "a trigger is a name, or a mapping with its type.")
    kind = _TRIGGERS.get(str(words["type"]))
    if kind is None:
        place = spec.path(*at, "type") if isinstance(given, dict) else spec.path(*at)
        known = ", ".join(_TRIGGERS)
        raise spec.where.fault(place, f"there is no trigger {words['type']!r}.", hint=f"Triggers: {known}.")
    rest = {name: value for name, value in words.items() if name != "type"}
    _known(spec, rest, {each.name for each in fields(kind)}, *at)  # type: ignore[arg-type]
    _held(spec, rest, dict.fromkeys(rest, (int, float)), *at)
    made: Trigger = used(spec, at, lambda: kind(**rest))
    return made


def _summarizer(
    spec: AgentSpec, agent: Agent, given: object, used: Used, invoker: Callable[[Any], Invoker]
) -> ConfiguredSummarizer:
    at = ("compact", "summarizer")
    words = {} if given is True else {"model_name": given} if isinstance(given, str) else given
    if not isinstance(words, dict):
        raise spec.where.fault(spec.path(*at), "it must be true, the name of a model, or a mapping.")
    _known(spec, words, _SUMMARIZER, *at)
    _held(spec, words, {"model_name": str, "model": str, "max_tokens": int}, *at)
    asked = None
    if "invoker" in words:
        asked = used(spec, (*at, "invoker"), lambda: invoker(words["invoker"]))
        used(spec, (*at, "invoker"), lambda: provider_of(asked))
    model = words.get("model_name") or words.get("model") or ""
    return ConfiguredSummarizer(agent, model, asked, words.get("max_tokens"))


# --- memory --------------------------------------------------------------------------------------------------------------------


def remembering(
    spec: AgentSpec, agent: Agent, used: Used, memories: dict[str, SubjectMemory]
) -> CoreMemory | SubjectMemory | None:
    """Give the core memory of an agent, as its specification says; None where it has none. Agents that name the same one have the same.

    It is that of whoever is talked with, unless the specification says that everybody shares it. It lies in sessions of its own, which the next
    process finds again. Blocks that are not there yet are made; those that are stay as they are, whatever the specification says by now.

    Args:
        spec: The specification.
        agent: The agent.
        used: Makes something of values.
        memories: The memories of subjects that were built so far, by name; added to.
    """
    given = spec.settings.get("memory")
    if given is None or given is False:
        return None
    words: dict[str, Any] = {} if given is True else {"name": given} if isinstance(given, str) else thaw(given)
    _known(spec, words, _MEMORY, "memory")
    _held(spec, words, {"name": str, "blocks": dict, "shared": bool}, "memory")
    if words.get("name") is not None and not words["name"].strip():
        at = ("memory", "name") if isinstance(given, Mapping) else ("memory",)
        raise spec.where.fault(spec.path(*at), "a memory has a name; leave it out for the agent's own.")
    name = words.get("name") or spec.name
    scratch = CoreMemory(Dialog(owner="memory"))  # what is wrong with a block is told now, not when somebody comes
    blocks = {label: _block(spec, scratch, label, block, used) for label, block in (words.get("blocks") or {}).items()}
    if words.get("shared"):
        return shared_memory(agent.store, name, blocks=blocks)
    if name not in memories:
        warn_of_shared(agent.store, name)
    memory = memories.setdefault(name, SubjectMemory(name))
    memory.blocks = {**blocks, **memory.blocks}
    return memory


def _block(spec: AgentSpec, scratch: CoreMemory, label: str, given: object, used: Used) -> Mapping[str, Any]:
    """Give what a block begins with, as far as one can be made of it."""
    at = ("memory", "blocks", label)
    words = {} if given is None else {"value": given} if isinstance(given, str) else given
    if not isinstance(words, dict):
        raise spec.where.fault(spec.path(*at), "a block is its text, or a mapping.")
    _known(spec, words, _BLOCK, *at)
    kinds = {"value": str, "description": str, "limit": int, "unit": str, "read_only": bool}
    _held(spec, words, kinds, *at)
    used(spec, at, lambda: scratch.create(label, **words))
    return words


# --- what both hold values to -----------------------------------------------------------------------------------------------------


def _known(spec: AgentSpec, words: Mapping[str, Any], known: frozenset[str] | set[str], *at: str | int) -> None:
    for key in words:
        if key not in known:
            raise spec.where.unknown(spec.path(*at, key), known)


_KINDS: Mapping[Any, str] = MappingProxyType(
    {
        str: "a text",
        int: "a whole number above 0",
        (int, float): "a number above 0",
        bool: "true or false",
        dict: "a mapping",
    }
)


def _held(spec: AgentSpec, words: Mapping[str, Any], kinds: Mapping[str, Any], *at: str | int) -> None:
    """Insist that values are what they must be."""
    for key, kind in kinds.items():
        value = words.get(key)
        if value is None and (key not in words or kind is not bool):
            continue
        good = isinstance(value, kind) and (kind in {str, dict, bool} or (not isinstance(value, bool) and value > 0))
        if not good:
            shown = (
                "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)[:80]
            )
            raise spec.where.fault(spec.path(*at, key), f"it must be {_KINDS[kind]}, not {shown}.")
