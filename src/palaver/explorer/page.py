"""The page as one HTML file that opens from disk, without a server and without network: with the answers to all that it asks.

The same input produces the same bytes. Everything that was said is in gzipped parts, in base 85 (7 % smaller than base64), whose digits cannot end
the element around them.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode, b85encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlencode

from palaver.browsing.calls import ModelCallRow
from palaver.browsing.differences import compiled
from palaver.browsing.outline import ItemRow
from palaver.errors import PalaverError
from palaver.explorer.answers import LABELS, ROUTES, labelled, seen_at, shown
from palaver.explorer.api import Explored, Raw, as_data, as_json
from palaver.ids import DialogId, SessionId
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.view import View

_PART = 1_000_000
"""Bytes of answers that are packed together, about."""

_Ask: TypeAlias = Callable[[str], Any]
_Answers: TypeAlias = Iterator[tuple[str, Any]]


class Chosen(NamedTuple):
    """What a file shows: a session, perhaps with what the model saw at each call; or one call alone, or how two calls differ.

    Attributes:
        session: The session.
        dialog: The dialog that is shown first, and whose calls are meant.
        call: The number of a call.
        compare: The numbers of two calls.
        calls: Whether the file of a session shows what the model saw at each call.
    """

    session: SessionId
    dialog: DialogId
    call: int | None = None
    compare: tuple[int, int] | None = None
    calls: bool = False

    @property
    def screen(self) -> str:
        """The name of the screen that the file begins with."""
        return "compare" if self.compare else "call" if self.call else ""

    @property
    def route(self) -> str:
        """The address of that screen."""
        words = dict(zip("dab", (self.dialog, *(self.compare or ())), strict=False))
        place = "/".join(str(part) for part in ("/s", self.session, self.screen, self.call) if part)
        return f"{place}?{urlencode(words)}"


def page(store: Store, chosen: Chosen) -> Iterator[bytes]:
    """Return the file, piece by piece.

    Raises:
        PalaverError: What was chosen cannot be shown.
    """
    return _file(_answers(Explored(store=store, url="", name="", option=None), chosen))


def replay_page(dialog: Dialog, view: View, row: ModelCallRow, *, policy: str, of: int) -> Iterator[bytes]:
    """Return the file of what a policy would have shown at a call, piece by piece.

    Args:
        dialog: The dialog, without secrets.
        view: What the policy would have shown.
        row: The call.
        policy: The policy's name.
        of: How many calls there are.
    """
    chosen = Chosen(dialog.session_id, dialog.dialog_id, row["call"])
    source = Explored(store=dialog.store, url="", name="", option=None)
    seen = {**shown(view, row), "of": of, "recorded": False, "proved": None, "report": [], "policy": policy}
    seen["labels"] = labelled(dialog, seen["items"][:LABELS])
    return _file(_replayed(_asking(source), chosen, dialog, view, seen))


def _file(answers: _Answers) -> Iterator[bytes]:
    """Return the page with its answers, piece by piece."""
    index: dict[str, str] = {}
    waiting: list[bytes] = []
    size = part = 0
    head, tail = shell().split("</body>")
    for path, value in answers:
        if not index:
            yield head.encode()  # what was chosen is there
        if path in index:
            continue
        waiting.append(as_json(path) + b":" + as_json(value))
        size += len(waiting[-1])
        index[path] = f"part-{part}"
        if size > _PART:
            yield _element(f"part-{part}", waiting)
            waiting, size, part = [], 0, part + 1
    yield _element(f"part-{part}", waiting)
    yield _element("answers", [as_json(index)[1:-1]])
    yield f"</body>{tail}".encode()


def _element(name: str, members: list[bytes]) -> bytes:
    """Return an element with a JSON object; browsers do not run it."""
    packed = b85encode(gzip.compress(b"{" + b",".join(members) + b"}", mtime=0)).replace(b"<", b",")
    return f'<script type="application/octet-stream" id="{name}">'.encode() + packed + b"</script>\n"


# --- the answers ----------------------------------------------------------------------------------------------------------------------


def _asking(source: Explored) -> _Ask:
    """Return what answers a path; that something was erased is an answer, too."""

    def ask(path: str) -> Any:  # noqa: ANN401 - JSON values
        try:
            return answered(source, path)
        except PalaverError as error:
            return as_data(error)

    return ask


_QUESTIONS = [(re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", route.pattern)), route.function) for route in ROUTES]


def answered(source: Explored, path: str) -> Any:  # noqa: ANN401 - JSON values
    """Return the answer to a GET of the page as JSON values.

    Raises:
        PalaverError: There is none.
    """
    place, _, query = path.partition("?")
    match, function = next((match, function) for regex, function in _QUESTIONS if (match := regex.fullmatch(place)))
    answer = function(source, **match.groupdict(), **dict(parse_qsl(query)))
    if isinstance(answer, Raw):
        if answer.media_type == "application/json":
            return json.loads(answer.data)
        return f"data:{answer.media_type};base64,{b64encode(answer.data).decode()}"
    return list(answer) if isinstance(answer, Iterator) else answer


def _answers(source: Explored, chosen: Chosen) -> _Answers:
    """Yield each path that the page asks, and the answer."""
    ask = _asking(source)
    here, dialog = f"/api/sessions/{chosen.session}", f"/api/dialogs/{chosen.dialog}"
    session = answered(source, here)
    path = f"{dialog}/calls/{chosen.call}" if chosen.call else here
    if chosen.compare:
        path = f"{dialog}/compare?a={chosen.compare[0]}&b={chosen.compare[1]}"
    seen = {
        path: answered(source, path),
        here: session,
        "/api/sessions?limit=200": {"rows": [session["row"]], "more": False},
    }
    screens = [chosen.screen] if chosen.screen else ["", "log", "cost", *(["call"] if chosen.calls else [])]
    seen["/api/about"] = {**ask("/api/about"), "start": chosen.route, "screens": screens}
    yield from seen.items()
    yield f"{here}/whole", ask(f"{here}/whole")
    if chosen.compare:
        rows = (row for what in ("entered", "left", "changed") for row in seen[path][what])
        yield from _originals(ask, (row["place"] for row in rows))
    elif chosen.call:
        yield f"{path}/request", ask(f"{path}/request")
        opened = Session.open(source.store, chosen.session).dialog(chosen.dialog)  # the view is not asked for again
        yield from _call(ask, path, opened, seen[path]["items"])
    else:
        for other in (row["dialog"] for row in session["dialogs"]):
            yield from _dialog(ask, f"/api/dialogs/{other}")
            if chosen.calls:
                yield from _calls(source, Session.open(source.store, chosen.session).dialog(other))
            if other != chosen.dialog:
                path = f"{here}/branches?one={chosen.dialog}&other={other}"
                yield path, ask(path)


def _dialog(ask: _Ask, path: str) -> _Answers:
    """Yield what is shown of a dialog: its entries, and what filled the window at each call."""
    head, *rows = ask(f"{path}/entries")
    yield f"{path}/entries", [head, *rows]
    yield from ((question, ask(question)) for question in (f"{path}/marks", f"{path}/calls", f"{path}/composition"))
    yield from _labels(ask, path, range(0, head["total"], LABELS))
    yield from _originals(ask, (row["handle"] for part in rows for row in part))


def _calls(source: Explored, dialog: Dialog) -> _Answers:
    """Yield what the model saw at each call: how many of its first rows are those of the call before, and the others."""
    before: list[ItemRow] = []
    for number in range(1, len(source.calls(dialog)) + 1):
        path = f"/api/dialogs/{dialog.dialog_id}/calls/{number}"
        try:
            seen = seen_at(source, dialog, number)
        except PalaverError as error:
            before = []
            yield path, as_data(error)
            continue
        items = seen["items"]
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before, items, strict=False))))
        before, items = items, items[same:]
        yield path, {**seen, "same": same, "items": items, "labels": labelled(dialog, items)}
        blocks = (handle for item in items for handle in _handles(item) if handle and handle.count(":") > 1)
        yield from _originals(_asking(source), blocks)  # the entries are in the log
        for item in items:
            yield from _run(_asking(source), item)


def _replayed(ask: _Ask, chosen: Chosen, dialog: Dialog, view: View, seen: Mapping[str, Any]) -> _Answers:
    """Yield what the page asks of a replayed call."""
    path, here = f"/api/dialogs/{chosen.dialog}/calls/{chosen.call}", f"/api/sessions/{chosen.session}"
    yield path, seen
    yield here, ask(here)
    yield "/api/about", {**ask("/api/about"), "start": chosen.route, "screens": [chosen.screen]}
    yield f"{path}/request", json.loads(compiled(dialog, view, seen["row"]["model"]).data)
    yield from _call(ask, path, dialog, seen["items"])


def _call(ask: _Ask, path: str, dialog: Dialog, items: Sequence[ItemRow]) -> _Answers:
    """Yield what the page shows of a call after its rows: their first words, and the originals, also of what the model did not see."""
    for start in range(LABELS, len(items), LABELS):  # the first are there
        yield f"{path}/labels?start={start}&stop={start + LABELS}", labelled(dialog, items[start : start + LABELS])
    for item in items:
        yield from _run(ask, item)
        yield from _originals(ask, _handles(item))


def _run(ask: _Ask, item: Mapping[str, Any]) -> _Answers:
    """Yield what is listed of a run that was left out."""
    if item.get("entries", 1) > 1:
        path = f"/api/entries/{item['handle']}/run/{item['entries']}"
        yield path, ask(path)


def _handles(item: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the originals of a row: of a run that was left out, each of its entries."""
    if item.get("entries", 1) == 1:
        yield item["handle"]
        return
    dialog, _, first = item["handle"].partition(":")
    yield from (f"{dialog}:{int(first) + number}" for number in range(item["entries"]))


