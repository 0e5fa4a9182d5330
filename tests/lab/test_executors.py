"""Runs over executors: wherever the files are replayed, the results are the same."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import pytest

from palaver.errors import InvalidInput, PalaverError
from palaver.lab import LabProgress, Settings, run_lab
from palaver.lab.entrants import code_digest
from palaver.lab.tasks import Asked, replay_files
from tests.lab.sessions import coding

PLANTED = Path(__file__).with_name("planted.py")
_T = TypeVar("_T")


@pytest.fixture
def asked(tmp_path: Path) -> Settings:
    """Return the settings of a run with a session under two names, a file of no format, and a policy that fails half way."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number, name in enumerate(("a", "b", "c")):
        coding(folder / f"{name}.jsonl", rounds=17 + number, size=600)
    (folder / "twin.jsonl").write_bytes((folder / "a.jsonl").read_bytes())
    (folder / "notes.txt").write_text("nothing of any format\n")
    policies = ("full", "palaver", f"{PLANTED}:TiresOfIt")
    return Settings(paths=(folder,), policies=policies, model="claude-sonnet-4-5", window=16_000, resamples=20)


def written(folder: Path) -> dict[str, str]:
    """Return the files of the results; only the seconds that plans took may differ."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): _steady(path.read_text()) for path in files}


def _steady(text: str) -> str:
    return "\n".join(json.dumps(_without_times(json.loads(line))) for line in text.splitlines())


def _without_times(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: 0 if name == "planning" else _without_times(each) for name, each in value.items()}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


@contextmanager
def threads() -> Iterator[Executor]:
    """Yield three threads."""
    with ThreadPoolExecutor(3) as made:
        yield made


@contextmanager
def processes() -> Iterator[Executor]:
    """Yield two processes."""
    with ProcessPoolExecutor(2, get_context("spawn")) as made:
        yield made


@contextmanager
def dask() -> Iterator[Executor]:
    """Yield the executor of Dask's client, over two processes."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    with local as cluster, distributed.Client(cluster) as client, client.get_executor() as made:
        yield made


class Stopping(Executor):
    """Runs what is submitted at once, until it is stopped as by an interrupt."""

    def __init__(self, tasks: int) -> None:
        """Set how many tasks are run."""
        self._left = tasks

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:  # noqa: ANN401 - as its base
        """Run a task, or stop."""
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        done: Future[_T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@pytest.mark.parametrize("workers", [threads, processes, dask])
def test_results_of_every_executor_are_equal(asked: Settings, tmp_path: Path, workers: Callable[[], Any]) -> None:
    """Threads, processes and Dask's workers write the bytes that one process writes, problems and failed policies included."""
    here = run_lab(asked, tmp_path / "here")
    assert {"twice", "unreadable", "policy failed"} <= {problem.kind for problem in here.problems}
    far: list[LabProgress] = []
    with workers() as executor:
        there = run_lab(asked, tmp_path / "there", executor=executor, progress=far.append)
        assert executor.submit(os.getpid).result() > 0, "it remains open"
    assert written(tmp_path / "there") == written(tmp_path / "here")
    assert there.problems == here.problems
    assert (far[-1].files, far[-1].sessions, far[-1].done) == (5, 4, far[-1].all)


def test_a_cut_run_is_resumed_on_other_executors(asked: Settings, tmp_path: Path) -> None:
    """What a cut run finished is not replayed again; the results are those of a run that was never cut."""
    run_lab(asked, tmp_path / "whole")
    out = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        run_lab(asked, out, executor=Stopping(2))
    finished = {path: path.stat().st_mtime_ns for path in (out / "sessions").iterdir()}
    assert len(finished) == 2
    with threads() as executor:
        run_lab(asked, out, resume=True, executor=executor)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert written(out) == written(tmp_path / "whole")


def test_a_worker_that_ends_is_an_error_that_says_so(asked: Settings, tmp_path: Path) -> None:
    """A policy that ends its worker ends the run, with a message that says what to do; so do workers that ended before."""
    ends = tmp_path / "ends.py"
    ends.write_text(
        "import multiprocessing\nimport os\nfrom palaver.context.presets.own import FullContext\nclass Ends(FullContext):\n"
        "    def plan(self, view, budget, meter):\n"
        "        if multiprocessing.parent_process():\n            os._exit(3)\n"
        "        return super().plan(view, budget, meter)\n"
    )
    with processes() as executor:
        for out in ("out", "later"):
            with pytest.raises(PalaverError, match="worker of the lab ended unexpectedly"):
                run_lab(replace(asked, policies=("full", f"{ends}:Ends")), tmp_path / out, executor=executor)


def test_a_worker_with_other_code_is_refused(asked: Settings, tmp_path: Path) -> None:
    """Figures of two codes are in no table: a task of another palaver writes nothing."""
    task = Asked(settings=asked, policies=("full",), folder=tmp_path / "out", run="k", code=code_digest())
    other = replace(task, code="of another palaver")
    path = asked.paths[0] / "a.jsonl"
    with pytest.raises(InvalidInput, match="other code of palaver"):
        replay_files((path,), other)
    assert not (tmp_path / "out").exists()
    assert [len(done.sessions) for done in replay_files((path,), task)] == [1]
