"""Configurations: agents described in YAML, merged and checked before anything is built.

Only plain values are read. No tag creates an object, no other file is included, dates and `${...}` are text, and a duplicate key is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, StringConstraints, ValidationError

from palaver.agent.options import AgentOptions
from palaver.errors import InvalidConfig, MissingFile, NotFound
from palaver.messages import thaw

__all__ = [
    "AgentSpec",
    "Config",
    "ConfigPlace",
    "Given",
    "RetrySpec",
    "load_config",
]

Steps: TypeAlias = tuple[str | int, ...]

_DEFAULT_INVOKER = "litellm"


# --- places of values ----------------------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Loads plain values."""

    # a date stays text: JSON has none, and a prompt may begin with one
    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base class has it
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the base's
        keys = [key.value for key, _ in node.value]
        for index, (key, _) in enumerate(node.value):
            if key.value in keys[:index]:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} appears twice", problem_mark=key.start_mark)
        return super().construct_mapping(node, deep=deep)


@dataclass(frozen=True, slots=True)
class ConfigPlace:
    """The file and text of a configuration. Finds the lines of its values.

    Attributes:
        file: The file, or empty.
        text: Its text; empty for a configuration that came as a mapping.
        sections: The sections that can contain a value: its own, then those it inherits from.
    """

    file: str = ""
    text: str = field(default="", repr=False)
    sections: tuple[Steps, ...] = ((),)

    def fault(self, steps: Steps, what: str, close: Iterable[str] = (), hint: str = "") -> InvalidConfig:
        """Return the error for a value that cannot be used."""
        path, line = self._written(steps)
        return InvalidConfig(what, file=self.file, line=line, key=_spelt(path), close=close, hint=hint)

    def words(self, steps: Steps) -> str:
        """Return the place of a value as text, for a hint."""
        path, line = self._written(steps)
        at = f"{self.file}:{line}" if self.file and line else self.file or (f"line {line}" if line else "")
        return ", ".join(filter(None, (at, _spelt(path))))

    def _written(self, steps: Steps) -> tuple[Steps, int]:
        """Return the path and line of a value in the first section that has it, or else in the first section."""
        paths = [(*section, *steps) for section in self.sections]
        found = [(path, *self._find(path)) for path in paths]
        return next(((path, line) for path, depth, line in found if depth > len(path) - len(steps)), found[0][::2])

    def _find(self, path: Steps) -> tuple[int, int]:
        """Return how many steps of a path exist in the text, and the line of the last one (0 without a text)."""
        node = yaml.compose(self.text, Loader=_Loader) if self.text else None
        line = 0 if node is None else node.start_mark.line + 1
        for index, step in enumerate(path):
            if isinstance(node, yaml.MappingNode):
                item = next(((key, value) for key, value in node.value if step == key.value), None)
            else:
                items = node.value if isinstance(node, yaml.SequenceNode) else ()
                item = (items[step], items[step]) if isinstance(step, int) and step < len(items) else None
            if item is None:
                return index, line
            line, node = item[0].start_mark.line + 1, item[1]
        return len(path), line


