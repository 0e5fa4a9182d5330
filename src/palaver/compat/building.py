"""Build agents and invokers from descriptions, and resolve their references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias, TypeVar

from palaver.agent.agent import Agent
from palaver.agent.invoking import Invoker, ProviderInvoker
from palaver.agent.options import AgentOptions
from palaver.compat.config import AgentSpec, Config
from palaver.context import policy
from palaver.errors import InfeasibleBudget, InvalidInput, NotFound
from palaver.messages import canonical_json
from palaver.prompts import Format, Prompt, Runtime, get_default_runtime, verbatim_prompt
from palaver.providers import Provider
from palaver.providers.connect import PROVIDERS, connect_provider
from palaver.providers.retry import Retry
from palaver.store.connect import StoreLike, opened_store
from palaver.tokens import Budget
from palaver.tools import MCP, Function

__all__ = ["build_agents", "build_invoker", "register_invoker"]

_OPTIONS = AgentSpec.model_fields.keys() & {option.name for option in fields(AgentOptions)}
"""The keys of a configuration that are options of the agent."""

_T = TypeVar("_T")


def build_agents(
    config: Config,
    names: Iterable[str] | None = None,
    *,
    runtime: Runtime | None = None,
    llm_invoker: Invoker | Provider | None = None,
    store: StoreLike | None = None,
) -> dict[str, Agent]:
    """Build the agents of a configuration. Agents with equal invoker descriptions share one invoker.

    Args:
        config: The configuration.
        names: The agents to build. Default: all.
        runtime: Resolves references. Default: the default runtime.
        llm_invoker: Replaces the invokers of the configuration.
        store: The store of their dialogs. Default: in memory.

    Raises:
        NotFound: An agent, a prompt, a tool, a context manager or an invoker does not exist; the hint names the place.
        InvalidConfig: A value cannot be used.
        MissingExtra: A provider's package is not installed.
    """
    builder = _Builder(runtime or get_default_runtime(), llm_invoker, store)
    return {name: builder.agent(config[name]) for name in (config if names is None else names)}


class _Builder:
    """Builds agents that share invokers."""

    def __init__(self, runtime: Runtime, llm_invoker: Invoker | Provider | None, store: StoreLike | None) -> None:
        self._runtime = runtime
        self._given = ProviderInvoker(llm_invoker) if isinstance(llm_invoker, Provider) else llm_invoker
        self._store = None if store is None else opened_store(store, create=True)[0]
        self._invokers: dict[bytes, Invoker] = {}

    def agent(self, spec: AgentSpec) -> Agent:
        """Build an agent."""
        invoker = self._given or _used(spec, ("invoker",), partial(self._invoker, spec.invoker))
        options: dict[str, Any] = {name: getattr(spec, name) for name in _OPTIONS}
        if spec.retry is not None:
            options["retry"] = Retry(**dict(spec.retry))
        return Agent(
            spec.name,
            self._prompt(spec),
            spec.model_name,
            invoker,
            tools=self._tools(spec),
            context_manager=self._manager(spec),
            budget=self._budget(spec),
            store=self._store,
            runtime=self._runtime,
            model_args=spec.model_args,
            **options,
        )

    def _prompt(self, spec: AgentSpec) -> Prompt:
        """Return the system prompt with the configuration's servers, provider tools and format added."""
        path = spec.system_prompt_path
        if path is None:
            prompt = verbatim_prompt(f"{spec.name}/system", spec.system_prompt or "")
        else:
            prompt = _used(spec, ("system_prompt_path",), partial(self._runtime.get_prompt, path))
        added: dict[str, Any] = {}
        if spec.mcp_servers:
            servers = [
                _used(spec, ("mcp_servers", index), partial(MCP.from_dict, server))
                for index, server in enumerate(spec.mcp_servers)
            ]
            added["mcp_servers_list"] = (*prompt.mcp_servers_list, *servers)
        for name in ("addon_args", "metadata"):
            if getattr(spec, name):
                added[name] = {**getattr(prompt, name), **getattr(spec, name)}
        if spec.format is not None:
            added["format"] = _used(spec, ("format",), partial(Format, spec.format))
        return prompt.extend(path=prompt.path, **added) if added else prompt

    def _tools(self, spec: AgentSpec) -> tuple[Function, ...]:
        namespace = (spec.system_prompt_path or "").rpartition(":")[0]
        return tuple(
            _used(spec, ("tools", index), partial(self._runtime.get_tool, ref, namespace))
            for index, ref in enumerate(spec.tools)
        )

    def _manager(self, spec: AgentSpec) -> Any:  # noqa: ANN401 - a context manager, or None
        config = spec.context_manager
        if config is None:
            return None
        made = partial(policy, config, spec.model_name, runtime=self._runtime)
        return _used(spec, ("context_manager", "type"), made, config)

    def _budget(self, spec: AgentSpec) -> Budget | None:
        parse = partial(Budget.parse, spec.budget, spec.model_name)
        return None if spec.budget is None else _used(spec, ("budget",), parse)

    def _invoker(self, words: Mapping[str, Any]) -> Invoker:
        """Return the invoker for a description. Equal descriptions share one; the runtime's own builders come first."""
        key = canonical_json(words)  # a mapping has no hash
        if key not in self._invokers:
            self._invokers[key] = build_invoker(words, runtime=self._runtime)
        return self._invokers[key]


