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
    """An agent with its home folder, the folder to work in, the folders of the programs, and the stand-in of its model."""

    cli: Cli
    folder: Path
    work: Path
    programs: Path
    node: Path
    server: StrictServer
    url: str = ""  # where the agent sends its requests, if not to the stand-in

    def version(self) -> str:
        """Return the agent's version. Raise NotPlayedError if it does not start."""
        return next(word for word in self._ran("--version").split() if word[0].isdigit())

    def played(self, prompt: str, answers: Sequence[Answer], session: str = "") -> list[Mapping[str, Any]]:
        """Give the agent a prompt, in a new session or in `session`, and return the bodies of its requests.

        Raises:
            NotPlayedError: It failed, a request was refused, or it did not ask for all answers.
        """
        waiting: Iterator[Answer] = iter(answers)
        asked: list[Mapping[str, Any]] = []

        def answer(request: HttpRequest) -> NextAnswer:
            if not _is_turn(request.body):
                return NextAnswer(("Drift",))  # a title, or another question aside
            asked.append(request.body)
            return NextAnswer([dict(part) if isinstance(part, Mapping) else part for part in next(waiting, ("More?",))])

        self.server.forget()
        self.server.script.otherwise = answer
        for name, text in self.cli.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(text))
        places = {"{prompt}": [prompt], "{words}": prompt.split(), "{session}": [session]}
        words = self.cli.resume if session else self.cli.begin
        said = ""
        try:
            said = self._ran(*(part for word in words for part in places.get(word, [word])))
        finally:
            refused = [f"{each.status} {each.message}" for each in self.server.refused if _is_turn(each.asked.body)]
            if refused:
                raise NotPlayedError(f"the stand-in refused: {refused[0]}")
        if len(asked) != len(answers):
            raise NotPlayedError(f"it sent {len(asked)} requests instead of {len(answers)}: {said[-300:]}")
        return asked

    def transcript(self) -> Path:
        """Return the agent's newest transcript. Raise NotPlayedError if there is none."""
        found = sorted(self.folder.glob(self.cli.transcripts), key=lambda path: path.stat().st_mtime)
        if not found:
            raise NotPlayedError(f"it wrote no {self.cli.transcripts}")
        return found[-1]

    def _filled(self, text: str) -> str:
        return text.replace("{url}", self.url or self.server.url).replace("{home}", str(self.folder))

    def _ran(self, *words: str) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {name: self._filled(text) for name, text in self.cli.env.items()}  # and nothing of the caller's
        env = {"PATH": f"{self.node}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8", **own}
        command = [str(self.programs / self.cli.binary), *words]
        try:
            done = subprocess.run(
                command,
                cwd=self.work,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotPlayedError(str(error)) from error
        out, wrong = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.returncode:
            last = (wrong.strip() or out.strip() or "nothing").splitlines()[-1]
            raise NotPlayedError(f"it ended with {done.returncode}: {last[:300]}")
        return out


def _is_turn(body: Mapping[str, Any]) -> bool:
    """Return whether a request is a turn of the agent: its tools are offered."""
    items = body.get("input", ())
    return bool(body.get("tools")) or any(item.get("type") == "additional_tools" for item in items)
