"""A session of an agent through the proxy: the same bytes on both sides, and each call recorded."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import urlsplit

from palaver import Session, SqliteStore
from palaver.session import Dialog
from tests.cli.commands import run
from tests.drift.clients import Cli
from tests.drift.rounds import PROMPT, Bench
from tests.proxy.running import Wire, bodies, command

CALLS = 20
"""The calls of a session, without questions aside such as one for a title."""

_COUNTS = ("/count_tokens", ":countTokens")
"""How the paths of requests end that ask no model."""

HEAD = ("Through the proxy", "Recorded", "Requests", "Answers", "Sessions", "Dialogs", "Tools")


class Passed(NamedTuple):
    """A row of the table, and whether each byte was the same on both sides, each call was recorded, and the main dialog has tools."""

    row: list[str]
    whole: bool


def proxied(cli: Cli, bench: Bench) -> Passed:
    """Play a session of `CALLS` calls through the command, and return what was seen.

    Raises:
        NotPlayedError: The agent did not play its part.
    """
    server = bench.servers[cli.name]
    place = urlsplit(server.url)
    folder = bench.folder / f"{cli.name}-proxy"
    folder.mkdir()
    with ExitStack() as stack:
        behind = stack.enter_context(Wire(place.port or 0))
        running = stack.enter_context(command(folder, "--to", f"http://127.0.0.1:{behind.port}"))
        before = stack.enter_context(Wire(running.port))
        home = bench.home(cli, f"{cli.name}-proxied", f"http://127.0.0.1:{before.port}{place.path}")
        home.played(PROMPT, cli.working(bench.image, CALLS))
        said = running.end()
    sent = _requests(before.sent)
    asked = sum(not each.asked.path.partition("?")[0].endswith(_COUNTS) for each in server.served)
    with SqliteStore(running.store) as store:
        sessions = [Session.open(store, record.session_id) for record in Session.list(store)]
        dialogs = [dialog for session in sessions for dialog in session.dialogs if dialog.calls]
        kept = Counter(call.request().data for dialog in dialogs for call in dialog.calls)
        rows = [
            row for each in dialogs for row in run("calls", each.dialog_id, "--store", running.store, "--json").rows()
        ]
        listed = sum(bool(row["recorded"]) for row in rows)
        tools = [len(session.root.view().tools) for session in sessions]
        made = ", ".join(map(_why, dialogs))
    same = [
        Counter(_requests(one)) == Counter(_requests(other))
        for one, other in ((before.sent, behind.sent), (before.got, behind.got))
    ]
    recorded = min(listed, (kept & Counter(sent)).total())
    row = [f"{recorded} of {asked} {said}".strip(), *("equal" if each else "differ" for each in same)]
    more = [str(len(sessions)), f"{len(dialogs)}: {made}", ", ".join(map(str, tools))]
    return Passed([cli.title, *row, *more], all(same) and all(tools) and recorded == asked and not said)


def _requests(streams: list[bytearray]) -> list[bytes]:
    return [body for stream in list(streams) for body in bodies(bytes(stream))]


def _why(dialog: Dialog) -> str:
    node = dialog.opened.node
    return f"{node.relation if node.parent_id else 'new'} ({len(dialog.calls)} calls)"
