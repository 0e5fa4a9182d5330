"""palaver open: the explorer, a local page over a store or a transcript."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path, PurePath
from shlex import quote
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Annotated
from urllib.parse import urlencode, urlsplit

from typer import Argument, BadParameter, Option

from palaver import transcripts
from palaver.browsing.places import Location
from palaver.cli.interrupts import interruptible
from palaver.cli.location import located
from palaver.cli.options import JsonOption, StoreOption, opened, store_url
from palaver.cli.terminal import emit, progress
from palaver.errors import MissingExtra, StoreError
from palaver.explorer.api import Explored
from palaver.explorer.seen import LastSeen
from palaver.folders import data_folder
from palaver.store import Durability, Store, open_store

if sys.platform != "win32":
    from fcntl import LOCK_EX, LOCK_NB, flock

_WHAT = (
    "A session, one of its dialogs, an entry (a handle), the address of a screen, or a transcript, which is read and not kept. "
    "Default: every session."
)

_WRITE = "Let the page fork, label, pin, approve and deny."


def run(
    what: Annotated[str | None, Argument(metavar="SESSION|FILE|ADDRESS", help=_WHAT)] = None,
    *,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the browser.")] = True,
    write: Annotated[bool, Option("--write", help=_WRITE)] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Look at sessions in the browser: what the model saw at each call, what had left, and why. Needs the extra `web`.

    The page is served by this command, to this machine only, until Ctrl-C. Without --write the store is only read.
    """
    if write and what is not None and Path(what).is_file():
        raise BadParameter("a transcript is read and not kept; import it first.", param_hint="--write")
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtra("`palaver open`", "web", package="uvicorn")
    from palaver.explorer.serving import browse, serve  # noqa: PLC0415 - it needs the extra

    with interruptible(), _looked_at(what, store, write=write) as (source, to):

        def told(address: str) -> None:
            row = {"url": address, "store": source.name, "writes": write}
            may = ("The page may fork, label, pin, approve and deny.",) if write else ()
            emit(json, row, f"{source.name}: {address}", *may, "Ctrl-C ends it.")
            sys.stdout.flush()
            if browser and _has_browser():
                browse(address)

        with suppress(KeyboardInterrupt):
            serve(source, to, told)


def _has_browser() -> bool:
    """Return whether a browser would have a screen of its own: one in this terminal would fight with Ctrl-C."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextmanager
def _looked_at(what: str | None, url: str | None, *, write: bool) -> Iterator[tuple[Explored, str]]:
    """Yield the source, and the screen to begin with."""
    if what is not None and Path(what).is_file():
        with _imported(Path(what)) as looked_at:
            yield looked_at
        return
    place = store_url(url)
    name = PurePath(urlsplit(place).path).name if "://" in place else PurePath(place).name
    marks, option = LastSeen(data_folder() / "seen.json"), "" if url is None else f" --store {_shown(url)}"
    screen = "/" if what is None else urlsplit(what).fragment
    with _writer(url) if write else nullcontext() as writer:
        if screen.startswith("/"):
            with opened(url, read_only=True) as store:
                yield Explored(store=store, url=place, name=name, writer=writer, option=option, marks=marks), screen
            return
        assert what is not None  # noqa: S101 - it has no screen
        with located(what, url, read_only=True, entries=True) as there:
            store, to = there.dialog.store, _screen(there)
            yield Explored(store=store, url=place, name=name, writer=writer, option=option, marks=marks), to


@contextmanager
def _writer(url: str | None) -> Iterator[Store]:
    """Open the store for what the page may do."""
    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(url, writes=True))
        except StoreError as error:
            if error.reason != "read_only":
                raise
            raise StoreError(error.message, reason=error.reason, hint="Leave --write out to look at it.") from error
        yield store


def _shown(url: str) -> str:
    """Return what is typed for a store, without a password."""
    return "URL" if "://" in url and urlsplit(url).password else quote(url)


def _screen(there: Location) -> str:
    """Return the screen of what was named."""
    words: dict[str, str] = {} if there.whole else {"d": there.dialog.dialog_id}
    words |= {} if there.handle is None else {"e": str(there.handle.seq)}
    return f"/s/{there.session.session_id}" + (f"?{urlencode(words)}" if words else "")


@contextmanager
def _imported(path: Path) -> Iterator[tuple[Explored, str]]:
    """Yield a store with the sessions of a transcript, and the screen to begin with; the store is deleted in the end."""
    with _scratch() as folder:
        place = str(folder / "palaver.db")
        with closing(open_store(place, durability=Durability.NORMAL)) as store, progress(hidden=False) as advance:
            advance(f"reading {path.name}", 0, None)
            sessions = [
                imported.session_id for imported in transcripts.Importer(store, keep_source=False).import_path(path)
            ]
        with closing(open_store(place, create=False, read_only=True)) as store:
            screen = f"/s/{sessions[0]}" if len(sessions) == 1 else "/"
            yield Explored(store=store, url=place, name=path.name, option=None), screen


_SCRATCH = "palaver-open-"
"""How the names of the folders for transcripts begin, among the temporary files."""


@contextmanager
def _scratch() -> Iterator[Path]:
    """Yield a new folder that is deleted in the end; first delete those of killed processes, which nobody has locked."""
    for left in Path(gettempdir()).glob(f"{_SCRATCH}*"):
        with suppress(OSError), _locked(left):
            rmtree(left)
    folder = Path(mkdtemp(prefix=f".{_SCRATCH}"))
    with _locked(folder):
        folder = folder.rename(folder.with_name(folder.name.removeprefix(".")))  # now others may see it: it is locked
        try:
            yield folder
        finally:
            rmtree(folder)


if sys.platform == "win32":

    def _locked(folder: Path) -> AbstractContextManager[None]:  # noqa: ARG001 - no open file can be deleted there
        return nullcontext()

else:

    @contextmanager
    def _locked(folder: Path) -> Iterator[None]:
        """Lock a folder until the block or this process ends.

        Raises:
            OSError: Another process has locked it.
        """
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
            yield
        finally:
            os.close(descriptor)
