"""What a program says of an MCP server. Needs nothing but palaver; `palaver.tools.mcp` connects to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from palaver.errors import InvalidInput
from palaver.messages.frozen import EMPTY

__all__ = ["MCP", "RequireApproval"]

RequireApproval: TypeAlias = Literal["never", "always"] | Collection[str] | Mapping[str, Any]
"""`never`, `always`, the names of the tools that need it, or the mapping of OpenAI's hosted MCP tool: `{"always": {"tool_names": […]}}`."""

_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_HIDDEN = "***"


@dataclass(frozen=True)
class MCP:
    """A server of tools: a program that is started and spoken to over its standard input and output, or an address that is there already.

    Attributes:
        server_label: What it is called here: letters, digits, `_` and `-`.
        server_url: The address of a server that speaks streamable HTTP.
        command: The program of one that speaks over standard input and output; either this or the address.
        args: The program's arguments.
        env: What its environment has besides PATH, HOME and the like. Never shown and never logged.
        headers: What each HTTP request has besides its own, such as `Authorization`. Never shown and never logged.
        require_approval: Which tools somebody must agree to before they run.
        allowed_tools: The tools that are offered; None for all.
        prefix: Whether every tool's name begins with the label; otherwise those do that clash with another.
        cwd: The folder in which the program runs; None for this process's own.
        timeout: Seconds after which a call is given up; None for no limit.
        connect_timeout: Seconds within which the server must have answered when it is connected to.
    """

    server_label: str
    server_url: str | None = None
    command: str | None = None
    args: Sequence[str] = ()
    _: KW_ONLY
    env: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    require_approval: RequireApproval = "never"
    allowed_tools: Collection[str] | None = None
    prefix: bool = False
    cwd: str | None = None
    timeout: float | None = None
    connect_timeout: float = 30.0

    def __post_init__(self) -> None:
        """Check that it can be meant.

        Raises:
            InvalidInput: The label is none, or there is not exactly one of address and program.
        """
        if not _LABEL.fullmatch(self.server_label):
            raise InvalidInput(
                f"An MCP server cannot be called {self.server_label!r}.", hint="Use letters, digits, _ and -."
            )
        if (self.server_url is None) == (self.command is None):
            raise InvalidInput(f"The MCP server {self.server_label!r} needs either a server_url or a command.")
        if isinstance(self.args, str) or isinstance(self.allowed_tools, str):
            raise InvalidInput(f"args and allowed_tools of {self.server_label!r} are lists, not a text.")
        if isinstance(self.require_approval, str) and self.require_approval not in {"never", "always"}:
            raise InvalidInput(
                f"require_approval of {self.server_label!r} is {self.require_approval!r}: never, always or tools' names."
            )
        object.__setattr__(self, "args", tuple(self.args))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> MCP:
        """Read a declaration, such as a configuration has it; a `type` of `mcp` may stand in it.

        Raises:
            InvalidInput: It has a field that a server has not, or lacks one.
        """
        given = {name: value for name, value in fields.items() if not (name == "type" and value == "mcp")}
        unknown = sorted(given.keys() - cls.__dataclass_fields__.keys() | given.keys() & {"_"})
        if unknown:
            raise InvalidInput(
                f"An MCP server has no {unknown[0]!r}.", hint=f"It has: {', '.join(cls.__match_args__)}…"
            )
        if "server_label" not in given:
            raise InvalidInput("An MCP server needs a server_label.")
        return cls(**given)

    @property
    def address(self) -> str:
        """Where it is, without what may be secret: user, password and query of the address, and the program's arguments."""
        if self.server_url is None:
            return str(self.command)
        parts = urlsplit(self.server_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def needs_approval(self, tool: str) -> bool:
        """Say whether somebody must agree before this tool runs; what a mapping does not name needs it."""
        asked = self.require_approval
        if isinstance(asked, str):
            return asked == "always"
        if not isinstance(asked, Mapping):
            return tool in asked
        never = asked.get("never") or {}
        if tool in never.get("tool_names", ()):
            return False
        return "always" not in asked or tool in (asked.get("always") or {}).get("tool_names", ())

    def without_secrets(self, text: str) -> str:
        """Hide the values of environment and headers in a text, such as what the server printed."""
        secrets = {value for value in (*self.env.values(), *self.headers.values()) if len(value) >= len(_HIDDEN)}
        secrets |= {last for value in self.headers.values() if len(last := value.rpartition(" ")[2]) >= len(_HIDDEN)}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text

    def __repr__(self) -> str:
        """Show it without its secrets: of environment and headers the names only."""
        named = [
            f"{what}={sorted(values)}" for what, values in (("env", self.env), ("headers", self.headers)) if values
        ]
        return f"MCP({', '.join([repr(self.server_label), repr(self.address), *named])})"