def _spelt(path: Steps) -> str:
    """Return a path as `agent_configs[1].model_args`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


# --- what an agent's section may say --------------------------------------------------------------------------------------


class _ConfigSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


def _manager(given: object) -> object:
    """Read a context manager. A name is its type, a mapping without a type means `default`, and the type null means None."""
    words = {"type": given} if isinstance(given, str) else given
    if not isinstance(words, dict):
        return words
    words = {"type": "default", **words}
    return None if words["type"] in {None, "null"} else words


def _invoker(given: object) -> object:
    words = {"invoker": given} if isinstance(given, str) else given
    return {"invoker": _DEFAULT_INVOKER, **words} if isinstance(words, dict) else words


def _retry(given: object) -> object:
    return {"attempts": given + 1} if isinstance(given, int) and not isinstance(given, bool) else given


Spec = TypeVar("Spec", bound="_ConfigSection")
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Count = Annotated[int, Field(ge=0)]
Words = dict[str, Any]
InvokerWords = Annotated[Words, BeforeValidator(_invoker)]


class RetrySpec(_ConfigSection):
    """When and how often to retry: the fields of `palaver.providers.Retry`. A plain number is the number of retries."""

    attempts: Annotated[int, Field(ge=1)] = 5
    base: Annotated[float, Field(ge=0)] = 1.0
    cap: Annotated[float, Field(ge=0)] = 30.0
    patience: Annotated[float, Field(ge=0)] = 60.0
    max_elapsed: Annotated[float, Field(gt=0)] = 300.0
    jitter: bool = True


class AgentSpec(_ConfigSection):
    """The configuration of one agent, after merging. Its repr never shows keys and headers.

    Attributes: the keys that docs/how-to/configure.md lists.
    """

    name: Name
    model_name: Name
    system_prompt: Name | None = None
    system_prompt_path: Name | None = None
    model_args: Words = Field(default_factory=dict, repr=False)
    api_type: Literal["completion", "response"] | None = None
    invoker: InvokerWords = Field(default_factory=lambda: {"invoker": _DEFAULT_INVOKER}, repr=False)
    retry: Annotated[RetrySpec | None, BeforeValidator(_retry)] = None
    max_exception_retry: Count = AgentOptions.max_exception_retry
    max_interrupt_steps: Count = AgentOptions.max_interrupt_steps
    max_llm_recall: Count = AgentOptions.max_llm_recall
    context_manager: Annotated[Words | None, BeforeValidator(_manager)] = None
    fallback: Name | None = None
    budget: Any = None
    recall: bool | None = None
    tools: list[Name] = Field(default_factory=list)
    mcp_servers: list[Words] = Field(default_factory=list, repr=False)
    addon_args: Words = Field(default_factory=dict, repr=False)
    format: Words | None = None
    inherit_system_contract: bool = AgentOptions.inherit_system_contract
    parallel_tools: bool = AgentOptions.parallel_tools
    metadata: Words = Field(default_factory=dict)
    _place: ConfigPlace = PrivateAttr(default_factory=ConfigPlace)

    @property
    def place(self) -> ConfigPlace:
        """The place of its values in the configuration."""
        return self._place


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Mapping[str, AgentSpec]):
    """A configuration: the specifications of agents by name, in the order in which they are written.

    Attributes:
        agents: The specifications.
        tactic_type: The tactic that it configures, or empty.
        max_workers: The number of calls of that tactic that run in parallel in a batch.
        place: Its file and text.
    """

    agents: Mapping[str, AgentSpec]
    tactic_type: str = ""
    max_workers: int = 4
    place: ConfigPlace = field(default_factory=ConfigPlace, compare=False, repr=False)

    def __getitem__(self, name: str) -> AgentSpec:
        """Return the specification of an agent.

        Raises:
            NotFound: No agent has this name; the error has close matches.
        """
        if name not in self.agents:
            where = f" in {self.place.file}" if self.place.file else ""
            known = ", ".join(self.agents) or "none"
            raise NotFound(
                name, what=f"agent{where}", close=get_close_matches(name, self.agents), hint=f"Agents: {known}."
            )
        return self.agents[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self.agents)

    def __len__(self) -> int:
        """Return the number of agents."""
        return len(self.agents)


Given: TypeAlias = str | Path | Mapping[str, Any] | Config


# --- loading --------------------------------------------------------------------------------------------------------------


class _Top(_ConfigSection):
    """The top level of a configuration."""

    tactic_type: str = ""
    max_workers: Annotated[int, Field(ge=1)] = 4
    shared: Words | None = Field(default=None, alias="global")
    agent_configs: list[Words]


def load_config(source: Given) -> Config:
    """Read the configuration of agents.

    The section `global` applies to every agent. An agent's own section overrides it: mappings are merged key by key, other values are
    replaced. Nothing is built or looked up; references are resolved when the agents are built.

    Args:
        source: A YAML file; YAML text, which has a line break or begins with `{`; a mapping; or a configuration, which is returned.

    Raises:
        MissingFile: The file does not exist.
        InvalidConfig: The configuration is wrong; the error names file, line, key and similar keys.
    """
    if isinstance(source, Config):
        return source
    value, place = _read(source)
    top = _validated(_Top, value, place)
    shared = top.shared or {}
    if "name" in shared:
        raise place.fault(("global", "name"), "each agent needs its own name.")
    agents: dict[str, AgentSpec] = {}
    for index, section in enumerate(top.agent_configs):
        spec = _spec(section, shared, index, place)
        if spec.name in agents:
            raise place.fault(("agent_configs", index, "name"), f"two agents are called {spec.name!r}.")
        agents[spec.name] = spec
    return Config(
        agents=MappingProxyType(agents), tactic_type=top.tactic_type, max_workers=top.max_workers, place=place
    )


def _spec(section: Words, shared: Words, index: int, place: ConfigPlace) -> AgentSpec:
    path: Steps = ("agent_configs", index)
    if "system_prompt" in section and "system_prompt_path" in section:
        raise place.fault((*path, "system_prompt_path"), "the agent also has a system_prompt; remove one of the two.")
    prompted = "system_prompt" in section or "system_prompt_path" in section
    inherited = {key: value for key, value in shared.items() if not (prompted and key.startswith("system_prompt"))}
    merged = _merged(inherited, section)
    if not merged.keys() & {"system_prompt", "system_prompt_path"}:
        raise place.fault(path, "the agent has no system_prompt or system_prompt_path, and global has none either.")
    own_place = replace(place, sections=(path, ("global",)))
    spec = _validated(AgentSpec, merged, own_place)
    spec._place = own_place  # noqa: SLF001 - of this module
    return spec


def _merged(under: Words, over: Words) -> Words:
    """Merge one mapping over another: mappings are merged key by key, other values are replaced."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        out[key] = _merged(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return out


