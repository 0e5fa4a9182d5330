"""The commands by name, and how any of them ends. A command's module is loaded when the command is called."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from palaver.cli.interrupts import heeded, is_interrupt
from palaver.cli.outcome import EXIT_HELP, Exit, tell
from palaver.cli.terminal import complain
from palaver.errors import DISTRIBUTION, InvalidInput, PalaverError

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "Sessions": {
            "import": ("imports:run", "Import sessions that other agents recorded."),
            "watch": ("watch:run", "Import sessions as they grow, as a service of this machine."),
            "proxy": ("proxy:run", "Record the calls of any program, between it and its vendor."),
            "sessions": ("sessions:run", "List sessions, the newest first."),
            "show": ("show:run", "Show what was said, or the original that a handle names."),
            "search": ("search:run", "Search everything that was said."),
            "export": ("export:run", "Write a session in a form that another tool reads."),
        },
        "Look": {
            "open": ("open:run", "Look at sessions in the browser."),
            "view": ("view:run", "Show what a model sees of a session, and why not the rest."),
            "why": ("why:run", "Say when a model saw an entry, when it left, by what, and what came after."),
            "calls": ("calls:run", "List the model calls of a session, or compare two of them."),
            "cost": ("cost:run", "Show what sessions cost, what broke the cache, and what compactions saved."),
            "doctor": ("doctor:run", "Say what is wrong with a session or a transcript, and repair it."),
        },
        "Change": {
            "branch": ("branch:app", "Fork, rewind, merge, compare, label, pin and quarantine."),
            "compact": ("compact:run", "Make what the model sees smaller: preview, commit, undo."),
            "erase": ("erase:run", "Erase a session, a dialog or entries for good, with a receipt."),
        },
        "Run": {
            "chat": ("chat:run", "Talk to a model in a session that is kept."),
            "approve": ("decisions:approve", "Approve calls that wait for a person, or list them."),
            "deny": ("decisions:deny", "Refuse calls that wait for a person."),
            "work": ("fleet:work", "Answer the sessions of a fleet, as one of its workers."),
            "queue": ("fleet:queue", "Show which sessions of a fleet wait, run, failed or wait for a person."),
            "lab": ("lab:run", "Compare policies on recorded sessions, without asking a model."),
        },
        "Tools": {
            "models": ("models:run", "List what models accept, and read the vendors' lists."),
            "mcp": ("mcp:run", "Let other agents search and read sessions, as an MCP server."),
            "acp": ("acp:run", "Answer in an editor that speaks the Agent Client Protocol, such as Zed."),
            "sync": ("sync:run", "Bring two stores, or a store and a folder, to the same state."),
            "archive": ("archive:run", "Move a session to a folder or to object storage, and back."),
            "store": ("store:app", "Verify, copy and sweep a store; retention and receipts."),
        },
    }
)
"""The commands as the help lists them: the module and its function or group, and one sentence."""

_ALIASES = {"recall": "show"}
"""Names that work and are not listed: placeholders in a view tell the model to `recall` a handle."""

_ELSEWHERE = {
    "list": "sessions",
    "ls": "sessions",
    "find": "search",
    "costs": "cost",
    "usage": "cost",
    "delete": "erase",
    "rm": "erase",
}
"""What other tools call our commands."""

SETTINGS = {"help_option_names": ["-h", "--help"]}


def group(name: str, sentence: str) -> typer.Typer:
    """Return a command that has commands of its own."""
    return typer.Typer(
        name=name,
        help=sentence,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings=SETTINGS,
    )


def loaded(name: str) -> Any:  # noqa: ANN401 - a command, of a class that Typer keeps to itself
    """Load the module of a command, and return the command or group."""
    name = _ALIASES.get(name, name)
    place, sentence = next(group[name] for group in COMMANDS.values() if name in group)
    module, _, attribute = place.partition(":")
    command = getattr(import_module(f"palaver.cli.{module}"), attribute)
    if isinstance(command, typer.Typer):
        return get_command(command)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=SETTINGS)
    alone.command(name, short_help=sentence)(command)
    return get_command(alone)


class _Commands(TyperGroup):
    """All commands: the help and the completion list them without loading any; the one that is called is loaded."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - what Typer makes a group of
        known = {name: said for group in COMMANDS.values() for name, (_, said) in group.items()}
        listed = {name: TyperCommand(name, help=said) for name, said in known.items()}
        hidden = {name: TyperCommand(name, hidden=True) for name in _ALIASES}
        super().__init__(**options | {"commands": listed | hidden})

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as Typer has it
        """List the commands in their groups."""
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, said) for name, (_, said) in group.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - the same
        """Find the command that the arguments begin with, and load it."""
        if meant := _ELSEWHERE.get(args[0]):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else loaded(name), rest


