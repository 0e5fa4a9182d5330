"""Specifications: what a configuration says of each agent, merged and checked, before anything is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from palaver.agent.config.fields import FIELDS, check, renamed
from palaver.agent.config.reading import Read, Steps, Where, read
from palaver.errors import InvalidInput, NotFound
from palaver.messages.frozen import EMPTY, FrozenDict
from palaver.prompts import Prompt

__all__ = ["AgentSpec", "Config", "load_config"]

_TOP = frozenset({"tactic_type", "global", "agent_configs", "max_workers"})
_SHARED_AT_THE_TOP = frozenset({"invoker", "retry"})
"""Keys of agents that may also stand at the top, for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """What a configuration says of one agent. JSON values, read-only.

    Attributes:
        name: The agent's name.
        model_name: The model.
        system_prompt: The system prompt's template; empty when it is registered.
        system_prompt_path: The path of a registered system prompt; empty when the template stands here.
        context_manager: The configuration of the context manager, with its `type`; None for none.
        settings: Everything else, by the words of the configuration. Never shown: keys and headers may be among it.
        where: Where the configuration stands.
        paths: Where the agent's own section stands in it, and then what it inherits from, the nearest first.
    """

    name: str
    model_name: str
    system_prompt: str = ""
    system_prompt_path: str = ""
    context_manager: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default=EMPTY, repr=False)
    where: Where = field(default_factory=Where, compare=False, repr=False)
    paths: tuple[Steps, ...] = field(default=(), compare=False, repr=False)

    def path(self, *steps: str | int) -> Steps:
        """Give the path under which one of its values was written: its own section's, or that of what it inherited it from."""
        for section in self.paths:
            for end in range(len(steps), 0, -1):
                if (*section, *steps[:end]) in self.where.lines:
                    return (*section, *steps)
        return (*self.paths[0], *steps) if self.paths else steps

    def prompt(self) -> Prompt | None:
        """Give the prompt that is written in the configuration; None when it is a registered one.

        Raises:
            InvalidConfig: It is no template.
        """
        if not self.system_prompt:
            return None
        try:
            return Prompt(path=f"{self.name}/system", prompt=self.system_prompt)
        except InvalidInput as error:
            raise self.where.fault(self.path("system_prompt"), error.message, hint=error.hint) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Mapping[str, AgentSpec]):
    """A configuration: the specifications of agents by name, in the order in which they are written.

    Attributes:
        agents: The specifications.
        tactic_type: The tactic it is for; empty for none.
        max_workers: Calls of that tactic that run at a time in a batch.
        where: Where it stands.
    """

    agents: Mapping[str, AgentSpec]
    tactic_type: str = ""
    max_workers: int = 4
    where: Where = field(default_factory=Where, compare=False, repr=False)

    def __getitem__(self, name: str) -> AgentSpec:
        """Give one of them.

        Raises:
            NotFound: There is none of this name; the error has close matches.
        """
        if name not in self.agents:
            near = get_close_matches(name, self.agents)
            where = f" in {self.where.file}" if self.where.file else ""
            known = ", ".join(self.agents) or "none"
            raise NotFound(name, what=f"agent{where}", close=near, hint=f"There are: {known}.")
        return self.agents[name]

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self.agents)

    def __len__(self) -> int:
        """Count them."""
        return len(self.agents)


def load_config(source: str | Path | Mapping[str, Any] | Config) -> Config:
    """Read the configuration of agents.

    What stands under `global` holds for every agent; what an agent says is merged over it, mappings member by member, anything else as a
    whole. Nothing is built, and nothing is looked up: references are resolved when the agents are built.

    Args:
        source: A YAML file; a text of YAML, which has a line break or begins with `{`; a mapping; or a configuration, which is given back.

    Raises:
        NotFound: There is no such file.
        InvalidConfig: It cannot be used; the error names file, line and key, and what is close.
    """
    if isinstance(source, Config):
        return source
    found = read(source)
    value, where = found.value, found.where
    for key in value:
        if key not in _TOP | _SHARED_AT_THE_TOP:
            raise where.unknown((key,), _TOP | _SHARED_AT_THE_TOP)
    shared = _shared(found)
    agents: dict[str, AgentSpec] = {}
    for index, section in enumerate(_sections(found)):
        spec = _spec(section, shared, index, where)
        if spec.name in agents:
            raise where.fault(("agent_configs", index, "name"), f"there are two agents called {spec.name!r}.")
        agents[spec.name] = spec
    return Config(
        agents=MappingProxyType(agents),
        tactic_type=_top(found, "tactic_type", "", str, "a text"),
        max_workers=_workers(found),
        where=where,
    )


