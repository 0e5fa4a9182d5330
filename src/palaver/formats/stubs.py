"""What a recording lacks and a provider wants: tool declarations, reconstructed from the calls seen, and marked so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats.events import Loss
from palaver.log import Toolset, ToolSpec

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
        self.calls = 0

    def see(self, name: str, args: object) -> None:
        """Take notice of a call; arguments that are no object count as none."""
        if name:
            self.calls += 1
            self._tools.setdefault(name, _Tool()).see(args if isinstance(args, dict) else {})

    def toolset(self, at: float) -> Toolset | None:
        """Declare the tools in the order in which they were first called; None when no call was seen.

        Args:
            at: The time of the entry, in seconds since 1970-01-01 UTC.
        """
        if not self._tools:
            return None
        specs = tuple(ToolSpec(name=name, parameters=tool.schema(), stub=True) for name, tool in self._tools.items())
        return Toolset(tools=specs, at=at)

    def losses(self, place: str) -> Iterator[Loss]:
        """Report what was reconstructed."""
        if self._tools:
            names = f"{len(self._tools)} tool{'s' * (len(self._tools) != 1)}"
            reason = f"The recording declares no tools: {names} were reconstructed from {self.calls} calls."
            yield Loss(place=place, reason=reason, code="stub")


def no_instructions(place: str) -> Loss:
    """Report that a recording lacks the system instructions; none are invented, since a request is valid without."""
    reason = "The recording lacks the system instructions; the session has none."
    return Loss(place=place, reason=reason, code="stub")
