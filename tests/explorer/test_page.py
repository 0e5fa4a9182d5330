"""The exported page: one file that shows in a browser, without a server, what the explorer shows; and holds nothing else."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode, b85decode
from collections import Counter
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import Any

from palaver import AssistantMessage, Session, SqliteStore
from palaver.cli.outcome import Exit
from palaver.messages import ImageContent, Message, TextContent, ToolCallContent, ToolResultContent
from tests.cli.commands import Palaver, run
from tests.explorer.browser import Tab, browser
from tests.explorer.running import looked_at

_KEY = "ghp_" + "a1B2c3D4e5F6" * 3
_RUN = "document.title='owned'"
_HOSTILE = f"</script></pre>'\"><script>{_RUN}</script><img src=x onerror={_RUN}>\x1b[2J\u202e<!-- <script>"
_PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def talk(store: SqliteStore) -> tuple[str, str, str]:
    """Write a session of two recorded calls, the second of which sees less, a fork, a picture, a key, and markup wherever there is text; return its id and those of its dialogs."""
    dialog = Session.create(store, f"talk {_HOSTILE}", workdir=_HOSTILE).root
    dialog.put_text(f"Be brief. {_HOSTILE}", role="system")
    dialog.append(Message(contents=(TextContent(f"use {_KEY} " + "word " * 3_000), ImageContent([_PNG]))))
    dialog.append(AssistantMessage(contents=(ToolCallContent(id="c1", name="read", args={"to": _HOSTILE}),)))
    dialog.append(Message(role="tool", contents=(ToolResultContent(id="c1", name="read", content=_HOSTILE),)))
    for budget in (100_000, 1_500):
        dialog.put_text(f"And now? {_HOSTILE}")
        dialog.calls.record(dialog.request("anthropic", "claude-opus-4-6", policy="palaver", budget=budget))
        dialog.append(AssistantMessage(content="Done.", model="claude-opus-4-6", usage={"input_tokens": 7}))
    fork = dialog.fork()
    fork.put_text("Another way.")
    dialog.put_text("The usual way.")
    return dialog.session_id, dialog.dialog_id, fork.dialog_id


def answers(path: Path) -> dict[str, Any]:
    """Return all that a file answers, by the paths."""
    found: dict[str, Any] = {}
    for packed in re.findall(r'id="part-\d+">([^<]*)</script>', path.read_text("utf-8")):
        found |= json.loads(gzip.decompress(b85decode(packed.replace(",", "<"))))
    return found


def test_the_file_shows_what_the_server_shows(tmp_path: Path) -> None:
    """On every screen of a session, a call and a comparison, from disk: the same words, no request, and nothing that was said is run."""
    palaver = Palaver(tmp_path)
    with looked_at(tmp_path, talk) as (_, tab, (session, dialog, other)):
        here, served = f"#/s/{session}", tab._session
        shown: dict[tuple[str, ...], list[str]] = {
            (): [
                f"?d={dialog}",
                f"/log?d={dialog}",
                f"?d={other}",
                f"/cost?d={dialog}",
                f"/compare?one={dialog}&other={other}",
            ],
            ("--calls",): [f"/call/1?d={dialog}", f"/call/2?d={dialog}", f"/call/1?d={other}"],
            ("--call", "2"): [f"/call/2?d={dialog}", f"/call/2?d={dialog}&wire=1"],
            ("--compare", "1", "2"): [f"/compare?d={dialog}&a=1&b=2"],
        }
        for words, routes in shown.items():
            file = tmp_path / "page.html"
            assert palaver("export", session, "--to", "html", "--keep-secrets", *words, "-o", file).code == 0
            for route in routes:
                tab.turn(served)
                expected = read(tab, here + route)
                tab.asked.clear()
                tab.open(file.as_uri() + here + route)
                assert read(tab, here + route) == expected
                assert {address.partition(":")[0] for address in tab.asked} <= {"file", "data"}
                assert not tab.ask("document.querySelector('.problem')")
                assert tab.ask("document.title") != "owned"
        assert tab.told == []


def read(tab: Tab, route: str) -> list[str]:
    """Return the texts of a screen as every third of its rows is chosen, and the pictures in them; without commands, of which a file has none."""
    tab.go(route)
    texts: list[str] = []
    for row in range(1, max(tab.ask("document.querySelectorAll('.row').length"), 2), 3):
        tab.ask(f"document.querySelectorAll('.row')[{row}]?.click()")
        tab.settle()
        tab.ask("document.querySelector('.body > button')?.click()")
        tab.settle()
        texts += [
            line
            for line in tab.text("main").splitlines()
            if not re.match(
                r"\s*(JSON|Export|When was this in view\?|Request|In the log|What changed|\W*[][]\W*|palaver .*|)$",
                line,
            )
        ]
        texts += map(str, tab.ask("[...document.images].map((image) => image.naturalWidth)"))
    return texts


def test_secrets_are_listed_before_a_file_is_written(palaver: Palaver) -> None:
    """The place, the kind and the beginning; with --yes the file holds none, the same bytes each time; what is kept was asked for."""
    with SqliteStore(palaver.store) as store:
        session, *_ = talk(store)
    file = palaver.folder / "page.html"
    words = ("export", session, "--to", "html", "-o", file)
    preview = palaver(*words, "--json")
    assert preview.code == Exit.FOUND
    listed = preview.row()["secrets"]
    handles = [path.rpartition("/")[2] for path in _pages(palaver, *words, "--keep-secrets") if "/entries/" in path]
    file.unlink()
    assert {(row["kind"], row["beginning"]) for row in listed} == {("github-token", "ghp_…")}
    assert {row["place"] for row in listed} <= set(handles)
    assert f"{len(listed)} secrets would be left out" in palaver(*words).err
    assert not file.exists()
    assert _KEY not in json.dumps(_pages(palaver, *words, "--yes"))
    first = file.read_bytes()
    for more in ((), ("--call", "2"), ("--compare", "1", "2")):
        assert _KEY not in json.dumps(_pages(palaver, *words, "--yes", *more)), more
    _pages(palaver, *words, "--yes")
    assert file.read_bytes() == first
    assert _KEY in json.dumps(_pages(palaver, *words, "--keep-secrets"))


def _pages(palaver: Palaver, *words: object) -> dict[str, Any]:
    ran = palaver(*words)
    assert ran.code == 0, ran
    return answers(palaver.folder / "page.html")


def test_what_was_erased_is_in_no_file(palaver: Palaver) -> None:
    """The answer for it says that it was erased; a file of before is named by the erasure."""
    with SqliteStore(palaver.store) as store:
        session, *_ = talk(store)
    words = ("export", session, "--to", "html", "-o", palaver.folder / "page.html", "--yes")
    before = _pages(palaver, *words)
    gone = next(path for path, found in before.items() if "/entries/" in path and "word word" in str(found))
    handle = gone.rpartition("/")[2]
    assert str(palaver.folder / "page.html") in palaver("erase", handle).out
    assert palaver("erase", handle, "--yes", "--files").code == 0
    found = _pages(palaver, *words)
    assert found[gone]["error"]["kind"] == "Erased"
    assert "word word" not in json.dumps(found)
    assert palaver(*words, "--call", "9").code == 4


def test_a_replayed_call_is_a_page_of_its_own(tmp_path: Path) -> None:
    """It shows what the policy keeps and leaves out of a session of the lab, its request and the originals, without keys, and is called replayed."""
    with SqliteStore(tmp_path / "store.db") as store:
        talk(store)
    lab = ("lab", tmp_path / "store.db", "--model", "gpt-4o", "--policies", "palaver", "--budget", "2000")
    assert run(*lab, "--out", tmp_path / "out").code == 0
    (key,) = (path.stem for path in (tmp_path / "out" / "sessions").iterdir())
    file = tmp_path / "page.html"
    assert run(*lab, "--show", f"{key}:2", "--html", file).code == 0
    assert _KEY not in json.dumps(answers(file))
    with browser(tmp_path / "chromium") as tab:
        tab.open(file.as_uri())
        seen = tab.text()
        assert "replayed under palaver" in seen
        assert "not shown" in seen
        for row in range(tab.ask("document.querySelectorAll('.row').length")):
            tab.ask(f"document.querySelectorAll('.row')[{row}].click()")
            assert "not in the exported file" not in tab.settle()
        assert "compiled for OpenAI Chat" in tab.go(f"{tab.ask('location.hash')}&wire=1")
        assert tab.told == []


def test_the_page_is_small() -> None:
    """All that a browser is sent is at most 160 KB, each file gzipped."""
    folder = Path(str(files("palaver.explorer"))) / "static"
    sent = [file for file in folder.rglob("*") if file.suffix in {".js", ".css", ".html", ".svg"}]
    assert sum(len(gzip.compress(file.read_bytes())) for file in sent) <= 160_000


def test_no_module_imports_itself_by_way_of_others() -> None:
    """The imports of the page's modules have an order; the first module of it is imported by none."""
    folder = files("palaver.explorer") / "static"
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".js")}
    imports = {name: re.findall(r'^import .* from "\./(.+)";$', text, re.MULTILINE) for name, text in texts.items()}
    order = list(TopologicalSorter(imports).static_order())  # raises CycleError
    assert sorted(order) == sorted(texts)
    assert (
        [name for name in texts if not any(name in others for others in imports.values())] == [order[-1]] == ["app.js"]
    )


def test_modules_can_stand_in_one_file() -> None:
    """No name is declared at the top of two of them, and an import is a line of its own."""
    names: Counter[str] = Counter()
    for file in (files("palaver.explorer") / "static").iterdir():
        if file.name.endswith(".js"):
            text = file.read_text("utf-8")
            found = re.findall(
                r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+|\{[^}]*\})", text, re.MULTILINE
            )
            names.update(name for each in found for name in re.findall(r"\w+", each))
            assert (
                re.findall(
                    r"^(?:im|ex)port\b(?! (?:\{.*\} from \"\./\w+\.js\";$|async |function |class |const ))",
                    text,
                    re.MULTILINE,
                )
                == []
            )
    assert [name for name, count in names.items() if count > 1] == []