app = typer.Typer(
    name="palaver",
    cls=_Commands,
    help="Sessions of LLM agents: import them, see what a model sees, find what was said, repair and compact them.",
    epilog=EXIT_HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
)


def _version(asked: bool) -> None:
    if asked:
        metadata = import_module("importlib.metadata")  # slow to import, and rarely needed
        typer.echo(f"palaver {metadata.version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


# --- running --------------------------------------------------------------------------------------------------------------------------

_UsageError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__base__ is Exception)
"""What Typer raises for wrong arguments: since 0.28 a class of its own, before that one of Click's."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; the entry point exits with it."""
    words = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed from the start
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a report on a terminal without Unicode
    try:
        with heeded(), warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: complain(str(message), "yellow")
            code = _run(words)
        sys.stdout.flush()  # here a full disk or a reader that went away can still be reported
    except BrokenPipeError:  # the reader of our output, such as head, has enough
        _discard()
        return Exit.READER
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        _discard()  # the same; this is how Typer ends then
        return Exit.READER
    except OSError as error:
        _discard()
        complain(f"palaver: the output cannot be written: {error.strerror or error}.", "red")
        return Exit.OUTPUT
    return code


def _run(words: list[str]) -> int:
    """Run a command and report how it ended. What cannot be written to standard output is left to the caller."""
    json = "--json" in words
    try:
        code = int(app(words, prog_name="palaver", standalone_mode=False) or Exit.OK)
        return _interrupted() if code == Exit.INTERRUPTED else code  # Typer turns Ctrl-C in a command into this
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except _UsageError as error:
        return _wrong(error)
    except PalaverError as error:
        return _interrupted() if is_interrupt(error) else tell(error, json=json)
    except OSError as error:
        if error.filename is None:
            raise  # not a file that was named: standard output
        return tell(InvalidInput(f"{error.filename}: {error.strerror or error}."), json=json)
    except Exception as error:  # noqa: BLE001 - a defect: it must not end as 1, which reports a fault that was found
        return _interrupted() if is_interrupt(error) else _defect()


def _wrong(error: Any) -> int:  # noqa: ANN401 - of Typer's or Click's class
    """Say in one line what is wrong with the arguments; without any, print the help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return Exit.USAGE
    said = error.format_message() if hasattr(error, "format_message") else str(error)
    before = context is not None and context.parent is None and type(error).__name__ == "NoSuchOption"
    late = " Options come after the command." if before else ""
    help_ = f" See `{context.command_path} --help`." if context is not None else ""
    said = " ".join(said.split()).replace(" Value error,", "")  # Typer passes on how pydantic names an error
    complain(f"palaver: {said if said.endswith(('.', '?')) else f'{said}.'}{late}{help_}", "red")
    return Exit.USAGE


def _discard() -> None:
    """Discard what is still buffered: the interpreter would try to write it again at its end, and complain."""
    try:
        number = sys.stdout.fileno()
    except OSError:  # a stream in memory has nothing buffered
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _defect() -> int:
    complain(traceback.format_exc(), "red")
    complain(
        "This is a defect of palaver. Please report it with the lines above. Everything that was written is intact."
    )
    return Exit.DEFECT


def _interrupted() -> int:
    complain("palaver: interrupted. Everything that was written is intact, and the command can be repeated.")
    return Exit.INTERRUPTED
