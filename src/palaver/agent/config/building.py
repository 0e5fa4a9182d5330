"""Building: agents of specifications. Here references are looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from palaver.agent.agent import Agent
from palaver.agent.building import build_invoker
from palaver.agent.config.keeping import compacting, remembering
from palaver.agent.config.specs import AgentSpec, Config
from palaver.agent.invoking import Invoker
from palaver.context import ContextManager, policy
from palaver.context.policies.full import FullContext
from palaver.errors import InfeasibleBudget, InvalidInput, NotFound, PalaverError
from palaver.messages import canonical_json, thaw
from palaver.models.retry import Retry
from palaver.prompts import Format, Prompt, Runtime, get_default_runtime
from palaver.session.memory import SubjectMemory
from palaver.store import Store
from palaver.tokens import Budget
from palaver.tools import MCP, Function

__all__ = ["build_agent", "build_agents"]

_DEFAULT_INVOKER = "litellm"
_FIGURES = frozenset({"attempts", "base", "cap", "patience", "max_elapsed", "jitter"})
_PLAIN = (
    "model_args",
    "max_exception_retry",
    "max_interrupt_steps",
    "max_llm_recall",
    "on_refused",
    "api_type",
    "inherit_system_contract",
    "parallel_tools",
)
"""Settings that an agent takes as they are."""

_T = TypeVar("_T")


def build_agents(
    config: Config,
    names: Iterable[str] | None = None,
    *,
    runtime: Runtime | None = None,
    llm_invoker: Invoker | None = None,
    store: Store | None = None,
    kind: Callable[..., Agent] = Agent,
) -> dict[str, Agent]:
    """Build agents of a configuration. Agents whose invokers are described alike share one.

    Args:
        config: The configuration.
        names: Which agents; all when not given.
        runtime: What references are looked up in; the default one when not given.
        llm_invoker: What asks the models, in place of what the configuration says.
        store: Where their dialogs lie; in memory when not given.
        kind: What makes an agent of its settings: another class, for instance.

    Raises:
        NotFound: A name or reference leads nowhere: an agent, a prompt, a tool, a context manager, an invoker; with the place in the hint.
        InvalidConfig: A value cannot be used.
        MissingExtra: A provider's package is not installed.
    """
    shared: dict[bytes, Invoker] = {}
    memories: dict[str, SubjectMemory] = {}
    return {
        name: build_agent(
            config[name],
            runtime=runtime,
            llm_invoker=llm_invoker,
            store=store,
            kind=kind,
            shared=shared,
            memories=memories,
        )
        for name in (config if names is None else names)
    }


def build_agent(  # noqa: PLR0913 - all but the first by keyword
    spec: AgentSpec,
    *,
    runtime: Runtime | None = None,
    llm_invoker: Invoker | None = None,
    store: Store | None = None,
    kind: Callable[..., Agent] = Agent,
    shared: dict[bytes, Invoker] | None = None,
    memories: dict[str, SubjectMemory] | None = None,
) -> Agent:
    """Build one agent, as `build_agents` does.

    Args:
        spec: The specification.
        runtime: What references are looked up in.
        llm_invoker: What asks the model, in place of what the specification says.
        store: Where its dialogs lie.
        kind: What makes an agent of its settings.
        shared: Invokers by their description, to be looked into and added to.
        memories: Memories of subjects by name, to be looked into and added to.
    """
    known = runtime or get_default_runtime()
    settings = spec.settings
    invokers = {} if shared is None else shared
    agent = kind(
        spec.name,
        _prompt(spec, known),
        spec.model_name,
        llm_invoker or _invoker(spec, known, invokers),
        context_manager=_manager(spec, known),
        budget=_budget(spec),
        tools=_tools(spec, known),
        retry=_retry(spec),
        store=store,
        runtime=known,
        **{name: thaw(settings[name]) for name in _PLAIN if name in settings},
    )
    agent.compact = compacting(
        spec,
        agent,
        _used,
        lambda given: policy(given, spec.model_name, runtime=known) or FullContext(),
        lambda given: _described(given, known, invokers),
    )
    agent.memory = remembering(spec, agent, _used, {} if memories is None else memories)
    agent.recall = settings.get("recall")
    return agent


# --- what a specification refers to ----------------------------------------------------------------------------------------


def _looked_up(spec: AgentSpec, steps: tuple[str | int, ...], find: Callable[[], _T]) -> _T:
    """Look something up; say in the error where the reference stands."""
    try:
        return find()
    except NotFound as error:
        place = spec.where.place(spec.path(*steps))
        error.hint = f"{error.hint} It stands in {place}.".strip()
        raise


def _used(spec: AgentSpec, steps: tuple[str | int, ...], make: Callable[[], _T]) -> _T:
    """Make something of values; say where they stand when they cannot be used."""
    try:
        return _looked_up(spec, steps, make)
    except (InvalidInput, InfeasibleBudget) as error:
        raise spec.where.fault(spec.path(*steps), error.message, hint=error.hint) from error
    except TypeError as error:
        raise spec.where.fault(spec.path(*steps), f"it cannot be made of this: {error}.") from error


def _prompt(spec: AgentSpec, runtime: Runtime) -> Prompt:
    """Give the system prompt, with the servers, provider's tools and structure of answers of the configuration added to its own."""
    path = spec.system_prompt_path
    prompt = spec.prompt() or _looked_up(spec, ("system_prompt_path",), lambda: runtime.get_prompt(path))
    settings = spec.settings
    added: dict[str, Any] = {}
    if settings.get("mcp_servers"):
        servers = [
            _used(spec, ("mcp_servers", index), lambda each=each: MCP.from_dict(thaw(each)))  # type: ignore[misc]
            for index, each in enumerate(settings["mcp_servers"])
        ]
        added["mcp_servers_list"] = (*prompt.mcp_servers_list, *servers)
    for name in ("addon_args", "metadata"):
        if settings.get(name):
            added[name] = {**getattr(prompt, name), **settings[name]}
    if "format" in settings:
        added["format"] = _used(spec, ("format",), lambda: Format(thaw(settings["format"])))
    return prompt.extend(path=prompt.path, **added) if added else prompt


