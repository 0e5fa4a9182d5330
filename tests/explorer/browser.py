"""A browser that is driven as somebody with a keyboard would: keys in, what is there out."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "Space": 32,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowUp": 38,
    "ArrowDown": 40,
}
_WAIT = 60.0
_DRAWN = """new Promise((done) => {
  setTimeout(done, 60);
  requestAnimationFrame(() => requestIdleCallback(done));
}).then(() => document.body.innerText)"""
"""The text of a page that had a frame to draw, and to ask for what it drew without; no frame comes to a page behind another one."""

_ENDED = {"Network.loadingFinished", "Network.loadingFailed"}


@dataclass
class Tab:
    """A page that is open, over the pipe of the DevTools protocol.

    Source: chromedevtools.github.io/devtools-protocol; with `--remote-debugging-pipe` messages end with a NUL, in on 3 and out on 4.

    Attributes:
        into: Where messages go.
        out: Where they come from.
        asked: The addresses of all requests, each of the tab that was turned to.
        told: What the page or the browser complained of: exceptions, dialogs, entries of the log, what the policy for content forbade.
    """

    into: int
    out: int
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    _session: str = ""
    _number: int = 0
    _read: bytes = b""
    _pending: set[str] = field(default_factory=set)

    def send(self, method: str, **words: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """Send a message and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": words}
        if self._session:
            message["sessionId"] = self._session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                answer: dict[str, Any] = found["result"]
                return answer
            event = found.get("method", "")
            if found.get("sessionId") == self._session or not event.startswith("Network."):  # other tabs go on asking
                self._heard(event, found.get("params", {}))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            more = os.read(self.out, 1 << 20)
            assert more, "the browser is gone"
            self._read += more
        said, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(said)
        return found

    def _heard(self, event: str, words: dict[str, Any]) -> None:
        assert event != "Page.javascriptDialogOpening", words
        if event == "Network.requestWillBeSent":
            self.asked.append(words["request"]["url"])
            self._pending.add(words["requestId"])
        elif event in _ENDED:
            self._pending.discard(words["requestId"])
        elif event == "Runtime.exceptionThrown":
            self.told.append(json.dumps(words["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.told.append(f"{words['entry']['source']}: {words['entry']['text']} {words['entry'].get('url', '')}")

    def blank(self, width: int = 1280, height: int = 800, *, dark: bool = False) -> str:
        """Begin a new tab with nothing in it, and return its name."""
        self._session = ""
        self._pending.clear()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{room}.enable")
        self.look(width, height, dark=dark)
        return self._session

    def open(self, address: str, width: int = 1280, height: int = 800, *, dark: bool = False) -> str:
        """Open a page in a new tab, wait until it stands still, and return the tab's name."""
        name = self.blank(width, height, dark=dark)
        self.send("Page.navigate", url=address)
        self.settle()
        return name

    def turn(self, tab: str) -> None:
        """Turn to another tab."""
        self._session = tab
        self._pending.clear()
        self.send("Page.bringToFront")

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page and its colours; nothing moves."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.send("Emulation.setEmulatedMedia", features=[scheme, still])

    def go(self, route: str) -> str:
        """Go to a screen of the page, and return its text."""
        self.ask(f"location.hash = {json.dumps(route)}")
        return self.settle()

    def reload(self) -> str:
        """Load the page again, and return its text."""
        self.ask("delete document.documentElement.dataset.ready")
        self.send("Page.reload")
        return self.settle()

    def settle(self) -> str:
        """Wait until the page is ready, asks nothing and draws nothing new, and return its text."""
        self.until("document.documentElement?.dataset.ready === 'true'")
        end, before, quiet = time.monotonic() + _WAIT, "", 0
        while quiet < 2:
            assert time.monotonic() < end, (before, self._pending)
            text = self.ask(_DRAWN)
            quiet = quiet + 1 if text == before and not self._pending else 0
            before = text
        return before

    def text(self, where: str = "body") -> str:
        """Return the text of a part of the page."""
        found = self.ask(f"document.querySelector({json.dumps(where)})?.innerText ?? ''")
        assert isinstance(found, str)
        return found

    def ask(self, script: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return what an expression is in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression holds: the page has nobody to tell us."""
        end = time.monotonic() + _WAIT
        while not self.ask(script):
            assert time.monotonic() < end, (script, self.text()[-3000:])
            time.sleep(0.02)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other; a single letter or digit is typed."""
        for key in keys:
            code = _KEYS.get(key, ord(key[0]))
            text = {"Enter": "\r", "Space": " "}.get(key, key if len(key) == 1 else "")
            word = {"key": " " if key == "Space" else key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", **word, **({"text": text} if text else {}))
            self.send("Input.dispatchKeyEvent", type="keyUp", **word)

    def tab_to(self, where: str) -> None:
        """Press Tab until the focus is on something."""
        for _ in range(200):
            if self.ask(f"document.activeElement.matches({json.dumps(where)})"):
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not lead to {where}: {self.ask('document.activeElement.outerHTML')[:200]}")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Take a picture of what is shown, or of the whole page."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """Start Chromium without a window, with its files in a folder, and end it; without Chromium the test skips."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path (Debian, Ubuntu: apt install chromium)")
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    words = f"--headless --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir='{folder}'"
    command = ["/bin/bash", "-c", f"exec '{CHROMIUM}' {words} 3<&{theirs_in} 4>&{theirs_out}"]
    process = subprocess.Popen(
        command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Tab(ours_out, ours_in)
    finally:
        process.terminate()
        process.wait(20)
        os.close(ours_out)
        os.close(ours_in)
