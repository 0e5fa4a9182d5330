"""Workers: what hangs is ended, what dies is noticed, and the rest is done."""

import os
from pathlib import Path

import pytest

from palaver.errors import InvalidInput
from palaver.lab.workers import Crew
from tests.lab.tasks import Doing

MINE = os.getpid()


def crew(jobs: int = 1, limit: float | None = None) -> Crew[Doing]:
    """Give a crew that does tasks as they are."""
    return Crew(jobs, limit, ready=lambda task: task)


def done(made: Crew[Doing], *tasks: Doing) -> dict[tuple[str, ...], tuple[int, tuple[object, ...]]]:
    """Do tasks, and give what came of each."""
    return {each[0].todo: each[1] for each in made.results(tasks) if each is not None}


def test_each_task_is_done_in_another_process() -> None:
    """All of them are, by as few processes as there are to be, and none by the caller's."""
    told: list[object] = []
    made = Crew[Doing](1, None, ready=lambda task: task, began=told.append)
    found = done(made, Doing(("fine",)), Doing(("fine", "fine")))
    assert {process for process, _ in found.values()}.isdisjoint({MINE})
    assert len({process for process, _ in found.values()}) == 1
    assert [each for each in told if each] == ["fine", "fine", "fine"]


def test_what_hangs_or_dies_is_passed_over_and_the_rest_is_done() -> None:
    """Each worker that was lost is told with what it was at, and why; one that died before it began anything, too."""
    found = done(crew(2, 0.5), Doing(("fine", "hangs", "dies", "fine")), Doing(("dies early", "fine")))
    assert found["fine", "hangs", "dies", "fine"][1] == (
        ("hangs", "it did not come to its end in 0.5 seconds"),
        ("dies", "it ended its process, with code 3"),
    )
    assert found["dies early", "fine"][1] == ((None, "it ended its process, with code 4"),)


def test_what_a_worker_started_ends_with_it(tmp_path: Path) -> None:
    """A process that was started by what hangs holds a pipe: it is let go of, so that the process is no more."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.set_blocking(reader, True)
        found = done(crew(1, 0.5), Doing(("starts", "hangs"), pipe))
        assert found["starts", "hangs"][1] == (("hangs", "it did not come to its end in 0.5 seconds"),)
        assert os.read(reader, 1) == b""  # nobody has it open; else this would wait
    finally:
        os.close(reader)


def test_what_closes_our_pipe_and_goes_on_is_ended() -> None:
    """Whoever closes all files that are open is not heard any more: he is ended, or ends when he finds no parent, and is not waited for."""
    given = done(crew(1, 60), Doing(("closes", "fine")))["closes", "fine"][1]
    assert given in {
        (("closes", "it closed the pipe by which it is heard"),),
        (("closes", "it ended its process, with code 1"),),
    }


def test_what_a_task_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """It stands where errors stand: what is printed as JSON stays JSON."""
    done(crew(), Doing(("prints",)))
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "a word of a policy's\n")


def test_what_a_task_raises_is_raised_here() -> None:
    """As it is, with its class and words; the workers are ended."""
    with pytest.raises(InvalidInput, match="It is wrong") as caught:
        done(crew(), Doing(("fails",)))
    assert caught.value.hint == "Mend it."