def _tools(spec: AgentSpec, runtime: Runtime) -> tuple[Function, ...]:
    namespace = spec.system_prompt_path.rpartition(":")[0]
    return tuple(
        _looked_up(spec, ("tools", index), lambda ref=ref: runtime.get_tool(ref, namespace))  # type: ignore[misc]
        for index, ref in enumerate(spec.settings.get("tools", ()))
    )


def _manager(spec: AgentSpec, runtime: Runtime) -> ContextManager | None:
    if spec.context_manager is None:
        return None
    config = thaw(spec.context_manager)
    try:
        return _looked_up(spec, ("context_manager", "type"), lambda: policy(config, spec.model_name, runtime=runtime))
    except (InvalidInput, InfeasibleBudget, TypeError) as error:
        named = [key for key in config if key != "type" and repr(key) in str(error)]
        path = spec.path("context_manager", *(named[:1] or ("type",)))
        what = error.message if isinstance(error, PalaverError) else f"{config['type']!r} does not take this: {error}."
        raise spec.where.fault(path, what, hint=getattr(error, "hint", "")) from error


def _budget(spec: AgentSpec) -> Budget | int | None:
    given = spec.settings.get("budget")
    if given is None or isinstance(given, int):
        return given
    return _used(spec, ("budget",), lambda: Budget.parse(thaw(given), spec.model_name))


def _retry(spec: AgentSpec) -> Retry | None:
    given = spec.settings.get("retry")
    if given is None:
        return None
    if isinstance(given, int):
        return Retry(attempts=given + 1)
    for key in given:
        if key not in _FIGURES:
            raise spec.where.unknown(spec.path("retry", key), _FIGURES)
    return _used(spec, ("retry",), lambda: Retry(**thaw(given)))


def _invoker(spec: AgentSpec, runtime: Runtime, shared: dict[bytes, Invoker]) -> Invoker:
    given = spec.settings.get("invoker", _DEFAULT_INVOKER)
    invoker: Invoker = _used(spec, ("invoker",), lambda: _described(thaw(given), runtime, shared))
    return invoker


def _described(given: Any, runtime: Runtime, shared: dict[bytes, Invoker]) -> Invoker:  # noqa: ANN401 - a name, or a mapping
    """Give the invoker of a description; whatever is described alike is one."""
    described: dict[str, Any] = {"invoker": given} if isinstance(given, str) else {"invoker": _DEFAULT_INVOKER, **given}
    key = canonical_json(described)
    if key not in shared:
        shared[key] = _made(described, runtime)
    return shared[key]


def _made(described: Mapping[str, Any], runtime: Runtime) -> Invoker:
    """Make an invoker: the runtime's own builders come before those that everybody has."""
    name = described["invoker"]
    if name in runtime.invokers():
        invoker: Invoker = runtime.get_invoker(name)(
            {key: value for key, value in described.items() if key != "invoker"}
        )
        return invoker
    return build_invoker(described)
