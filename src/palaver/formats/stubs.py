"""What a recording lacks and a provider wants: tool declarations, reconstructed from the calls seen, and marked so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.events import Loss
from palaver.log import Toolset, ToolSpec
from palaver.messages import freeze
from palaver.plurals import counted

_KINDS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
"""Python's kinds of JSON values and their names in JSON schema (json-schema.org, draft 2020-12, `type`)."""

_MOST_PROPERTIES = 64  # a tool whose calls have more argument names than that takes free-form objects


class _Tool:
    """What the calls of one tool have in common."""

    __slots__ = ("calls", "kinds", "seen")

    def __init__(self) -> None:
        self.calls = 0
        self.kinds: dict[str, set[str]] = {}
        self.seen: dict[str, int] = {}

    def see(self, args: Mapping[str, object]) -> None:
        self.calls += 1
        for name, value in args.items():
            if name not in self.kinds and len(self.kinds) >= _MOST_PROPERTIES:
                continue
            self.kinds.setdefault(name, set()).add(_KINDS.get(type(value), "object"))
            self.seen[name] = self.seen.get(name, 0) + 1

    def schema(self) -> dict[str, object]:
        """Give a schema that every call seen fulfils; an argument is required when every call had it."""
        properties = {name: _typed(kinds) for name, kinds in self.kinds.items()}
        required = [name for name, count in self.seen.items() if count == self.calls]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _typed(kinds: set[str]) -> dict[str, object]:
    if "number" in kinds:
        kinds = kinds - {"integer"}
    names = sorted(kinds)
    return {"type": names[0] if len(names) == 1 else names}


class Stubs:
    """Collects the calls of one agent, and declares its tools from them."""

    def __init__(self) -> None:
        self._tools: dict[str, _Tool] = {}
        self._declared: dict[str, ToolSpec] = {}
        self.calls = 0

    def see(self, name: str, args: object) -> None:
        """Take notice of a call; arguments that are no object count as none."""
        if name:
            self.calls += 1
            self._tools.setdefault(name, _Tool()).see(args if isinstance(args, dict) else {})

    def declare(self, tool: Mapping[str, object]) -> None:
        """Take a declaration that the recording does hold, as providers read them: name, description, parameters; the last one counts."""
        name = fields.text(tool, "name")
        if name:
            spec = ToolSpec(name=name, description=fields.text(tool, "description"))
            parameters = fields.mapping(tool, "parameters") or fields.mapping(tool, "input_schema")
            self._declared[name] = (
                spec.model_copy(update={"parameters": freeze(parameters, "", [])}) if parameters else spec
            )

    def toolset(self, at: float) -> Toolset | None:
        """Declare the tools: those called, in the order of the first calls, then those declared and never called; None without any.

        Args:
            at: The time of the entry, in seconds since 1970-01-01 UTC.
        """
        if not self._tools:
            return None
        called = [
            self._declared.get(name) or ToolSpec(name=name, parameters=tool.schema(), stub=True)
            for name, tool in self._tools.items()
        ]
        uncalled = [spec for name, spec in self._declared.items() if name not in self._tools]
        return Toolset(tools=(*called, *uncalled), at=at)

    def losses(self, place: str) -> Iterator[Loss]:
        """Report what was reconstructed."""
        missing = [name for name in self._tools if name not in self._declared]
        if missing:
            tools, calls = counted(len(missing), "tool"), counted(self.calls, "call")
            reason = f"The recording does not declare {tools}; what is declared was made from {calls}."
            yield Loss(place=place, reason=reason, code="stub", severity="note")


def no_instructions(place: str) -> Loss:
    """Report that a recording lacks the system instructions; none are invented, since a request is valid without."""
    reason = "The recording lacks the system instructions; the session has none."
    return Loss(place=place, reason=reason, code="stub", severity="note")
