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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass
class Page:
    """A page that is open, over the pipe of the DevTools protocol.

    Source: chromedevtools.github.io/devtools-protocol; with `--remote-debugging-pipe` messages end with a NUL, in on 3 and out on 4.

    Attributes:
        into: Where messages go.
        out: Where they come from.
    """

    into: int
    out: int
    _session: str = ""
    _number: int = 0
    _read: bytes = b""

    def send(self, method: str, **words: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
        """Say something, and give the answer."""
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

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            more = os.read(self.out, 1 << 20)
            assert more, "the browser is gone"
            self._read += more
        said, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(said)
        return found

    def open(self, address: str, width: int, height: int, *, dark: bool = False) -> None:
        """Open a page, and wait until it is ready."""
        self._session = ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.send("Emulation.setEmulatedMedia", features=[scheme, still])
        self.send("Page.navigate", url=address)
        self.until("document.documentElement?.dataset.ready === 'true'")

    def ask(self, script: str) -> Any:  # noqa: ANN401 - any JSON value
        """Give what an expression is in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression holds: the page has nobody to tell us."""
        end = time.monotonic() + _WAIT
        while not self.ask(f"new Promise((done) => ({script}) ? done(true) : setTimeout(() => done(false), 20))"):
            assert time.monotonic() < end, script

    def press(self, *keys: str) -> None:
        """Press keys, one after the other; a single letter or digit is typed."""
        for key in keys:
            code = _KEYS.get(key, ord(key[0]))
            text = {"Enter": "\r", "Space": " "}.get(key, key if len(key) == 1 else "")
            word = {"key": " " if key == "Space" else key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", **word, **({"text": text} if text else {}))
            self.send("Input.dispatchKeyEvent", type="keyUp", **word)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Take a picture of what is shown, or of the whole page."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """Start Chromium without a window, with its files in a folder, and end it."""
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
        yield Page(ours_out, ours_in)
    finally:
        process.terminate()
        process.wait(20)
        os.close(ours_out)
        os.close(ours_in)
