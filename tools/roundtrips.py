"""Write the table of round trips: what of recorded sessions survives source -> palaver -> target -> palaver.

    python tools/roundtrips.py              write docs/reference/round-trips.md
    python tools/roundtrips.py FILE...      print the table of these transcripts

The sources are the two smallest files of each folder of $PALAVER_TEST_DATA that palaver imports; without it, the samples of the tests.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from palaver.dialects import names, read_messages
from palaver.errors import PalaverError
from palaver.ids import SessionId
from palaver.messages import (
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
)
from palaver.providers import APIS
from palaver.store import MemoryStore
from palaver.transcripts import Importer, export, export_forms
from palaver.view import fold

PAGE = Path("docs/reference/round-trips.md")
KINDS = ("texts", "calls", "results", "images", "thinking")
EACH = 2
"""The most files of a folder: the smallest ones, so that the whole table takes minutes."""

TARGETS = tuple(form for form in export_forms() if form != "markdown")
"""The targets: a page is not read back."""

HEAD = """# Round trips

Recorded sessions were imported, exported to each target format, and imported again. `all` means that every text, call, result, image and readable thinking of the
source came back. Other cells count what did not: 3/38 means that 3 of 38 came back. White space does not count, nor do texts that palaver or the target added.
`palaver export` lists each loss with its reason.

Signed and encrypted thinking belongs to one provider and is not counted. An event of OpenTelemetry is an answer with what came before it: no event
has what no answer follows. `python tools/roundtrips.py` writes this page from recorded sessions.

"""

_Counts = Mapping[str, Counter[str]]


def counts(messages: Iterable[Iterable[Content]]) -> _Counts:
    """Return what messages have, by kind."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for contents in messages:
        _images(found["images"], contents)
        for content in contents:
            if isinstance(content, TextContent):
                _count(found["texts"], content.content)
            elif isinstance(content, ThinkingContent):
                _count(found["thinking"], content.content)
            elif isinstance(content, ToolCallContent):
                _count(found["calls"], f"{content.name} {canonical_json(content.args).decode()}")
            elif isinstance(content, ToolResultContent):
                _count(found["results"], content.text())
                _images(found["images"], content.content if isinstance(content.content, tuple) else ())
    return found


def _count(counter: Counter[str], text: str) -> None:
    if key := "".join(text.split()):
        counter[key] += 1


def survived(kind: str, had: Counter[str], came: Counter[str]) -> int:
    """Return how many of a kind came back. Formats join and part texts, so a text came back where it is anywhere among the texts."""
    if kind not in {"texts", "thinking"}:
        return (had & came).total()
    everything = "".join(came)
    return sum(count for text, count in had.items() if text in everything)


def _images(counter: Counter[str], contents: Iterable[Content]) -> None:
    for content in contents:
        if isinstance(content, ImageContent):
            counter.update(media.url or media.digest for media in content.media)


def of_session(store: MemoryStore, session_id: SessionId) -> _Counts:
    """Return what a session's dialog has, without results that palaver wrote for calls that have none."""
    root = store.session(session_id).root
    assert root is not None  # noqa: S101 - an import has a dialog
    view = fold(store, root, whole=True)
    view.load()
    turns = [turn for exchange in view.exchanges if not exchange.derived for turn in exchange.turns]
    return counts([block.content for block in turn.blocks if not block.derived] for turn in turns)


def back(store: MemoryStore, session_id: SessionId, to: str) -> _Counts:
    """Return what comes back from a target."""
    data = b"".join(export(store, session_id, to).pieces)
    if to in names():
        body = json.loads(data)
        read = read_messages(body[APIS[to].dialect.items] if to in APIS else body, to)
        told = [TextContent(text) for text in _strings(body.get(APIS[to].dialect.system))] if to in APIS else []
        return counts([told, *(message.contents for message in read)])
    other = MemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / {"bundle": "x.palaver", "atif": "x.json"}.get(to, "x.jsonl")
        path.write_bytes(data)
        imported = next(iter(Importer(other, keep_source=False).import_path(path)))
    return of_session(other, imported.session_id)


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in the instructions of a request."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(item)


def rows(paths: Iterable[Path]) -> Iterator[tuple[str, str, Mapping[str, tuple[int, int]] | None]]:
    """Yield source, target, and for each kind what came back and what was there; None for a target that palaver does not read back."""
    for path in paths:
        store = MemoryStore()
        try:
            imported = list(Importer(store, keep_source=False).import_path(path))
        except PalaverError:
            continue
        for one in imported[:EACH]:
            if store.session(one.session_id).root is None:
                continue
            had = of_session(store, one.session_id)
            source = store.sources(one.session_id)[0].format
            for to in TARGETS:
                try:
                    came = back(store, one.session_id, to)
                except PalaverError as error:
                    sys.stderr.write(f"{path.name} {to}: {error}\n")
                    yield source, to, None
                    continue
                pairs = {
                    kind: (survived(kind, had[kind], came[kind]), had[kind].total()) for kind in KINDS if kind in had
                }
                yield source, to, pairs


def table(found: Iterable[tuple[str, str, Mapping[str, tuple[int, int]] | None]]) -> str:
    """Return the table as Markdown: a row a source and target."""
    cells: dict[tuple[str, str], Counter[tuple[str, int]]] = defaultdict(Counter)
    unread: set[tuple[str, str]] = set()
    for source, to, pairs in found:
        if pairs is None:
            unread.add((source, to))
            continue
        for kind, (came, had) in pairs.items():
            cells[source, to].update({(kind, 0): came, (kind, 1): had})
    sources = sorted({source for source, _ in cells})
    lines = [f"| target | {' | '.join(sources)} |", f"|---|{'---|' * len(sources)}"]
    own = " | ".join(
        ", ".join(f"{cells[source, 'bundle'][kind, 1]} {kind}" for kind in KINDS if cells[source, "bundle"][kind, 1])
        for source in sources
    )
    lines.append(f"| has | {own} |")
    for to in TARGETS:
        said = [_cell(cells[source, to], unread=(source, to) in unread) for source in sources]
        lines.append(f"| `{to}` | {' | '.join(said)} |")
    return "\n".join(lines) + "\n"


def _cell(cell: Counter[tuple[str, int]], *, unread: bool) -> str:
    if unread and not cell:
        return "not read"
    lost = [f"{kind} {cell[kind, 0]}/{cell[kind, 1]}" for kind in KINDS if cell[kind, 0] < cell[kind, 1]]
    return ", ".join(lost) or "all"


def files() -> list[Path]:
    """Return the recorded sessions, or the samples of the tests."""
    folder = os.environ.get("PALAVER_TEST_DATA")  # noqa: TID251 - as in the tests
    if not folder:
        return sorted(Path("tests/golden").glob("*.palaver"))
    groups = [
        sorted(group.iterdir(), key=lambda path: path.stat().st_size)
        for group in sorted(Path(folder).iterdir())
        if group.is_dir()
    ]
    return [path for group in groups for path in group[:EACH]]


def main(arguments: list[str]) -> int:
    """Write the page, or print the table of some files."""
    if arguments:
        sys.stdout.write(table(rows(map(Path, arguments))))
        return 0
    PAGE.write_text(HEAD + table(rows(files())), encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
