"""Recording beside the traffic: calls wait in line for one thread, and a call that cannot be recorded is said once."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from palaver.errors import InvalidMessage, PalaverError
from palaver.proxy.answers import AnswerCopy, decoded
from palaver.proxy.mending import Mended
from palaver.proxy.recorder import ProxiedCall, Recorder

MOST_WAITING = 256 << 20
"""Bytes of requests and answers that may wait to be recorded. A call beyond is forwarded and not recorded."""


class RecorderThread:
    """Records calls in a thread of its own, in the order in which they are submitted.

    Attributes:
        fault: Why the newest call could not be recorded; empty where it was.
    """

    def __init__(self, recorder: Recorder, tell: Callable[[str], None]) -> None:
        """Start the thread; `tell` gets one line when recording begins to fail, and one when it works again."""
        self.fault = ""
        self._said = ""
        self._recorder = recorder
        self._tell = tell
        self._thread = ThreadPoolExecutor(1, "palaver-recorder")
        self._waiting = 0
        self._lock = threading.Lock()

    def begin(self, call: ProxiedCall) -> None:
        """Record a request soon."""
        call.begun = True
        self._submit(len(call.body), lambda: self._begin(call))

    def end(self, call: ProxiedCall, copy: AnswerCopy) -> None:
        """Record the answer soon, and its request where that was not sent."""
        if not call.begun:
            self.begin(call)
        self._submit(len(copy.body or b""), lambda: self._recorder.end(call, copy))

    @property
    def mends(self) -> bool:
        """Whether requests are mended before they are sent."""
        return self._recorder.mender is not None

    async def mended(self, call: ProxiedCall) -> Mended | None:
        """Return a request as it is sent, after the calls before it were recorded; None where nothing is changed."""
        return await asyncio.wrap_future(self._thread.submit(self._mended, call))

    def _mended(self, call: ProxiedCall) -> Mended | None:
        mender = self._recorder.mender
        if mender is None:
            return None
        try:
            made = mender.mended(call.api, decoded(call.body, call.encoding), call.model)
        except InvalidMessage:
            return None  # recording it says why
        except Exception:  # noqa: BLE001 - a defect must not stop what is forwarded
            traceback.print_exc(file=sys.stderr)
            return None
        return made if made.changes else None

    def close(self) -> None:
        """Wait until everything is recorded."""
        self._thread.shutdown()

    def _begin(self, call: ProxiedCall) -> None:
        self._recorder.begin(call)
        self.fault = self._said = ""

    def _submit(self, size: int, work: Callable[[], None]) -> None:
        with self._lock:
            full = self._waiting > MOST_WAITING
            self._waiting += 0 if full else size
        if full:
            self.failed(f"More than {MOST_WAITING >> 20} MB wait to be recorded.")
        else:
            self._thread.submit(self._work, size, work)

    def _work(self, size: int, work: Callable[[], None]) -> None:
        try:
            work()
        except PalaverError as error:
            self.failed(str(error), lasting=not isinstance(error, InvalidMessage))
        except Exception as error:  # noqa: BLE001 - a defect must not end the thread, nor stop what is forwarded
            traceback.print_exc(file=sys.stderr)
            self.failed(f"{type(error).__name__}, a defect of palaver")
        finally:
            with self._lock:
                self._waiting -= size

    def failed(self, why: str, *, lasting: bool = True) -> None:
        """Say that a call was not recorded, unless the same was just said; `lasting` if the next one may not be, either."""
        if why != self._said:
            self._tell(f"Not recorded, but forwarded: {why}")
        self._said, self.fault = why, why if lasting else ""
