"""Functions in processes of their own: they may hang and die."""

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver.errors import InvalidInput
from palaver.messages import ToolCallContent, thaw
from palaver.tools import CallContext, Function, Progress, Toolbox, ToolOutcome, execute, execute_all, tool
from tests.tools import isolated_tools

BOX = Toolbox(
    [isolated_tools.twice, isolated_tools.later, isolated_tools.die, isolated_tools.hang, isolated_tools.shout]
)


def run(name: str, context: CallContext | None = None, **arguments: Any) -> ToolOutcome:  # noqa: ANN401
    """Answer one call."""
    return anyio.run(functools.partial(execute, BOX, ToolCallContent("c1", name, args=arguments), context=context))


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """Make a line that ends when everybody who holds its other end is gone."""
    path = tmp_path / "line"
    os.mkfifo(path)
    return path


def test_arguments_and_results_cross() -> None:
    """Values of classes go there and back; a reply keeps what it says."""
    assert run("twice", box={"size": 4}).result.text() == '{"size":8}'
    heard: list[Progress] = []
    outcome = run("later", CallContext(on_progress=heard.append), n=5)
    call_id, number, pid = outcome.result.text().split()
    assert (call_id, number, int(pid) == os.getpid()) == ("c1", "5", False)
    assert (outcome.result.terminate, thaw(outcome.result.metadata)) == (True, {"n": 5})
    assert [(each.message, each.done) for each in heard] == [("soon", 1)]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("exit", "The process of 'die' ended with exit code 3 before it answered."),
        ("kill", "The process of 'die' was ended by signal SIGKILL before it answered."),
        ("fault", "The process of 'die' was ended by signal SIGSEGV before it answered."),
    ],
)
def test_a_process_that_dies_is_a_result(how: str, said: str) -> None:
    """How it ended, and what it printed last, binary or not."""
    outcome = run("die", how=how)
    assert outcome.ending == "crashed"
    assert str(outcome.error).startswith(said)
    assert "It printed last:\nlast words" in str(outcome.error)


@pytest.mark.parametrize(("how", "said"), [("leave", "SystemExit: bye"), ("raise", "LookupError: nothing there")])
def test_what_is_raised_there_is_a_result_here(how: str, said: str) -> None:
    """An exception keeps its class and its text."""
    outcome = run("die", how=how)
    assert (outcome.ending, outcome.error) == ("failed", said)


def test_one_that_hangs_is_killed_with_what_it_started(line: Path) -> None:
    """After the call was given up neither its process nor the program it started holds the line."""

    async def main() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(functools.partial(execute, BOX, ToolCallContent("c", "hang", args={"line": str(line)})))
            async with await anyio.open_file(line) as heard:
                assert await heard.readline() == "started\n"
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    return await heard.read()
        raise AssertionError

    assert anyio.run(main) == ""


def test_a_timeout_says_that_the_process_was_ended(line: Path) -> None:
    """The model is told that nothing runs on."""
    slow = isolated_tools.hang.extend(timeout=0.5)
    outcome = anyio.run(execute, Toolbox([slow]), ToolCallContent("c", "hang", args={"line": str(line)}))
    assert outcome.ending == "timeout"
    assert "Its process was ended." in str(outcome.error)


def test_too_much_is_cut_there() -> None:
    """Fifty megabytes never reach this process, and what is printed does not block the child."""
    outcome = run("shout")
    assert outcome.ending == "done"
    assert thaw(outcome.result.metadata) == {"cut": {"bytes": 50_000_000, "kept": 1_000}}


def test_a_child_ends_with_its_parent(tmp_path: Path, line: Path) -> None:
    """When this process is killed, so is the child, and what it started."""
    script = tmp_path / "script.py"
    script.write_text(
        "import anyio, sys\n"
        "from palaver.messages import ToolCallContent\n"
        "from palaver.tools import Toolbox, execute\n"
        "from tests.tools.isolated_tools import hang\n"
        'if __name__ == "__main__":\n'
        '    anyio.run(execute, Toolbox([hang]), ToolCallContent("c", "hang", args={"line": sys.argv[1]}))\n',
        encoding="utf-8",
    )
    root = str(Path(__file__).parents[2])
    with (
        subprocess.Popen([sys.executable, str(script), str(line)], env=os.environ | {"PYTHONPATH": root}) as parent,
        line.open(encoding="utf-8") as heard,
    ):
        assert heard.readline() == "started\n"
        parent.kill()
        assert heard.read() == ""


def test_several_run_beside_each_other() -> None:
    """Each call has a process of its own."""
    asked = [ToolCallContent(f"c{number}", "later", args={"n": number}) for number in range(3)]
    outcomes = anyio.run(execute_all, BOX, asked)
    assert len({each.result.text().split()[2] for each in outcomes}) == 3


def test_what_cannot_cross_is_refused() -> None:
    """A function that no other process can import is refused when it is declared; an argument that cannot cross when it is called."""

    def local() -> None:
        """Do nothing."""

    for unfit in (local, lambda: None):
        with pytest.raises(InvalidInput, match="another process cannot import it"):
            Function("t", function=unfit, isolated=True)
    with pytest.raises(InvalidInput, match="another process cannot import it"):
        tool(isolated=True)(local)
    stuck = isolated_tools.twice.extend(processor=lambda value, _call: value)
    outcome = anyio.run(execute, Toolbox([stuck]), ToolCallContent("c", "twice", args={"box": {"size": 1}}))
    assert "cannot cross to another process" in str(outcome.error)