def _top(found: Read, key: str, default: Any, kind: type, words: str) -> Any:  # noqa: ANN401 - a value of that kind
    value = found.value.get(key, default)
    if not isinstance(value, kind):
        raise found.where.fault((key,), f"it must be {words}, not {value!r}.")
    return value


def _workers(found: Read) -> int:
    workers: int = _top(found, "max_workers", 4, int, "a whole number")
    if isinstance(workers, bool) or workers < 1:
        raise found.where.fault(("max_workers",), f"it must be at least 1, not {workers!r}.")
    return workers


def _shared(found: Read) -> dict[str, Any]:
    """Give what holds for every agent."""
    given = found.value.get("global")
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise found.where.fault(("global",), "it must be a mapping.")
    top = {key: found.value[key] for key in sorted(_SHARED_AT_THE_TOP) if key in found.value}
    check(top, (), found.where)
    check(given, ("global",), found.where)
    if "name" in given:
        raise found.where.fault(("global", "name"), "every agent has a name of its own.")
    return _merged(top, renamed(given, ("global",), found.where))


def _sections(found: Read) -> Sequence[Any]:
    given = found.value.get("agent_configs")
    if given is None:
        raise found.where.fault((), "agent_configs is missing: the list of agents.")
    if not isinstance(given, list):
        raise found.where.fault(("agent_configs",), "it must be a list of mappings, each with a name.")
    return given


def _spec(section: object, shared: Mapping[str, Any], index: int, where: Where) -> AgentSpec:
    path: Steps = ("agent_configs", index)
    if not isinstance(section, dict):
        raise where.fault(path, "an agent is a mapping with a name.")
    check(section, path, where)
    own = renamed(section, path, where)
    if "name" not in own:
        raise where.fault(path, "the agent has no name.")
    if "system_prompt" in own and "system_prompt_path" in own:
        raise where.fault((*path, "system_prompt_path"), "there is a system_prompt already.")
    prompted = own.keys() & {"system_prompt", "system_prompt_path"}
    inherited = {key: value for key, value in shared.items() if not (prompted and key.startswith("system_prompt"))}
    merged = _merged(inherited, own)
    for key in ("model_name", *(() if merged.keys() & {"system_prompt", "system_prompt_path"} else ("system_prompt",))):
        if key not in merged:
            either = "system_prompt or system_prompt_path" if key == "system_prompt" else key
            raise where.fault(path, f"the agent {own['name']!r} has no {either}, and global has none either.")
    named = {
        key: merged.pop(key) for key in ("name", "model_name", "system_prompt", "system_prompt_path") if key in merged
    }
    manager = _manager(merged.pop("context_manager", None))
    spec = AgentSpec(
        **named,
        context_manager=None if manager is None else FrozenDict(manager),
        settings=FrozenDict({key: merged[key] for key in FIELDS if key in merged}),
        where=where,
        paths=(path, ("global",), ()),
    )
    spec.prompt()
    return spec


def _manager(given: object) -> dict[str, Any] | None:
    """Give the configuration of a context manager with its type; None where it is switched off.

    A name alone is the type; a mapping without a type is `default`; a type of null is none at all.
    """
    if given is None:
        return None
    words = {"type": given} if isinstance(given, str) else {"type": "default", **dict(given)}  # type: ignore[call-overload]
    return None if words["type"] is None or words["type"] == "null" else words


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Put one mapping over another: mappings are merged member by member, anything else is replaced."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            out[key] = _merged(below, value)
        else:
            out[key] = value
    return out