def _used(spec: AgentSpec, steps: tuple[str | int, ...], make: Callable[[], _T], words: Iterable[str] = ()) -> _T:
    """Build an object from a value. An error names the place of the value.

    Args:
        spec: The specification.
        steps: The path of the value.
        make: Builds it.
        words: Keys of the value. An error that names one of them concerns that key.
    """
    try:
        return make()
    except NotFound as error:
        error.hint = f"{error.hint} See {spec.place.words(steps)}.".strip()
        raise
    except (InvalidInput, InfeasibleBudget, TypeError) as error:
        named = next((key for key in words if key != "type" and repr(key) in str(error)), None)
        path = steps if named is None else (*steps[:-1], named) if steps[-1] == "type" else (*steps, named)
        raise spec.place.fault(path, getattr(error, "message", f"{error}."), hint=getattr(error, "hint", "")) from error


# --- invokers by name ----------------------------------------------------------------------------------------------------

Builder: TypeAlias = Callable[[dict[str, Any]], Invoker]
"""Builds an invoker from a configuration without its key `invoker`."""


def build_invoker(config: Mapping[str, Any] | str, *, runtime: Runtime | None = None) -> Invoker:
    """Build an invoker by name.

    Args:
        config: Its name, or a mapping with the name under `invoker` and the provider's own arguments:
            `build_invoker({"invoker": "openai", "base_url": "..."})`.
        runtime: Its registered invokers take precedence over providers. Default: the default runtime.

    Raises:
        NotFound: No invoker has this name; `close` has similar names.
        MissingExtra: The provider's package is not installed.
        InvalidInput: The configuration has a key that the invoker does not accept.
    """
    rest = {"invoker": config} if isinstance(config, str) else dict(config)
    name = rest.pop("invoker", None)
    if not isinstance(name, str):
        raise InvalidInput("The configuration of an invoker has no name.", hint='Set one: {"invoker": "litellm"}.')
    runtime = runtime or get_default_runtime()
    known = (*runtime.invokers(), *PROVIDERS)
    if name not in known:
        raise NotFound(name, what="invoker", close=get_close_matches(name, known))
    try:
        if name in runtime.invokers():
            made: Invoker = runtime.get_invoker(name)(rest)
            return made
        return ProviderInvoker(connect_provider(name, **rest))
    except TypeError as error:
        raise InvalidInput(f"The invoker {name!r} cannot be built from {sorted(rest)}: {error}.") from error


def register_invoker(name: str, builder: Builder) -> Builder:
    """Register an invoker with the default runtime, and return its builder."""
    return get_default_runtime().register_invoker(name, builder, overwrite=True)
