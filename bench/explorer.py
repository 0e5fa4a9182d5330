"""The explorer on a session of 30,000 entries and 100 MB, in Chromium: how long each screen takes, how much it holds; and the viewers beside it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import palaver.explorer
from bench.explorer_session import long_session
from bench.measure import Row, timed
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
"""Types a query, and waits for the hits of every letter; the pause before the server is asked counts."""

_WHATIF = """(async () => {
  const start = performance.now();
  const sent = await fetch("/api/work", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(JOB) });
  const { id } = await sent.json(), path = `/api/work/${id}`;
  const reader = (await fetch(path)).body.pipeThrough(new TextDecoderStream()).getReader();
  let told = null, asked = null, last = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return [told, asked === null ? null : performance.now() - asked, performance.now() - start, last.slice(0, 300)];
    last = value;
    if (told === null && value.includes("reading")) {
      told = performance.now() - start;
      if (CANCEL) { asked = performance.now(); fetch(path, { method: "DELETE" }); }
    }
  }
})()"""
"""Asks what a policy would have made: the milliseconds to the first progress, from the cancelling to the end, and in all."""


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
def _opened(page: Tab, store: Path, to: str = "") -> Iterator[Shown]:
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
    return rows


def _row(what: str, seconds: float, aim: str = "") -> Row:
    return Row(what, f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1000:,.0f} ms", aim=aim)


def _several(times: int, measured: Callable[[int], float]) -> float:
    return median(measured(number) for number in range(times))


def _screens(page: Tab, path: Path, what: str, calls: int) -> Iterator[Row]:
    with closing(SqliteStore(path)) as store:
        (record,) = store.sessions()
    root, dialog = f"/s/{record.session_id}", record.root

    def cold(to: str, test: str) -> float:
        """Go to a screen of a server that just began."""
        with _opened(page, path) as shown:
            return shown.went(to, test)

    def first(_: int) -> float:
        with _opened(page, path) as shown:
            return shown.painted

    def call(number: int) -> tuple[str, str]:
        """Return the address of a call's screen, and what holds when its first rows are there."""
        return f"{root}/call/{number}", f"document.body.textContent.includes('Call {number:,} of') && labelled('blocks')"

    differs = "document.querySelector('#differences .row')"
    yield _row(f"`palaver open` to painted list: {what}", _several(_REPEATED, first), "≤ 1.5 s")
    yield _row("  a call, cold", _several(3, lambda at: cold(*call(calls // 2 + at))), "≤ 1 s")
    compared = f"{root}/compare?a={calls - 1}&b={calls}"
    yield _row("  two calls compared, cold", _several(3, lambda _: cold(compared, differs)), "≤ 2 s")
    with _opened(page, path) as shown:
        clicked = "took(() => document.querySelector('#sessions .row').click(), () => labelled('entries'))"
        rows, whole, strip = [], [], []
        for _ in range(_REPEATED):
            page.ask("location.hash = '/'; shown(() => document.querySelector('#sessions .row'))")
            begun = time.perf_counter()
            rows.append(shown.ask(clicked) / 1000)
            page.ask("shown(() => !/read …/.test(document.body.textContent))")
            whole.append(time.perf_counter() - begun)
            page.ask("shown(() => document.querySelector('.strip') && / prompt/.test(document.body.textContent))")
            strip.append(time.perf_counter() - begun)
        yield _row("  click to first rows with their words", median(rows), "≤ 0.8 s")
        yield _row("  whole index", median(whole), "≤ 2.5 s")
        yield _row("  and the strip of all calls, and where to jump to", median(strip))
        yield _row("  worst frame while scrolling", _several(3, lambda _: shown.ask(_SCROLL)) / 1000, "≤ 50 ms")
        yield Row("  nodes in the page", f"{shown.ask('document.querySelectorAll(`*`).length'):,.0f}", aim="≤ 2,000")
        yield Row("  heap of the tab", f"{shown.heap():,.1f} MB", aim="≤ 50 MB")
        shown.went(*call(calls // 3))
        yield _row("  a call", _several(_REPEATED, lambda at: shown.went(*call(calls - 3 - 2 * at))), "≤ 0.3 s")
        pair = [f"{root}/compare?a={calls - 3 - at}&b={calls - 2 - at}" for at in range(2 * _REPEATED)]
        empty = "!document.querySelector('#differences')"
        times = []
        for to in pair[::2]:
            shown.went(f"{root}/compare", empty)
            times.append(shown.went(to, differs))
        yield _row("  two calls compared", median(times), "≤ 0.5 s")
        typed = page.ask(_TYPED.replace("TEXT", json.dumps(f"part zebra{calls // 3}")))
        yield _row("  search, each key, its pause of 60 ms included; the median", median(typed) / 1000, "≤ 0.1 s")
        yield _row("    the worst", max(typed) / 1000)
        job = {"do": "whatif", "dialog": dialog, "call": calls - 1, "policy": "palaver", "budget": 20_000}
        waited = page.ask(_WHATIF.replace("JOB", json.dumps(job)).replace("CANCEL", "true"))
        yield _row("  what-if: first progress", waited[0] / 1000, "≤ 0.5 s")
        yield _row("    cancelled", waited[1] / 1000, "≤ 0.2 s")
        done = page.ask(_WHATIF.replace("JOB", json.dumps({**job, "budget": 19_000})).replace("CANCEL", "false"))
        assert done[3].startswith('{"result"'), done
        yield _row("    its answer", done[2] / 1000)
        yield _row(
            "  cost and composition", shown.went(f"{root}/cost", "document.querySelectorAll('canvas').length === 2")
        )
        yield Row("  memory of the server, at the most", f"{shown.peak():,.0f} MB", aim="≤ 250 MB")


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


def _sizes() -> Iterator[Row]:
    """Yield how much of the wheel the explorer is, and what a browser is sent."""
    folder = Path(palaver.explorer.__file__).parent
    shown = [file for file in (folder / "static").rglob("*") if file.suffix in {".js", ".css", ".html", ".svg"}]
    sent = sum(len(gzip.compress(file.read_bytes())) for file in shown)
    yield Row("the page, gzipped", f"{sent / 1000:,.1f} KB", aim="≤ 100 KB")
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for one in folder.rglob("*"):
                if one.is_file() and "__pycache__" not in one.parts:
                    packed.write(one, one.relative_to(folder))
        yield Row("the explorer in the wheel", f"{file.tell() / 1000:,.1f} KB", aim="≤ 250 KB")
