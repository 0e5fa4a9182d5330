"""The command-line agents: how each is started without a network, what the stand-in for its model answers, where it puts its transcript."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.testing import strict
from palaver.testing.strict import StrictServer

KEY = "sk-fake"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""An image of one pixel."""

COMMAND = "printf 'one\\nzwei \\303\\244\\n'; printf 'three\\n' >&2; exit 3"
"""A command with two lines, a letter beyond ASCII, an error stream and a status."""

Answer = Sequence[Mapping[str, Any] | str]
"""The content of an answer, in the form of the API."""


@dataclass(frozen=True, kw_only=True)
class Cli:
    """One agent.

    Attributes:
        name: palaver's name of its format.
        title: Its name.
        package: Its package on npm.
        binary: Its program.
        dialect: The dialect of the requests that it sends here.
        serve: Returns the stand-in of its API.
        thought: Returns a block of thinking.
        call: Returns a call of a tool: the shell command, or the reading of a file.
        begin: Its arguments for a prompt.
        resume: Its arguments for a prompt in a session, whose id is `{session}`; empty where palaver writes no transcript for it.
        env: Its environment: `{url}` is the stand-in's, `{home}` its home folder.
        files: Files of its home folder that must be there, as for `env`.
        transcripts: The pattern of its transcripts in its home folder.
    """

    name: str
    title: str
    package: str
    binary: str
    dialect: str
    serve: Callable[[], StrictServer]
    thought: Callable[[str], Mapping[str, Any]]
    call: Callable[[str, Path | None], Mapping[str, Any]]
    begin: Sequence[str]
    resume: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    transcripts: str

    def opening(self, image: Path) -> list[Answer]:
        """Return the answers to a first prompt: two calls at once, a call alone, a text."""
        look = (self.thought("Let me look."), "I look.", self.call(COMMAND, None), self.call("", image))
        return [look, (self.thought("A pixel."), self.call("echo two", None)), (self.thought("Done."), "All done.")]

    def going_on(self) -> list[Answer]:
        """Return the answers to a prompt in a resumed session: a call, a text."""
        return [(self.thought("More."), self.call("echo more", None)), ("Went on.",)]


def _claude_thought(text: str) -> Mapping[str, Any]:
    return {"type": "thinking", "thinking": text}


def _anthropic_call(shell: str, read: str, path: str, **more: str) -> Callable[[str, Path | None], Mapping[str, Any]]:
    """Return what makes calls of an agent's two tools: the names of its shell and of its reader, and the argument with the path."""

    def call(command: str, image: Path | None) -> Mapping[str, Any]:
        if image is None:
            return {"type": "tool_use", "name": shell, "input": {"command": command, **more}}
        return {"type": "tool_use", "name": read, "input": {path: str(image)}}

    return call


def _codex_call(command: str, image: Path | None) -> Mapping[str, Any]:
    """Return a call of Codex's one tool, which runs JavaScript."""
    script = f"const said = await tools.exec_command({json.dumps({'cmd': command})}); text(said.output ?? said);"
    if image is not None:
        url = f"data:image/png;base64,{base64.b64encode(image.read_bytes()).decode()}"
        script = f"image({json.dumps(url)});"
    return {"type": "custom_tool_call", "name": "exec", "input": script}


def _gemini_call(command: str, image: Path | None) -> Mapping[str, Any]:
    if image is None:
        return {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
    return {"functionCall": {"name": "read_file", "args": {"file_path": str(image)}}}


_CLAUDE = "claude-opus-4-8"
_CODEX_CONFIG = """
model = "gpt-5.6-sol"
model_provider = "stand-in"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "{url}"
wire_api = "responses"
env_key = "FAKE_KEY"
"""
_GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}
_OPENCODE_CONFIG = {
    "autoupdate": False,
    "share": "disabled",
    "permission": "allow",
    "enabled_providers": ["anthropic"],
    "provider": {"anthropic": {"options": {"baseURL": "{url}/v1", "apiKey": KEY}}},
}
_CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_PI = ("-p", "--offline", "--model", f"anthropic/{_CLAUDE}", "--thinking", "high")
_CLAUDE_CODE = ("--model", _CLAUDE, "--dangerously-skip-permissions", "-p", "{prompt}")


def _anthropic() -> StrictServer:
    # accounts of before: a session that continues in another tool has another system prompt
    return strict.anthropic(new_account=False)


CLIS: tuple[Cli, ...] = (
    Cli(
        name="claude-code",
        title="Claude Code",
        package="@anthropic-ai/claude-code",
        binary="claude",
        dialect="anthropic",
        serve=_anthropic,
        thought=_claude_thought,
        call=_anthropic_call("Bash", "Read", "file_path", description="Run it"),
        begin=_CLAUDE_CODE,
        resume=("--resume", "{session}", *_CLAUDE_CODE),
        env={
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",
        },
        transcripts=".claude/projects/*/*.jsonl",
    ),
    Cli(
        name="codex",
        title="Codex",
        package="@openai/codex",
        binary="codex",
        dialect="openai-responses",
        serve=strict.openai_responses,
        thought=lambda text: {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]},
        call=_codex_call,
        begin=(*_CODEX, "{prompt}"),
        resume=("exec", "resume", *_CODEX[1:], "{session}", "{prompt}"),
        env={"CODEX_HOME": "{home}/.codex", "FAKE_KEY": KEY},
        files={".codex/config.toml": _CODEX_CONFIG},
        transcripts=".codex/sessions/*/*/*/*.jsonl",
    ),
    Cli(
        name="pi",
        title="pi",
        package="@earendil-works/pi-coding-agent",
        binary="pi",
        dialect="anthropic",
        serve=_anthropic,
        thought=_claude_thought,
        call=_anthropic_call("bash", "read", "path"),
        begin=(*_PI, "{prompt}"),
        resume=(*_PI, "--session", "{session}", "{prompt}"),
        env={"ANTHROPIC_API_KEY": KEY, "PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
        files={".pi/agent/models.json": json.dumps({"providers": {"anthropic": {"baseUrl": "{url}"}}})},
        transcripts=".pi/agent/sessions/*/*.jsonl",
    ),
    Cli(
        name="gemini-cli",
        title="Gemini CLI",
        package="@google/gemini-cli",
        binary="gemini",
        dialect="gemini",
        serve=strict.gemini,
        thought=lambda text: {"text": f"**Look** {text}", "thought": True},
        call=_gemini_call,
        begin=("--yolo", "--skip-trust", "-m", "gemini-3.1-pro-preview", "-p", "{prompt}"),
        env={"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "{url}"},
        files={".gemini/settings.json": json.dumps(_GEMINI_SETTINGS)},
        transcripts=".gemini/tmp/*/chats/*.json*",
    ),
    Cli(
        name="opencode",
        title="OpenCode",
        package="opencode-ai",
        binary="opencode",
        dialect="anthropic",
        serve=_anthropic,
        thought=_claude_thought,
        call=_anthropic_call("bash", "read", "filePath", description="Run it"),
        begin=("run", "--model", f"anthropic/{_CLAUDE}", "--variant", "high", "--", ""),
        env={
            "ANTHROPIC_API_KEY": KEY,
            "OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE_CONFIG),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
        transcripts=".local/share/opencode/opencode.db",
    ),
)

if __name__ == "__main__":
    sys.stdout.writelines(f"{cli.package}@latest\n" for cli in CLIS)
