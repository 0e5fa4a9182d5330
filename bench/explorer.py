"""The explorer on a session of 30,000 entries and 100 MB, in Chromium: how long each screen takes, how much it holds; and the viewers beside it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import palaver.explorer
from bench.explorer_session import long_session
from bench.measure import Row
from palaver import Session
from palaver.session import searchable
from palaver.store import Durability, SqliteStore
from tests.explorer.browser import CHROMIUM, Tab, browser

_REPEATED = 3
_SESSIONS = 10_000

_CLOCK = """
window.shown = (test) => new Promise((done) => { const look = () => test() ? requestAnimationFrame(() => done()) : requestAnimationFrame(look); look(); });
window.took = async (act, test) => { const start = performance.now(); act(); await shown(test); return performance.now() - start; };
window.labelled = (list) => [...document.querySelectorAll(`#${list} .row .grow`)].filter((one) => one.textContent.trim()).length > 3;
window.ask = async (path, options) => { const start = performance.now(); await (await fetch(path, options)).text(); return performance.now() - start; };
"""

_SCROLL = """new Promise((done) => {
  const list = document.getElementById("entries"), step = list.scrollHeight / 200;
  let worst = 0, last = null, frames = 0;
  const next = (now) => {
    if (last !== null) worst = Math.max(worst, now - last);
    last = now;
    list.scrollTop = frames < 100 ? frames * 90 : frames * step;
    if (frames++ < 200) requestAnimationFrame(next); else done(worst);
  };
  requestAnimationFrame(next);
})"""
"""Scrolls by rows, then by leaps: what no frame may take longer than."""

_TYPED = """(async () => {
  document.querySelector("header button").click();
  await shown(() => document.querySelector("input[type=search]"));
  const field = document.querySelector("dialog input[type=search]"), times = [];
  for (let end = 1; end <= TEXT.length; end += 1) {
    const start = performance.now();
    const found = new Promise((done) => {
      const watch = new MutationObserver(() => / hit/.test(document.querySelector("dialog [role=status]").textContent) && (watch.disconnect(), done()));
      watch.observe(document.querySelector("dialog"), { childList: true, characterData: true, subtree: true });
    });
    field.value = TEXT.slice(0, end);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await found;
    times.push(performance.now() - start);
  }
  document.querySelector("dialog .close").click();
  return times;
})()"""
"""Types a query, and waits for the hits of every letter."""

_WHATIF = """(async () => {
  const start = performance.now(), stop = new AbortController();
  const reader = (await fetch("PATH", { signal: stop.signal })).body.pipeThrough(new TextDecoderStream()).getReader();
  let told = null, last = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return [told, performance.now() - start, last.slice(0, 300)];
    last = value;
    if (told === null && value.includes("reading")) {
      told = performance.now() - start;
      if (CANCEL) {
        stop.abort();
        return [told, null, ""];
      }
    }
  }
})()"""
"""Asks what a policy would have made: the milliseconds to the first progress, and in all."""


class Shown(NamedTuple):
    """The explorer of a store in a page.

    Attributes:
        page: The page.
        server: The process that serves it.
        painted: Seconds from the start of the command to the painted list.
    """

    page: Tab
    server: subprocess.Popen[str]
    painted: float

    def ask(self, script: str) -> float:
        """Return the number that a script gives."""
        return float(self.page.ask(script))

    def went(self, to: str, test: str) -> float:
        """Go to a screen, and return the seconds until something holds."""
        return self.ask(f"took(() => {{ location.hash = {json.dumps(to)}; }}, () => {test})") / 1000

    def peak(self) -> float:
        """Return the most memory that the server occupied, in megabytes (Linux)."""
        lines = Path(f"/proc/{self.server.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000

    def heap(self) -> float:
        """Return what the page's heap holds after a collection, in megabytes."""
        self.page.send("HeapProfiler.collectGarbage")
        return float(self.page.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


@contextmanager
def _opened(page: Tab, store: Path, to: str = "sessions") -> Iterator[Shown]:
    """Run `palaver open` on a store, and show a screen in a new tab."""
    command = [sys.executable, "-m", "palaver", "open", "--store", str(store), "--no-browser", "--json"]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["url"].replace("to=/", f"to=/{to}")
            page.blank()
            page.send("Page.navigate", url=address)
            page.until("document.querySelector('.row')")
            page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
            painted = time.perf_counter() - start
            page.ask(_CLOCK)
            yield Shown(page, server, painted)
        finally:
            server.terminate()


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Make the sessions, and time the screens of each."""
    if CHROMIUM is None:
        return [Row("explorer: there is no Chromium here", "skipped")]
    rows = [*_sizes()]
    with tempfile.TemporaryDirectory() as files, browser(Path(files)) as page:
        rows += _many(page, folder / "many.db", _SESSIONS // 10 if quick else _SESSIONS)
        for recorded in (False, True):
            path = folder / f"{'recorded' if recorded else 'imported'}.db"
            what, calls = long_session(path, recorded=recorded, quick=quick)
            with closing(SqliteStore(path)) as store:
                store.index(searchable)
            rows += _screens(page, path, what, calls)
            if not recorded:
                rows += _files(page, path)
    return rows


def _row(what: str, seconds: float, aim: str = "") -> Row:
    return Row(what, f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1000:,.0f} ms", aim=aim)


def _several(measured: Callable[[int], float]) -> float:
    return median(measured(number) for number in range(_REPEATED))


def _screens(page: Tab, path: Path, what: str, calls: int) -> Iterator[Row]:
    with closing(SqliteStore(path)) as store:
        (record,) = store.sessions()
    assert record.root is not None
    root = f"/s/{record.session_id}"
    yield from _cold(page, path, what, root, calls)
    with _opened(page, path) as shown:
        yield from _lists(shown, root)
        yield from _calls(shown, root, calls)
        typed = page.ask(_TYPED.replace("TEXT", json.dumps(f"part zebra{calls // 3}")))
        yield _row("  search, each key; the median", median(typed) / 1000, "≤ 0.1 s")
        yield _row("    the worst", max(typed) / 1000)
        yield from _whatif(shown, record.root, calls)
        drawn = "document.querySelectorAll('canvas').length === 2"
        yield _row("  cost and composition", shown.went(f"{root}/cost", drawn))
        yield Row("  memory of the server, at the most", f"{shown.peak():,.0f} MB", aim="≤ 250 MB")


def _call(root: str, number: int) -> tuple[str, str]:
    """Return the address of a call's screen, and what holds when its first rows are there."""
    return f"{root}/call/{number}", f"document.body.textContent.includes('Call {number:,} of') && labelled('blocks')"


_DIFFERS = "document.querySelector('#differences .row')"


def _cold(page: Tab, path: Path, what: str, root: str, calls: int) -> Iterator[Row]:
    """Time the first screens of servers that just began."""

    def cold(to: str, test: str) -> float:
        with _opened(page, path) as shown:
            return shown.went(to, test)

    def first(_: int) -> float:
        with _opened(page, path) as shown:
            return shown.painted

    compared = f"{root}/compare?a={calls - 1}&b={calls}"
    yield _row(f"`palaver open` to painted list: {what}", _several(first), "≤ 1.5 s")
    yield _row("  a call, cold", _several(lambda at: cold(*_call(root, calls // 2 + at))), "≤ 1 s")
    yield _row("  two calls compared, cold", _several(lambda _: cold(compared, _DIFFERS)), "≤ 2 s")


def _lists(shown: Shown, root: str) -> Iterator[Row]:
    """Time the list of entries, from the list of sessions on."""
    page, read, rows, whole, strip = shown.page, list[float](), list[float](), list[float](), list[float]()
    for _ in range(_REPEATED):
        page.ask("location.hash = '/sessions'; shown(() => document.querySelector('#sessions .row'))")
        read.append(
            shown.ask(
                "took(() => document.querySelector('#sessions .row').click(), () => document.querySelectorAll('#reading .said').length > 3)"
            )
        )
        begun = time.perf_counter()
        rows.append(1000 * shown.went(f"{root}/log", "labelled('entries')"))
        page.ask("shown(() => !/ read …/.test(document.body.textContent))")
        whole.append(time.perf_counter() - begun)
        page.ask("shown(() => document.querySelector('.strip') && / prompt/.test(document.body.textContent))")
        strip.append(time.perf_counter() - begun)
    yield _row("  click to the first words that are read", median(read) / 1000, "≤ 0.8 s")
    yield _row("  to the first rows of the log with their words", median(rows) / 1000, "≤ 0.8 s")
    yield _row("  whole index", median(whole), "≤ 2.5 s")
    yield _row("  and the strip of all calls, and where to jump to", median(strip))
    yield _row("  worst frame while scrolling", _several(lambda _: shown.ask(_SCROLL)) / 1000, "≤ 50 ms")
    yield Row("  nodes in the page", f"{shown.ask('document.querySelectorAll(`*`).length'):,.0f}", aim="≤ 2,000")
    yield Row("  heap of the tab", f"{shown.heap():,.1f} MB", aim="≤ 50 MB")


def _calls(shown: Shown, root: str, calls: int) -> Iterator[Row]:
    """Time calls and comparisons of a server that showed some before."""
    shown.went(*_call(root, calls // 3))
    yield _row("  a call", _several(lambda at: shown.went(*_call(root, calls - 3 - 2 * at))), "≤ 0.3 s")
    times = []
    for at in range(_REPEATED):
        shown.went(f"{root}/compare", "!document.querySelector('#differences')")
        times.append(shown.went(f"{root}/compare?a={calls - 9 - 2 * at}&b={calls - 8 - 2 * at}", _DIFFERS))
    yield _row("  two calls compared", median(times), "≤ 0.5 s")


def _whatif(shown: Shown, dialog: str, calls: int) -> Iterator[Row]:
    path = f"/api/dialogs/{dialog}/whatif?call={calls - 1}&policy=palaver&budget=20000"
    asked = _WHATIF.replace("PATH", path)
    told, _, _ = shown.page.ask(asked.replace("CANCEL", "true"))
    begun, working = time.perf_counter(), Path(f"/proc/{shown.server.pid}/task/{shown.server.pid}/children")
    while working.read_text():
        time.sleep(0.001)
    yield _row("  what-if: first progress", told / 1000, "≤ 0.5 s")
    yield _row("    its process ends after the reader left", time.perf_counter() - begun, "≤ 0.2 s")
    _, took, last = shown.page.ask(asked.replace("CANCEL", "false"))
    assert last.startswith('{"result"'), last
    yield _row("    its answer", took / 1000)


def _many(page: Tab, path: Path, number: int) -> Iterator[Row]:
    with closing(SqliteStore(path, durability=Durability.NORMAL)) as store:
        for at in range(number):
            Session.create(store, f"session {at}").root.put_text(f"Go on with {at}.")
    with _opened(page, path) as shown:
        yield _row(f"`palaver open` to painted list: {number:,} sessions", shown.painted, "≤ 1.5 s")
        start = time.perf_counter()
        page.ask("shown(() => !/ …/.test(document.querySelector('.bar [role=status]').textContent))")
        yield _row("  all of them", shown.painted + time.perf_counter() - start)
        yield Row("  memory of the server, at the most", f"{shown.peak():,.0f} MB", aim="≤ 250 MB")


def _files(page: Tab, path: Path) -> Iterator[Row]:
    """Write the session as one HTML file, and as a transcript that claude-code-log makes one of.

    claude-tap 0.1.146 opens only what it recorded itself: of the lines of a transcript it shows that there are so many turns.
    """
    with closing(SqliteStore(path)) as store:
        (record,) = store.sessions()
        assert record.root is not None
        size = store.last(record.root).total / 1e6
    file, transcript, theirs = (path.with_name(name) for name in ("ours.html", "transcript.jsonl", "theirs.html"))
    ours = [sys.executable, "-m", "palaver", "export", "long", "--store", str(path), "--to"]
    subprocess.run([*ours, "claude-code", "-o", str(transcript)], check=True, capture_output=True)
    viewer = [str(Path(sys.executable).with_name("claude-code-log")), str(transcript), "-o", str(theirs)]
    for what, command, made, aim in (
        ("exported as one HTML file", [*ours, "html", "--yes", "-o", str(file)], file, f"≤ {0.28 * size:.0f} MB"),
        ("  by claude-code-log", viewer, theirs, ""),
    ):
        took, most = _measured(command)
        yield Row(what, f"{made.stat().st_size / 1e6:,.1f} MB", aim=aim)
        yield Row("    took, and occupied at the most", f"{took:,.1f} s, {most:,.0f} MB")
        page.blank()
        start = time.perf_counter()
        page.send("Page.navigate", url=made.as_uri())
        while not page.ask("document.querySelector('.row, .message-node') !== null"):  # a large page takes minutes
            time.sleep(0.02)
        page.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        yield _row("    first content in the browser", time.perf_counter() - start, "≤ 1 s" if aim else "")


def _measured(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds, and the most memory that it occupied, in megabytes (Linux)."""
    start = time.perf_counter()
    pid = os.posix_spawn(
        command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, used = os.wait4(pid, 0)
    assert status == 0, command
    return time.perf_counter() - start, used.ru_maxrss / 1000


def _sizes() -> Iterator[Row]:
    """Yield how much of the wheel the explorer is, and what a browser is sent."""
    folder = Path(palaver.explorer.__file__).parent
    shown = [file for file in (folder / "static").rglob("*") if file.suffix in {".js", ".css", ".html", ".svg"}]
    sent = sum(len(gzip.compress(file.read_bytes())) for file in shown)
    yield Row("the page, gzipped", f"{sent / 1000:,.1f} KB", aim="≤ 160 KB")
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for one in folder.rglob("*"):
                if one.is_file() and "__pycache__" not in one.parts:
                    packed.write(one, one.relative_to(folder))
        yield Row("the explorer in the wheel", f"{file.tell() / 1000:,.1f} KB", aim="≤ 250 KB")
