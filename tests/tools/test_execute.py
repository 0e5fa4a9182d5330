"""Every call has an outcome, whatever the tool does."""

import contextvars
import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from palaver.messages import ImageContent, Media, ToolCallContent, thaw
from palaver.tools import CallContext, Function, Progress, Toolbox, ToolOutcome, ToolReply, execute, tool
from tests.tools.calling import run

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6300010000050001"
)


def says(value: Any, **options: Any) -> Function:  # noqa: ANN401 - whatever a tool may return
    """Return a tool that returns a value."""
    return Function("say", function=lambda: value, **options)


# --- results ---------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """A result with fields."""

    name: str
    size: int


def test_any_return_value_is_readable() -> None:
    """Text as it is, structures as JSON, bytes as what they are, anything else as Python prints it."""
    cases: list[Any] = [
        ("plain", "plain"),
        (None, "(no output)"),
        ("", "(no output)"),
        ({"a": [1, True]}, '{"a":[1,true]}'),
        ([Row("x", 1)], '[{"name":"x","size":1}]'),
        (b"text", "text"),
        (b"\xff\x00\xfe", "(3 bytes that are not text, an image or sound)"),
        (Path("a/b"), "a/b"),
        (float("nan"), "null"),
    ]
    for value, text in cases:
        outcome = run(says(value))
        assert (outcome.ending, outcome.result.text(), outcome.error) == ("done", text, None)
        assert (outcome.result.id, outcome.result.name) == ("c1", "say")
        assert outcome.function_call.result_str == text


def test_images_are_blocks() -> None:
    """Bytes, media and Pillow images become images; several things become several blocks, in order."""
    picture = Image.new("RGB", (2, 2))
    for value in (PNG, Media.from_bytes(PNG), picture, (PNG,), [picture]):
        assert [type(each) for each in run(says(value)).result.content] == [ImageContent]
    mixed = run(says(("see", PNG, {"n": 1}))).result
    assert [type(each).__name__ for each in mixed.content] == ["TextContent", "ImageContent", "TextContent"]
    assert mixed.text() == 'see\n{"n":1}'


def test_a_reply_says_more_than_a_value() -> None:
    """`terminate`, `is_error` and metadata reach the block; an error is an error of the call."""
    outcome = run(says(ToolReply("no such file", terminate=True, is_error=True, metadata={"path": "x"})))
    assert (outcome.ending, outcome.error, outcome.executed) == ("failed", "no such file", True)
    assert (outcome.result.terminate, thaw(outcome.result.metadata)) == (True, {"path": "x"})


def test_a_long_text_keeps_its_ends() -> None:
    """What is beyond the limit is cut from the middle, at whole characters, with a line that says so; half an image is left out."""
    for text in ("x" * 100_000, "é" * 60_000, "\ud83d" * 40_000, "a\0" * 60_000):
        outcome = run(says(text, max_bytes=1_000))
        shown = outcome.result.text()
        assert "bytes cut: the limit is 1,000 bytes" in shown
        assert len(shown.encode()) < 2_500
        assert outcome.result.metadata["cut"]["kept"] == 1_000
        assert not outcome.result.is_error
    pictured = run(says(("look", PNG), max_bytes=20))
    assert pictured.result.text() == "look\n[image of 51 bytes left out: the limit is 20 bytes]"


# --- what is refused ---------------------------------------------------------------------------------------------------


@tool
def search(query: str, limit: int = 5, order: Literal["new", "old"] = "new") -> str:
    """Search."""
    return f"{query} {limit} {order}"


def test_an_unknown_tool_is_an_error_result() -> None:
    """C21, R137: it names the close tool and all tools; nothing ran."""
    outcome = run(search, ToolCallContent("c", "serach"))
    assert outcome.error == "There is no tool 'serach'. Did you mean 'search'? The tools are: search."
    assert (outcome.ending, outcome.executed, outcome.result.is_error) == ("unknown_tool", False, True)


def test_wrong_arguments_are_an_error_result() -> None:
    """R121: each fault with its place; of typed functions and of declared schemas alike."""
    typed = str(run(search, limit="many", order="newest", quary="x").error)
    assert [line.partition(":")[0] for line in typed.splitlines()[1:-1]] == ["- query", "- limit", "- order", "- quary"]
    declared = Function("search", parameters=search.parameters, function=search.function)
    found = str(run(declared, limit="many", quary="x").error)
    assert "- limit: 'many' is not of type 'integer'" in found
    assert "'query' is a required property" in found
    assert "'quary' is not an expected property. Expected: query, limit, order" in found


def test_unavailable_tools_stay_declared() -> None:
    """R312: they are in the declarations, and a call is refused with the reason; a check that breaks refuses."""

    def broken() -> bool:
        raise OSError("no network")

    for available, why in [
        (False, "it is switched off for now"),
        ("the plan is not agreed to yet", "the plan is not agreed to yet"),
        (lambda: "closed on Sundays", "closed on Sundays"),
        (lambda context: context.deps or "nobody is logged in", "nobody is logged in"),
        (broken, "its availability check raised OSError"),
    ]:
        function = search.extend(available=available)
        assert Toolbox([function]).specs == Toolbox([search]).specs
        outcome = run(function, query="x")
        assert (outcome.ending, outcome.executed) == ("unavailable", False)
        assert why in str(outcome.error)
    assert run(search.extend(available=lambda: True), query="x").ending == "done"
    assert run(Function("later")).ending == "unlinked"


def test_approval_depends_on_the_arguments() -> None:
    """A function of the arguments says which calls need it; one that breaks means yes."""
    asking = search.extend(needs_approval=lambda arguments: arguments["limit"] > 10)
    for arguments, needed in (({"limit": 11}, True), ({"limit": 1}, False), ({}, True)):
        assert asking.approval_needed(ToolCallContent("c", "search", args=arguments)) is needed


