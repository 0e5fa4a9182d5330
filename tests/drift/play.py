"""Play one prompt with an agent in a home folder of its own, and note the requests that it sends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.testing.strict import HttpRequest, NextAnswer, StrictServer
from tests.drift.clients import Answer, Cli

SECONDS = 120
"""How long an agent may take for a prompt."""


class NotPlayedError(Exception):
    """An agent did not start, or did not play its part. The message says why."""


@dataclass(frozen=True)
class Home:
    """A home folder, the folder to work in, the folders of the programs, and the stand-in of the model."""

    folder: Path
    work: Path
    programs: Path
    node: Path
    server: StrictServer

    def env(self, cli: Cli) -> dict[str, str]:
        """Return the environment of an agent: nothing of the caller's."""
        own = {name: self._filled(text) for name, text in cli.env.items()}
        paths = f"{self.node}:/usr/local/bin:/usr/bin:/bin"
        return {"PATH": paths, "HOME": str(self.folder), "LANG": "C.UTF-8", "TERM": "xterm-256color", **own}

    def write(self, cli: Cli) -> None:
        """Write the agent's settings."""
        for name, text in cli.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(text))

    def _filled(self, text: str) -> str:
        return text.replace("{url}", self.server.url).replace("{home}", str(self.folder))

    def transcript(self, cli: Cli) -> Path:
        """Return the agent's newest transcript.

        Raises:
            NotPlayedError: There is none.
        """
        found = sorted(self.folder.glob(cli.transcripts), key=lambda path: path.stat().st_mtime)
        if not found:
            raise NotPlayedError(f"it wrote no {cli.transcripts}")
        return found[-1]


def version(cli: Cli, home: Home) -> str:
    """Return an agent's version.

    Raises:
        NotPlayedError: It does not start.
    """
    said = _ran([str(home.programs / cli.binary), "--version"], home, home.env(cli))
    return said.split()[-1] if cli.name == "codex" else said.split()[0]


def played(cli: Cli, home: Home, prompt: str, answers: Sequence[Answer], session: str = "") -> list[Mapping[str, Any]]:
    """Give an agent a prompt, in a new session or one that is there, and return the bodies of its requests.

    Args:
        cli: The agent.
        home: Its home folder.
        prompt: The prompt.
        answers: The model's answers.
        session: The session to resume; empty for a new one.

    Raises:
        NotPlayedError: It failed, a request was refused, or it did not ask for all answers.
    """
    waiting: Iterator[Answer] = iter(answers)
    asked: list[Mapping[str, Any]] = []

    def answer(request: HttpRequest) -> NextAnswer:
        if not _is_turn(request.body):
            return NextAnswer(("Drift",))  # a title, or another question aside
        asked.append(request.body)
        return NextAnswer(tuple(next(waiting, ("Nothing more.",))))  # type: ignore[arg-type]

    server = home.server
    server.forget()
    server.script.otherwise = answer
    home.write(cli)
    words = [word.format(prompt=prompt, session=session) for word in (cli.resume if session else cli.begin)]
    words = [part for word in words for part in (prompt.split() if word == "" else [word])]
    said = ""
    try:
        said = _ran([str(home.programs / cli.binary), *words], home, home.env(cli))
    finally:
        refused = [f"{each.status} {each.message}" for each in server.refused if _is_turn(each.asked.body)]
        if refused:
            raise NotPlayedError(f"the stand-in refused: {refused[0]}")
    if len(asked) != len(answers):
        raise NotPlayedError(f"it sent {len(asked)} requests instead of {len(answers)}: {said[-300:]}")
    return asked


def _is_turn(body: Mapping[str, Any]) -> bool:
    """Return whether a request is a turn of the agent: its tools are offered."""
    items = body.get("input", ())
    return bool(body.get("tools")) or any(item.get("type") == "additional_tools" for item in items)


def _ran(command: Sequence[str], home: Home, env: Mapping[str, str]) -> str:
    home.folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, cwd=home.work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotPlayedError(str(error)) from error
    out, wrong = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode:
        last = (wrong.strip() or out.strip() or "nothing").splitlines()[-1]
        raise NotPlayedError(f"it ended with {done.returncode}: {last[:300]}")
    return out
