"""Fleets whose workers and whose database are killed all the time."""

import asyncio
import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from palaver import Session
from palaver.agent.attention import Attention, attention
from palaver.errors import StoreError
from palaver.messages import Message
from tests.postgres import Server
from tests.postgres_wheel import wheel_server

pytest.importorskip("procrastinate", reason="procrastinate is not installed: ./run setup")

from tests.integrations.fleets import (
    CHAOS,
    TICK,
    Yard,
    charges_everything,
    make_tables,
    run_chaotic_worker,
)

_PAUSE = 0.4
"""The most seconds between two disturbances."""

_SENDERS = 4
"""How many say something at once."""

_ANY = random.SystemRandom()
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.integrations.fleet_warm"])


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is said and killed.

    Attributes:
        sessions: The sessions.
        messages: The messages, which all sessions get in turn.
        kills: How many workers are killed.
        stops: How many are stopped for longer than `stale`.
        crashes: How often the server of the database is killed.
    """

    sessions: int
    messages: int
    kills: int
    stops: int
    crashes: int

    @property
    def pace(self) -> float:
        """About how many seconds there are for each message until the last disturbance."""
        events = self.kills + self.stops + self.crashes
        seconds: float = events * _PAUSE / 2 + self.stops * CHAOS["stale"] * 2.5
        return seconds / self.messages


@dataclass
class Chaos:
    """Workers, of which some are killed or stopped at any moment."""

    till: Yard
    server: Server
    folder: Path
    size: Size
    workers: list[BaseProcess] = field(default_factory=list)
    acknowledged: list[tuple[str, str]] = field(default_factory=list)

    def start(self) -> None:
        """Start a worker."""
        worker = FORKS.Process(target=run_chaotic_worker, args=(self.till.url, str(self.folder)), daemon=True)
        worker.start()
        self.workers.append(worker)

    async def say(self, part: int) -> None:
        """Say a part of everything. What was not acknowledged is said again in other words, for it may have been written."""
        for number in range(part, self.size.messages, _SENDERS):
            name, tries = f"till {number % self.size.sessions}", 0
            await asyncio.sleep(_ANY.random() * 2 * self.size.pace * _SENDERS)
            while True:
                text = f"{number}.{tries}"
                try:
                    await self.till.fleet.say(name, text)
                except StoreError:
                    tries += 1
                    await asyncio.sleep(TICK)
                else:
                    self.acknowledged.append((name, text))
                    break

    async def disturb(self) -> None:
        """Kill and stop workers and the server, in any order."""
        events = [self.kill] * self.size.kills + [self.stop] * self.size.stops + [self.crash] * self.size.crashes
        _ANY.shuffle(events)
        for event in events:
            await asyncio.sleep(_ANY.random() * _PAUSE)
            await event()

    async def kill(self) -> None:
        """Kill a worker, and start another."""
        worker = self.workers.pop(_ANY.randrange(len(self.workers)))
        worker.kill()
        await asyncio.to_thread(self.start)
        worker.join()

    async def stop(self) -> None:
        """Stop a worker, and let it go on when its sessions are others'."""
        worker = self.workers.pop(_ANY.randrange(len(self.workers)))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        await asyncio.to_thread(self.start)
        await asyncio.sleep(CHAOS["stale"] * 1.5)
        os.kill(worker.pid, signal.SIGCONT)
        await asyncio.sleep(CHAOS["stale"])
        worker.kill()
        worker.join()

    async def crash(self) -> None:
        """Kill the server of the database, and start it again: in this thread, for it ends with the thread that started it."""
        self.server.kill()
        self.server.start()

    async def rests(self) -> None:
        """Wait until no job waits or runs."""
        while {status for _, status in await asyncio.to_thread(self.till.jobs)} & {"todo", "doing"}:  # noqa: ASYNC110
            await asyncio.sleep(0.2)


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a server that may be killed."""
    with wheel_server() as running:
        yield running


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(sessions=8, messages=40, kills=5, stops=1, crashes=1), id="sample"),
        pytest.param(
            Size(sessions=1000, messages=10_000, kills=1000, stops=100, crashes=50),
            id="soak",
            marks=[pytest.mark.soak, pytest.mark.timeout(7200)],
        ),
    ],
)
def test_nothing_is_lost_or_done_twice(size: Size, server: Server, tmp_path: Path) -> None:
    """Workers are killed, stopped for longer than `stale`, and lose their database: every message is in the log once and answered; no tool has run twice."""
    url = server.url()
    till = Yard(url, charges_everything, **CHAOS)
    make_tables(url)
    chaos = Chaos(till, server, tmp_path, size)

    async def work() -> None:
        for _ in range(2):
            await asyncio.to_thread(chaos.start)
        await asyncio.gather(chaos.disturb(), *map(chaos.say, range(_SENDERS)))
        await chaos.rests()

    try:
        asyncio.run(work())
        assert {status for _, status in till.jobs()} <= {"aborted"}
        charged = Counter((tmp_path / "charged").read_text().split())
        assert {what: times for what, times in charged.items() if times > 1} == {}
        unknown = 0
        for name in sorted({name for name, _ in chaos.acknowledged}):
            dialog = Session.open(till.store, name).root
            messages: list[Message] = list(dialog.messages)
            said = Counter(str(message.content) for message in messages if message.role == "user")
            assert [text for of, text in chaos.acknowledged if of == name and said[text] != 1] == []
            assert max(said.values()) == 1
            assert str(messages[-1].content) == "Done"
            assert attention(till.store, dialog.dialog_id) is Attention.NONE
            results = [str(message.content) for message in messages if message.role == "tool"]
            fine = {result.removesuffix(" is charged") for result in results if result.endswith(" is charged")}
            assert len(results) == len(said)
            assert {what for what in fine if charged[what] != 1} == set()
            unknown += len(results) - len(fine)
        print(f"{len(chaos.acknowledged):,} messages, {unknown:,} calls unknown")  # noqa: T201 - what a soak shows
    finally:
        for worker in chaos.workers:
            worker.kill()
            worker.join()
        till.store.close()
