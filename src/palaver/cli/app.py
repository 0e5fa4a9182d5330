"""The commands together, and how any of them ends."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.commands import Commands
from palaver.cli.interrupts import heeded, is_interrupt
from palaver.cli.outcome import EXIT_HELP, Exit, tell
from palaver.cli.surroundings import errors
from palaver.errors import InvalidInput, PalaverError

_WrongWords: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__base__ is Exception)
"""What Typer raises for a wrong command line: since 0.28 a class of its own, before that one of Click's."""

app = typer.Typer(
    name="palaver",
    cls=Commands,
    help="Sessions of LLM agents: import them, prove them valid, see what a model would see, and bring back what was left out.",
    epilog=EXIT_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        metadata = import_module("importlib.metadata")  # which loads what reads mail, and few ask
        typer.echo(f"palaver {metadata.version('palaver')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and give its exit code; the entry point exits with it."""
    words = sys.argv[1:] if arguments is None else arguments
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed from the start: who does that does not want what is written there
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a report on a terminal without Unicode
    try:
        with heeded():
            code = _run(words)
        sys.stdout.flush()  # here, where a full disk or a reader that went away is still ours to tell
    except BrokenPipeError:  # the reader of our output, such as head, has enough
        _give_up()
        return Exit.READER
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):
            raise
        _give_up()  # the same; this is how Typer ends then
        return Exit.READER
    except OSError as error:
        _give_up()
        errors().print(f"palaver: the output cannot be written: {error.strerror or error}.", style="red")
        return Exit.OUTPUT
    return code


def _run(words: list[str]) -> int:
    """Run a command and tell how it ended. What cannot be written to standard output is left to the caller."""
    try:
        code = int(app(words, standalone_mode=False) or Exit.OK)
        return (
            _interrupted() if code == Exit.INTERRUPTED else code
        )  # Typer turns Ctrl-C within a command into this number
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted()
    except _WrongWords as error:
        return _wrong_words(error)
    except PalaverError as error:
        return _interrupted() if is_interrupt(error) else tell(error, json="--json" in words)
    except OSError as error:
        if error.filename is None:
            raise  # no file that was named: standard output
        return tell(InvalidInput(f"{error.filename}: {error.strerror or error}."), json="--json" in words)
    except Exception as error:  # noqa: BLE001 - a defect of ours: it must not end as 1, which says that the doctor found something
        return _interrupted() if is_interrupt(error) else _defect()


def _give_up() -> None:
    """Let what is still buffered go nowhere: the interpreter would try to write it again at its end, and complain."""
    try:
        number = sys.stdout.fileno()
    except OSError:  # a stream in memory keeps nothing back
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _wrong_words(error: Exception) -> int:
    """Say what is wrong with the words of the command, and where its help is."""
    show = getattr(error, "show", None)  # the usage, the parameter and close matches, as Typer words them
    if callable(show):
        show()
    else:
        errors().print(f"palaver: {error}", style="red")
    return Exit.USAGE


def _defect() -> int:
    errors().print(traceback.format_exc(), style="red")
    errors().print("palaver contradicts itself. Please report this with the lines above; what was written is whole.")
    return Exit.DEFECT


def _interrupted() -> int:
    errors().print("palaver: interrupted; what was written is whole, and the command can be given again.")
    return Exit.INTERRUPTED