# --- what runs badly ---------------------------------------------------------------------------------------------------


class Rude(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Sticky:
    """A value that can be neither written nor printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def _recurse() -> int:
    return _recurse() + 1


def _loop() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _raise(error: BaseException) -> Callable[[], Any]:
    def misbehave() -> Any:  # noqa: ANN401 - it returns nothing
        raise error

    return misbehave


MISBEHAVIOURS: dict[str, Callable[[], Any]] = {
    "raises": _raise(ValueError("bad")),
    "raises what cannot be printed": _raise(Rude()),
    "raises a group": _raise(BaseExceptionGroup("two", [ValueError("1"), SystemExit(2)])),
    "exits": lambda: sys.exit(3),
    "interrupts": _raise(KeyboardInterrupt()),
    "recurses": _recurse,
    "returns a loop": _loop,
    "returns something deep": lambda: functools.reduce(lambda inner, _: [inner], range(100_000), list[Any]()),
    "returns what cannot be printed": Sticky,
    "returns a lock": threading.Lock,
    "returns a generator": lambda: (each for each in range(3)),
    "returns surrogates": lambda: "\ud83d\0" * 10,
    "returns an odd reply": lambda: ToolReply({"a": Sticky()}, metadata={"x": {1, 2}, "y": object()}),
    "returns a broken image": lambda: b"\x89PNG\r\n\x1a\n",
    "prints binary": lambda: os.write(1, b"\xff\xfe\0") and None,
}


@given(st.sampled_from(sorted(MISBEHAVIOURS)), st.booleans(), st.sampled_from([10, 10_000_000]))
def test_any_outcome_of_a_tool_is_a_result(name: str, asynchronous: bool, max_bytes: int) -> None:
    """Sync or async, nothing a tool does passes through; the result can be stored, and the tool ran once."""
    times: list[int] = []

    def sync_tool() -> Any:  # noqa: ANN401 - anything
        times.append(1)
        return MISBEHAVIOURS[name]()

    async def async_tool() -> Any:  # noqa: ANN401 - anything
        return sync_tool()

    if asynchronous and name == "interrupts":
        return  # in the loop's own thread a real Ctrl-C looks the same, and has to pass
    outcome = run(Function("t", function=async_tool if asynchronous else sync_tool, max_bytes=max_bytes))
    assert len(times) == 1
    assert outcome.ending in {"done", "failed"}
    assert outcome.result.is_error == (outcome.error is not None)
    assert outcome.result.content
    json.dumps(thaw(outcome.result.model_dump(mode="json")))
    outcome.result.text().encode()


def test_an_exception_keeps_its_class_and_cause() -> None:
    """C21, R121: the model reads what kind of failure it was, and where it came from."""

    @tool
    def fail() -> None:
        try:
            {"a": 1}["k"]
        except KeyError as error:
            raise LookupError("no such row") from error

    outcome = run(fail)
    assert outcome.error == "LookupError: no such row\ncaused by KeyError: 'k'"
    assert (outcome.ending, outcome.executed) == ("failed", True)


def test_a_tool_that_hangs_is_abandoned() -> None:
    """After its timeout the call has a result, and the function is told."""
    told = threading.Event()

    @tool(timeout=0.05)
    def hang(context: CallContext) -> None:
        assert context.stop.wait(60)
        assert context.cancelled
        told.set()

    outcome = run(hang)
    assert outcome.ending == "timeout"
    assert outcome.error == "'hang' did not answer within 0.05 s. It may still be running. Its effect is unknown."
    assert told.wait(60)


HANGING = """
import threading, anyio
from palaver.messages import ToolCallContent
from palaver.tools import Toolbox, execute, tool
hang = tool(name='hang', timeout=0.1)(lambda: threading.Event().wait())
print(anyio.run(execute, Toolbox([hang]), ToolCallContent('c', 'hang')).ending)
"""


def test_a_hanging_thread_lets_the_program_end() -> None:
    """A program whose tool hangs for ever ends when it is done."""
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("timeout\n", "")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_callers_cancellation_passes(asynchronous: bool) -> None:
    """A cancelled caller gets its cancellation, not an outcome, and the tool is told."""
    begun, told = threading.Event(), threading.Event()

    def block(context: CallContext) -> None:
        begun.set()
        context.stop.wait(60)
        told.set()

    async def wait() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            told.set()

    async def main() -> None:
        box = Toolbox([Function("t", function=wait if asynchronous else block)])
        async with anyio.create_task_group() as group:
            group.start_soon(functools.partial(execute, box, ToolCallContent("c", "t")))
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(main)
    assert told.wait(60)


# --- surroundings ------------------------------------------------------------------------------------------------------


def test_a_tool_gets_its_context() -> None:
    """It has the call's id and what the program gave; progress is heard in the loop's thread."""
    heard: list[tuple[str, str, float | None]] = []
    variable = contextvars.ContextVar("variable", default="unset")

    @tool
    def where(x: int, context: CallContext) -> str:
        context.emit_progress("half", 1, 2)
        return f"{context.call_id} {context.tool} {context.deps} {variable.get()} {x}"

    async def main() -> ToolOutcome:
        home = threading.get_ident()

        def listen(progress: Progress) -> None:
            assert threading.get_ident() == home
            heard.append((progress.call_id, progress.message, progress.done))

        variable.set("set")
        context = CallContext(deps="db", on_progress=listen)
        return await execute(Toolbox([where]), ToolCallContent("c7", "where", args={"x": 1}), context=context)

    assert anyio.run(main).result.text() == "c7 where db set 1"
    assert heard == [("c7", "half", 1)]
