"""What the words of the command ask for: who answers, with what, in which session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from palaver.models.connect import PREFIXES

__all__ = ["Wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the words of the command ask for; each says in its help what it is."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="SPEC", help=f"Who answers; spelt with one of {', '.join(PREFIXES)} before it."
        ),
    ] = None
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            metavar="S",
            help="Take this session up again, by name or id; a new name is a new session's.",
        ),
    ] = None
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT|@FILE", help="The system prompt of a new session.")
    ] = None
    tools: Annotated[
        list[Path] | None,
        typer.Option(
            "--tools", metavar="FILE.py", help="A Python file: everything under @tool in it may be called. Repeatable."
        ),
    ] = None
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            "--mcp",
            metavar="COMMAND|URL",
            help="A server of tools: the command that starts it, or its address. Repeatable.",
        ),
    ] = None
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE.yaml", help="A configuration of agents, for --agent.")
    ] = None
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="The agent of the configuration that answers.")
    ] = None
    policy: Annotated[str | None, typer.Option("--policy", metavar="P", help="What shapes each request.")] = None
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="N", min=1, help="Tokens that a request may occupy.")
    ] = None
    summarizer: Annotated[
        str | None,
        typer.Option(
            "--summarizer",
            metavar="SPEC",
            help="A model that summarises beside the record when what the model sees is made smaller, such as openai/gpt-4o-mini. "
            "It is then made smaller by itself as well, at 0.8 of the window or of --budget.",
        ),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", help="Run calls that need somebody's agreement without a question.")] = (
        False
    )
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Take keys and tokens out of what is said before it is kept, and before a model sees it."
        ),
    ] = False
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="WHO",
            help="Whose data a new session is: WHO's memory is what an agent with a memory has in it.",
        ),
    ] = None