def _labels(ask: _Ask, path: str, starts: range) -> _Answers:
    for start in starts:
        one = f"{path}/labels?start={start}&stop={start + LABELS}"
        yield one, ask(one)


def _originals(ask: _Ask, handles: Iterator[str | None]) -> _Answers:
    """Yield entries and blocks, and their images."""
    for handle in filter(None, handles):
        original = ask(f"/api/entries/{handle}")
        yield f"/api/entries/{handle}", original
        yield from (
            (path, ask(path)) for path in (f"/api/entries/{handle}/media/{each}" for each in _pictures(original))
        )


def _pictures(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON values
    """Yield the digests of the images in a message."""
    if isinstance(value, dict):
        if value.get("digest") and str(value.get("media_type")).startswith("image/") and not value.get("url"):
            yield value["digest"]
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _pictures(part)


# --- the page itself ------------------------------------------------------------------------------------------------------------------


def shell() -> str:
    """Return the page with its scripts and styles inside, and nothing else allowed."""
    folder = files("palaver.explorer") / "static"

    def text(name: str) -> str:
        return folder.joinpath(*name.split("/")).read_text("utf-8")

    whole = re.sub(r'<link rel="icon".*\n', "", text("index.html")).replace("<html ", "<html data-exported ")
    whole = re.sub(r'<link rel="stylesheet" href="(.+)">', lambda match: f"<style>{text(match[1])}</style>", whole)
    whole = re.sub(r'<script src="(.+)" defer></script>', lambda match: f"<script>{text(match[1])}</script>", whole)
    program = "".join(_modules("app.js", text, set()))
    whole = whole.replace('<script src="app.js" type="module"></script>', f'<script type="module">{program}</script>')
    allowed = {"script": "", "style": ""}  # only these may run: a text that looks like a script never does
    for name, inside in re.findall(r"<(script|style)[^>]*>(.*?)</\1>", whole, re.DOTALL):
        allowed[name] += f" 'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"
    policy = (
        f"default-src 'none'; script-src{allowed['script']}; style-src{allowed['style']}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    meta = '<meta charset="utf-8">\n'
    notice = f'<script type="text/plain" id="notice">{text("vendor/NOTICE")}</script>\n</body>'
    whole = whole.replace(meta, f'{meta}<meta http-equiv="Content-Security-Policy" content="{policy}">\n')
    return whole.replace("</body>", notice)


def _modules(name: str, text: Callable[[str], str], known: set[str]) -> Iterator[str]:
    """Yield the modules that a module imports, and itself, as parts of one module: their top-level names are unique."""
    known.add(name)
    for other in re.findall(r'^import .* from "\./(.+)";$', text(name), re.MULTILINE):
        if other not in known:
            yield from _modules(other, text, known)
    yield re.sub(r"^export |^import .*\n", "", text(name), flags=re.MULTILINE)
