"""Check that the frameworks of our users can be installed beside palaver, each in the release that it would have alone.

    .venv/bin/python tools/resolve.py [FRAMEWORK ...]

A floor or a pin of ours that is too strict shows here: the resolver then takes an old release of the framework, or finds none.
A floor that is too low shows in `./run floor`. The resolver picks nothing below it.
Nothing is installed. The exit status is 1 where a framework does not fit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"

FRAMEWORKS: dict[str, str] = {
    "google-adk": "google",
    "crewai": "",
    "semantic-kernel": "openai",
    "strands-agents": "anthropic",
    "langgraph": "langgraph",
    "openai-agents": "openai",
    "pydantic-ai": "openai,anthropic,google",
    "aider-chat": "",
}
"""Each framework, and the extras of palaver that its users need most."""


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


def alone_and_beside(framework: str) -> tuple[str, str]:
    """Return the release of a framework by itself, and beside palaver with the extras that its users need."""
    extras = [part for name in filter(None, FRAMEWORKS.get(framework, "").split(",")) for part in ("--extra", name)]
    return resolved(framework), resolved(framework, str(ROOT / "pyproject.toml"), *extras)


def main() -> None:
    """Print one line for each framework."""
    frameworks = sys.argv[1:] or list(FRAMEWORKS)
    with ThreadPoolExecutor(len(frameworks)) as pool:  # the resolver waits for the network
        found = list(pool.map(alone_and_beside, frameworks))
    failed = False
    for framework, (alone, beside) in zip(frameworks, found, strict=True):
        fits = bool(alone) and alone == beside
        failed = failed or not fits
        shown = f"{framework} {alone or 'cannot be resolved'}"
        print(shown if fits else f"{shown}; beside palaver: {beside or 'no solution'}")  # noqa: T201 - its output
    sys.exit(failed)


if __name__ == "__main__":
    main()
