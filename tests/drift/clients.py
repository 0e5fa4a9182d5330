"""The command-line agents of agents.toml, and what the stand-ins answer them."""

from __future__ import annotations

import base64
import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.testing import strict
from palaver.testing.strict import StrictServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""An image of one pixel."""

COMMAND = "printf 'one\\nzwei \\303\\244\\n'; printf 'three\\n' >&2; exit 3"
"""A command with two lines, a letter beyond ASCII, an error stream and a status."""

Answer = Sequence[Mapping[str, Any] | str]  # the content of an answer, in the form of the API

SERVERS: Mapping[str, Callable[[], StrictServer]] = {
    # accounts of before: a session that continues in another tool has another system prompt
    "anthropic": lambda: strict.anthropic(new_account=False),
    "openai-responses": strict.openai_responses,
    "gemini": strict.gemini,
}
"""The stand-in of each API."""


@dataclass(frozen=True, kw_only=True)
class Cli:
    """One agent, as agents.toml describes it. `name` is palaver's name of its format."""

    name: str
    title: str
    package: str
    binary: str
    dialect: str
    tools: Mapping[str, str]
    begin: Sequence[str]
    resume: Sequence[str] = ()
    transcripts: str
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def opening(self, image: Path) -> list[Answer]:
        """Return the answers to a first prompt: two calls at once, a call alone, a text."""
        look = (self._thought("Let me look."), "I look.", self._shell(COMMAND), self._read(image))
        return [look, (self._thought("A pixel."), self._shell("echo two")), (self._thought("Done."), "All done.")]

    def working(self, image: Path, calls: int) -> list[Answer]:
        """Return the answers to a prompt that takes so many calls."""
        *begun, done = self.opening(image)
        more = [(f"Step {number}.", self._shell(f"echo {number}")) for number in range(calls - len(begun) - 1)]
        return [*begun, *more, done]

    def going_on(self) -> list[Answer]:
        """Return the answers to a prompt in a resumed session: a call, a text."""
        return [(self._thought("More."), self._shell("echo more")), ("Went on.",)]

    def _thought(self, text: str) -> Mapping[str, Any]:
        if self.dialect == "anthropic":
            return {"type": "thinking", "thinking": text}
        if self.dialect == "gemini":
            return {"text": f"**Look** {text}", "thought": True}
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}

    def _shell(self, command: str) -> Mapping[str, Any]:
        if not self.tools:
            asked = json.dumps({"cmd": command})
            return _script(f"const said = await tools.exec_command({asked}); text(said.output ?? said);")
        about = {name: text for name, text in self.tools.items() if name == "description"}
        return self._call(self.tools["shell"], {"command": command, **about})

    def _read(self, image: Path) -> Mapping[str, Any]:
        if not self.tools:
            url = f"data:image/png;base64,{base64.b64encode(image.read_bytes()).decode()}"
            return _script(f"image({json.dumps(url)});")
        return self._call(self.tools["read"], {self.tools["path"]: str(image)})

    def _call(self, name: str, args: Mapping[str, str]) -> Mapping[str, Any]:
        if self.dialect == "gemini":
            return {"functionCall": {"name": name, "args": args}}
        return {"type": "tool_use", "name": name, "input": args}


def _script(text: str) -> Mapping[str, Any]:
    return {"type": "custom_tool_call", "name": "exec", "input": text}


CLIS = tuple(
    Cli(name=name, **about)
    for name, about in tomllib.loads(Path(__file__).with_name("agents.toml").read_text()).items()
)
"""The agents."""

if __name__ == "__main__":
    sys.stdout.writelines(f"{cli.package}@latest\n" for cli in CLIS)