def _validated(kind: type[Spec], value: Words, place: ConfigPlace) -> Spec:
    """Return a section as a validated model.

    Raises:
        InvalidConfig: A key is unknown or missing, or a value is not valid.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        steps, given = first["loc"], first["input"]
    if first["type"] == "extra_forbidden":
        known = _keys(kind, steps[:-1])
        hint = f"Keys here: {', '.join(known)}."
        if kind is AgentSpec and len(steps) == 1:
            hint += " Parameters of the model go under model_args."
        raise place.fault(steps, "there is no such key.", get_close_matches(str(steps[-1]), known), hint)
    if first["type"] == "missing":
        raise place.fault(steps[:-1], f"{steps[-1]} is missing.")
    shown = type(given).__name__ if isinstance(given, dict | list) else repr(given)[:80]  # these may contain API keys
    raise place.fault(steps, f"it must be {first['msg'].removeprefix('Input should be ')}, not {shown}.")


def _keys(kind: type[BaseModel], steps: Sequence[str | int]) -> list[str]:
    """Return the keys of the section at a path."""
    section = RetrySpec if steps[:1] == ("retry",) else kind
    return sorted(field.alias or name for name, field in section.model_fields.items())


# --- reading --------------------------------------------------------------------------------------------------------------


def _read(source: str | Path | Mapping[str, Any]) -> tuple[Words, ConfigPlace]:
    """Return a configuration as plain values, and its place."""
    if isinstance(source, Mapping):
        value, place = thaw(source), ConfigPlace()
    else:
        file, text = _text(source)
        value, place = _parsed(file, text), ConfigPlace(file, text)
    if not isinstance(value, dict):
        raise place.fault((), "a configuration must be a mapping.")
    return value, place


def _text(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return "", source
    path = Path(source)
    try:
        return str(path), path.read_text(encoding="utf-8")
    except FileNotFoundError:
        names = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        near = [str(path.with_name(name)) for name in get_close_matches(path.name, names)]
        raise MissingFile(str(path), what="configuration file", close=near) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"it cannot be read: {error}.", file=str(path)) from error


def _parsed(file: str, text: str) -> object:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InvalidConfig(f"it is not YAML: {what}.", file=file, line=mark.line + 1 if mark else 0) from error
