"""Check that the frameworks of our users can be installed beside palaver with each of its extras, in the release that they would have alone.

    .venv/bin/python tools/resolve.py [FRAMEWORK ...]

A floor or a pin of ours that is too strict shows here: the resolver then takes an old release of the framework, or finds none.
A floor that is too low shows in `./run floor`. The resolver picks nothing below it.
Nothing is installed. The exit status is 1 where a framework does not fit, unless `APART` says why; and where it says so of one that fits.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"
_AT_ONCE = 8

FRAMEWORKS = (
    "google-adk",
    "crewai",
    "semantic-kernel",
    "strands-agents",
    "langgraph",
    "openai-agents",
    "pydantic-ai",
    "agent-framework",
    "claude-agent-sdk",
    "aider-chat",
)

APART: dict[tuple[str, str], str] = {
    ("crewai", "mcp"): "it needs mcp 1, whose client has another interface",
    ("semantic-kernel", "mcp"): "it needs mcp 1, whose client has another interface",
    ("aider-chat", "mcp"): "it needs mcp 1, whose client has another interface",
    **{
        ("aider-chat", extra): "it pins every package that it needs, to releases older than the framework's"
        for extra in ("openai-agents", "langchain", "pydantic-ai", "google-adk")
    },
    ("pydantic-ai", "pydantic-ai"): "the resolver takes its slim package first, whose newest release is newer",
    ("crewai", "openai-agents"): "it needs openai 2, and the Agents SDK openai 3",
    ("agent-framework", "strands"): "it needs mcp from 2.2 on, and Strands one before; the framework's core fits",
    ("crewai", "google-adk"): "it needs OpenTelemetry's SDK from 1.45 on, and the kit one up to 1.44",
}
"""Frameworks and extras that do not fit together, and why. A pair that fits has no place here."""


def uv() -> str:
    """Return the path of uv: beside this interpreter, or on the path."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        sys.exit("resolve: uv is missing. Install it with: pip install uv.")
    return found


def resolved(framework: str, *ours: str) -> str:
    """Return the release of a framework that the resolver picks, or an empty text where it finds no solution."""
    done = subprocess.run(  # noqa: S603 - our own arguments
        [uv(), "pip", "compile", "--quiet", "--python-version", PYTHON, "--no-header", "--no-annotate", *ours, "-"],
        input=framework,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(rf"^{re.escape(framework)}==(\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else ""


def distribution() -> tuple[str, tuple[str, ...]]:
    """Return the name of our distribution and those of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["name"], tuple(project["optional-dependencies"])


def main() -> None:
    """Print one line for each framework by itself, and one for each extra beside which it is another release."""
    frameworks = sys.argv[1:] or FRAMEWORKS
    name, known = distribution()
    project = str(ROOT / "pyproject.toml")

    def beside(framework: str, *extras: str) -> str:
        """Return the release of a framework that is picked beside us with some extras."""
        return resolved(framework, project, *(word for extra in extras for word in ("--extra", extra)))

    def differing(framework: str, release: str, extras: Sequence[str]) -> dict[str, str]:
        """Return the release beside each extra that changes it; those that ask for no less together are asked once."""
        chosen = beside(framework, *extras) if extras else release
        if chosen == release:
            return {}
        if len(extras) == 1:
            return {extras[0]: chosen}
        half = len(extras) // 2
        return differing(framework, release, extras[:half]) | differing(framework, release, extras[half:])

    def both(framework: str) -> tuple[str, dict[str, str]]:
        release = resolved(framework)
        apart = {extra: beside(framework, extra) for extra in known if (framework, extra) in APART}
        return release, apart | differing(framework, release, [extra for extra in known if extra not in apart])

    with ThreadPoolExecutor(_AT_ONCE) as pool:  # the resolver waits for the network
        found = dict(zip(frameworks, pool.map(both, frameworks), strict=True))
    failed = False
    for framework, (release, changed) in found.items():
        print(f"{framework} {release or 'cannot be resolved'}")  # noqa: T201 - its output
        failed = failed or not release
        for extra, chosen in changed.items():
            why = APART.get((framework, extra))
            print(f"    beside {name}[{extra}]: {chosen or 'no solution'}{f' ({why})' if why else ''}")  # noqa: T201 - as above
            failed = failed or (chosen == release) == bool(why)
    sys.exit(failed)


if __name__ == "__main__":
    main()
