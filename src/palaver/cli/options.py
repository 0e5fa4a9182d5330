"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, Concatenate, TypeAlias, TypeVar

import typer

from palaver.cli.surroundings import store_url
from palaver.errors import InvalidInput, MissingStore, StoreReadOnly
from palaver.store import Store, open_store

StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The store: a file, sqlite:///path, postgresql://host/database or memory:. Default: $PALAVER_STORE, else one file in your data folder.",
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
SessionArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, the first 6 or more digits of it, or its name.")
]
DialogOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dialog",
        metavar="D",
        help="A dialog's id or its first 6 or more digits. Default: the dialog to go on with: the first one, or of an imported session the one "
        "with its newest entry.",
    ),
]


Asked = TypeVar("Asked")


def worded(kind: Callable[..., Asked]) -> Callable[[Callable[Concatenate[Asked, ...], int]], Callable[..., int]]:
    """Have a command take the fields of a value as words of its own, before its others: an option is written down once, in the value.

    Args:
        kind: The class of the value, whose fields say in their annotations which options they are.
    """
    fields = inspect.signature(kind, eval_str=True).parameters

    def faced(command: Callable[Concatenate[Asked, ...], int]) -> Callable[..., int]:
        whole = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(**words: Any) -> int:  # noqa: ANN401 - what Typer makes of what was typed
            asked = kind(**{name: words.pop(name) for name in fields})
            return command(asked, **words)

        others = list(whole.parameters.values())[1:]
        vars(run)["__signature__"] = whole.replace(parameters=[*fields.values(), *others])
        return run

    return faced


@contextmanager
def opened(url: str | None, *, create: bool = False, writes: bool = False) -> Iterator[Store]:
    """Open the store that was named, and close it after.

    Args:
        url: What was named, or None for the default.
        create: Whether to make it when it is missing.
        writes: Whether the command is of no use without writing; any other one is content with a store that it may only read.
    """
    name = store_url(url)
    if create and name == "memory:":
        raise InvalidInput(
            "A store in memory ends with this command: nothing would be kept.", hint="Name a file with --store."
        )
    try:
        store = open_store(name, create=create)
    except MissingStore as error:
        raise MissingStore(
            error.name, hint="Import something first (palaver import PATH), or name a store with --store."
        ) from error
    except StoreReadOnly:
        if create or writes:
            raise
        store = open_store(name, create=False, read_only=True)
    try:
        yield store
    finally:
        store.close()
