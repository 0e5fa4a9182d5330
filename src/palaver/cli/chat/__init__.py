"""palaver chat: talk to any model in the terminal, in a session that is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.chat.loop import Chat, lines_for, signals_end_it
from palaver.cli.chat.screen import JsonScreen, Screen
from palaver.cli.chat.setup import Wanted, prepared
from palaver.cli.options import JsonOption, StoreOption
from palaver.cli.surroundings import store_url
from palaver.models.connect import PREFIXES
from palaver.store import open_store
from palaver.store.redacting import redacted_store

__all__ = ["run"]

_MEMORY = frozenset({"memory:", ":memory:"})


def run(
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", metavar="SPEC", help=f"Who answers; spelt with one of {', '.join(PREFIXES)} before it."
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            "-s",
            metavar="S",
            help="Take this session up again, by name or id; a new name is a new session's.",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT|@FILE", help="The system prompt of a new session.")
    ] = None,
    tools: Annotated[
        list[Path] | None,
        typer.Option(
            "--tools", metavar="FILE.py", help="A Python file: everything under @tool in it may be called. Repeatable."
        ),
    ] = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            "--mcp",
            metavar="COMMAND|URL",
            help="A server of tools: the command that starts it, or its address. Repeatable.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE.yaml", help="A configuration of agents, for --agent.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="The agent of the configuration that answers.")
    ] = None,
    policy: Annotated[str | None, typer.Option("--policy", metavar="P", help="What shapes each request.")] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="N", min=1, help="Tokens that a request may occupy.")
    ] = None,
    summarizer: Annotated[
        str | None,
        typer.Option(
            "--summarizer",
            metavar="SPEC",
            help="A model that summarises beside the record when what the model sees is made smaller, such as openai/gpt-4o-mini. "
            "It is then made smaller by itself as well, at 0.8 of the window or of --budget.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run calls that need somebody's agreement without a question.")
    ] = False,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Take keys and tokens out of what is said before it is kept, and before a model sees it."
        ),
    ] = False,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="WHO",
            help="Whose data a new session is: WHO's memory is what an agent with a memory has in it.",
        ),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Talk to a model. Everything is kept, from the first message on; --session takes it up again, also in the middle of a turn.

    In a pipe each line is a message, and answers go to standard output; the exit code is that of the last message. Keys of providers are read
    by their own clients, from where they always do (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY …). /help lists the commands.
    """
    name = store_url(store)
    wanted = Wanted(
        model=model,
        tools=tuple(tools or ()),
        mcp=tuple(mcp or ()),
        system=system,
        config=config,
        agent=agent,
        policy=policy,
        budget=budget,
        summarizer=summarizer,
        session=session,
        subject=subject,
    )
    source = redacted_store(open_store(name), redact)
    screen = JsonScreen() if json else Screen()
    lines = lines_for(screen, remember=name not in _MEMORY)
    try:
        with signals_end_it(), prepared(wanted, source) as talk:
            for note in wanted.notes:
                screen.note(note)
            return Chat(talk, screen, lines, agree=yes).run()
    finally:
        screen.close()
        lines.close()
        source.close()
