"""Every command by its name: where it stands, and what the list of commands says of it. A command is loaded when it is called.

Listing thirty commands loads none of them, and a command loads what it needs itself, not what the others need (decision 81).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

__all__ = ["COMMANDS", "Commands", "loaded"]

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "chat": ("chat:run", "Talk to a model."),
        "import": ("imports:run", "Import transcripts of other agents, or bundles."),
        "sessions": ("sessions:run", "List sessions, newest activity first."),
        "show": ("show:run", "Show everything that was said in a dialog, as Markdown; or its entries."),
        "tree": ("tree:run", "Draw the tree of a session's dialogs: forks, rewinds, sub-agents."),
        "view": (
            "view:run",
            "Compute what the model sees: by default as the recorded agent saw it, `--policy full` for everything.",
        ),
        "diff": ("branches:diff", "Say where two branches went apart, and what each of them holds alone."),
        "merge": (
            "branches:merge",
            "Tell a dialog what happened on another branch: one entry that names the branch and what it was made of.",
        ),
        "rewind": (
            "branches:rewind",
            "Go back to an entry: say what would leave the view and what was done since; with --yes do it, as a branch.",
        ),
        "label": ("branches:label", "Name an entry for people, take its name away, or list what is named."),
        "calls": (
            "calls:run",
            "List the model calls of a dialog, each with the number that `view --call` and `diff-calls` take.",
        ),
        "diff-calls": (
            "calls:diff",
            "Say what the second call saw that the first did not, what it no longer saw and why, and where the provider's cache broke.",
        ),
        "compact": (
            "compacting:compact",
            "Make what the model sees smaller: shows what would go and what would stand for it, and asks.",
        ),
        "constraints": (
            "compacting:constraints",
            "List what the user said must or must not be, as code found it in his words, and change the list.",
        ),
        "pin": ("pinning:run", "Keep an entry in every view, or no longer, and list what is pinned."),
        "recall": (
            "recall:run",
            "Give back what a handle stands for, whole, from whichever session and branch it is in; of a run of entries, each one after its handle.",
        ),
        "search": ("search:run", "Search messages, tool arguments and tool results."),
        "doctor": (
            "doctor:run",
            "Examine a transcript or session: pairing, ids, damaged text, missing parents, media, and what each provider would refuse.",
        ),
        "quarantine": (
            "quarantine:run",
            "Set blocks aside: views show a placeholder with the handle, and the session goes on.",
        ),
        "verify": (
            "verify:run",
            "Read a store back and derive everything again: entries, headers, counts, payloads, forks, rows and the full-text index.",
        ),
        "export": ("export:run", "Export a session."),
        "copy-store": (
            "copy_store:run",
            "Copy all sessions, entries, payloads and sources into another store, the trash too, and prove that both are equal.",
        ),
        "erase": ("erase:run", "Erase a session, a dialog, all sessions of a subject, or single entries, for good."),
        "verify-receipt": (
            "erase:verify",
            "Check a receipt of an erasure: nothing that it names is there, and its tombstones are.",
        ),
        "retain": (
            "retain:run",
            "Put sessions that were not used for long into the trash, and erase what is in the trash for long.",
        ),
        "hold": ("retain:hold", "Keep a session from retention, whatever its age; with --release no longer."),
        "sweep": ("sweep:run", "Remove payloads (pictures, kept files) that nothing names."),
        "stats": (
            "stats:run",
            "Count sessions, dialogs, entries, messages and bytes; calls by tool; recorded tokens and dollars by model.",
        ),
        "lab": (
            "lab:run",
            "Replay recorded sessions under policies and compare them: cost, what was kept, distance to the best possible.",
        ),
        "map": (
            "repo_map:run",
            "Draw a map of a repository: the definitions that the rest of it uses most, file by file, within a number of tokens.",
        ),
    }
)
"""The commands in the order of the help: the function, after its module, and the first sentence of its docstring."""


def loaded(name: str) -> Any:  # noqa: ANN401 - a command, of a class that Typer keeps to itself
    """Load the module of a command and make the command."""
    module, _, function = COMMANDS[name][0].partition(":")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(getattr(import_module(f"palaver.cli.{module}"), function))
    return get_command(app)


class Commands(TyperGroup):
    """All commands: what the help lists is known without them, and the one that is called is loaded."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - what Typer makes a group of
        listed = {name: TyperCommand(name, help=said) for name, (_, said) in COMMANDS.items()}
        super().__init__(**options | {"commands": listed})

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as Typer has it
        """List the commands, each with its whole sentence; Typer's own list cuts it where the first line ends."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, said) for name, (_, said) in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - the same
        """Find the command that the words begin with, and load it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else loaded(name), rest
