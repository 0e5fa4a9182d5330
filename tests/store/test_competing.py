"""Several processes write one dialog: every acknowledged entry is there, every loser was told, and followers saw all in order."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from palaver.store import open_store
from palaver.store.following import follow
from palaver.testing.store_laws import begin
from tests import postgres

WRITER = Path(__file__).with_name("writer.py")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the address of a store of each kind that several processes may share."""
    if request.param == "sqlite":
        yield str(tmp_path / "store.db")
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    yield server.url()


@pytest.mark.parametrize(
    ("processes", "each"),
    [(4, 25), pytest.param(8, 1250, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])],
)
def test_many_processes_one_dialog(url: str, processes: int, each: int) -> None:
    """Each process appends after the head it knows and reloads when it was not the first; nothing is lost, doubled or branched off."""
    store = open_store(url)
    begun = begin(store)
    total = processes * each
    command = [sys.executable, str(WRITER), url, begun.dialog, "compete", str(each)]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)]
    try:
        with ThreadPoolExecutor(processes + 1) as threads:
            for writer in writers:
                assert writer.stdout is not None
                assert writer.stdout.readline() == "ready\n"
            followed = threads.submit(lambda: list(islice(follow(store, begun.dialog, idle=60.0), total)))
            told = list(threads.map(lambda writer: writer.communicate("\n")[0].splitlines(), writers))
            seen = followed.result()
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    acknowledged = {int(seq): writer.pid for writer, said in zip(writers, told, strict=True) for seq in said[:-1]}
    conflicts = sum(int(said[-1].removeprefix("conflicts ")) for said in told)
    bodies = dict(store.bodies(begun.dialog))
    assert sorted(acknowledged) == sorted(bodies) == list(range(total))
    assert [(one.header.seq, one.body) for one in seen] == sorted(bodies.items())
    for seq, pid in acknowledged.items():
        assert bodies[seq].startswith(b"%d:" % pid)
    for writer in writers:
        own = [body.split(b":")[1] for _seq, body in sorted(bodies.items()) if body.startswith(b"%d:" % writer.pid)]
        assert own == [b"%d" % number for number in range(each)]
    assert [node.dialog_id for node in store.nodes(begun.session)] == [begun.dialog]
    assert store.verify(begun.dialog) == ()
    sys.stdout.write(f"{os.cpu_count()} CPUs: {total} entries acknowledged and found, {conflicts} losers told\n")
    store.close()
