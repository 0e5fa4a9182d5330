"""The declaration of an MCP server. `palaver.tools.mcp` connects to it and needs the extra `mcp`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from palaver.errors import InvalidInput
from palaver.messages.frozen import EMPTY

RequireApproval: TypeAlias = Literal["never", "manual", "auto", "always"] | Collection[str] | Mapping[str, Any]
"""`never`; `manual`, `auto` or `always`; the names of the tools that need it; or OpenAI's mapping `{"always": {"tool_names": [...]}}`.

`manual` and `auto` are LLLM's names. With both, every call needs a decision: an approver makes it at once (`auto`), or the turn waits for
a person (`manual`).
"""

_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS = frozenset({"never", "manual", "auto", "always"})
_HIDDEN = "***"


@dataclass(frozen=True)
class MCP:
    """A server of tools: a program that uses its standard input and output, or an address.

    Attributes:
        server_label: Its name here: letters, digits, `_` and `-`.
        server_url: The address of a server that speaks streamable HTTP.
        command: The program of a server that uses standard input and output. Set either this or the address.
        args: The program's arguments.
        env: Variables of the program's environment besides PATH, HOME and the like. Never shown and never logged.
        headers: Headers of each HTTP request, such as `Authorization`. Never shown and never logged.
        require_approval: The tools that a person must approve before they run.
        allowed_tools: The tools to offer; None for all.
        prefix: Whether every tool's name begins with the label; otherwise only clashing names do.
        cwd: The folder in which the program runs; None for this process's own.
        timeout: Seconds after which a call is abandoned; None for no limit.
        connect_timeout: Seconds within which the server must answer a connection.
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
        """Check the declaration.

        Raises:
            InvalidInput: The label is invalid, there is not exactly one of address and program, or a field has the wrong type.
        """
        if not _LABEL.fullmatch(self.server_label):
            raise InvalidInput(
                f"The label {self.server_label!r} is not allowed for an MCP server.",
                hint="Use letters, digits, _ and -.",
            )
        if (self.server_url is None) == (self.command is None):
            raise InvalidInput(f"The MCP server {self.server_label!r} needs either a server_url or a command.")
        if isinstance(self.args, str) or isinstance(self.allowed_tools, str):
            raise InvalidInput(f"args and allowed_tools of {self.server_label!r} are lists, not a text.")
        if isinstance(self.require_approval, str) and self.require_approval not in _WORDS:
            raise InvalidInput(
                f"require_approval of {self.server_label!r} is {self.require_approval!r}.",
                hint=f"Use one of {', '.join(sorted(_WORDS))}, or the names of tools.",
            )
        object.__setattr__(self, "args", tuple(self.args))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> MCP:
        """Read a declaration from a configuration; it may contain `type: mcp`.

        Raises:
            InvalidInput: A field does not exist or is missing.
        """
        given = {name: value for name, value in fields.items() if not (name == "type" and value == "mcp")}
        unknown = sorted(given.keys() - cls.__dataclass_fields__.keys() | given.keys() & {"_"})
        if unknown:
            raise InvalidInput(
                f"An MCP server has no field {unknown[0]!r}.", hint=f"Fields: {', '.join(cls.__match_args__)}…"
            )
        if "server_label" not in given:
            raise InvalidInput("An MCP server needs a server_label.")
        return cls(**given)

    @property
    def address(self) -> str:
        """Its address without user, password and query, or its program without arguments."""
        if self.server_url is None:
            return str(self.command)
        parts = urlsplit(self.server_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def needs_approval(self, tool: str) -> bool:
        """Return whether a person must approve a call of this tool. A mapping that does not name the tool means yes."""
        asked = self.require_approval
        if isinstance(asked, str):
            return asked != "never"
        if not isinstance(asked, Mapping):
            return tool in asked
        if tool in (asked.get("never") or {}).get("tool_names", ()):
            return False
        return "always" not in asked or tool in (asked.get("always") or {}).get("tool_names", ())

    def without_secrets(self, text: str) -> str:
        """Return a text, such as what the server printed, with the values of environment and headers hidden."""
        secrets = {value for value in (*self.env.values(), *self.headers.values()) if len(value) >= len(_HIDDEN)}
        secrets |= {last for value in self.headers.values() if len(last := value.rpartition(" ")[2]) >= len(_HIDDEN)}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text

    def __repr__(self) -> str:
        """Show the declaration without secrets: only the names of environment variables and headers."""
        named = [
            f"{what}={sorted(values)}" for what, values in (("env", self.env), ("headers", self.headers)) if values
        ]
        return f"MCP({', '.join([repr(self.server_label), repr(self.address), *named])})"
