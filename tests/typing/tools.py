"""How tools look to their users' type checker. mypy reads this file; nothing runs it."""

from typing import Any, assert_type

from palaver import CallContext, Function, Toolbox, tool
from palaver.messages import ToolCallContent, ToolResultContent
from palaver.tools import ToolOutcome, execute, execute_all


@tool
def plain(city: str, days: int = 3) -> str:
    """Keep the types of a function."""
    return city * days


@tool(description="Look.", prop_desc={"city": "Where."}, timeout=3)
async def slow(city: str) -> list[int]:
    """Keep the types of a coroutine function."""
    return [len(city)]


class Shop:
    """Has a tool among its methods."""

    @tool
    def sell(self, thing: str) -> int:
        """Sell."""
        return len(thing)


def a_tool_can_be_called_like_its_function() -> None:
    """Parameters and result are those of the function; a wrong argument is an error."""
    assert_type(plain("Oslo", days=1), str)
    plain(3)  # type: ignore[arg-type]
    plain(town="Oslo")  # type: ignore[call-arg]


def a_tool_is_a_function() -> None:
    """Tools, and callables that become tools, are what a toolbox takes."""
    functions: list[Function] = [plain, slow, Function("declared")]
    assert_type(Toolbox([*functions, len, Shop().sell]).get("plain"), Function | None)
    assert_type(Function.from_callable(len)("x"), int)
    assert_type(plain.to_tool(), dict[str, Any])
    assert_type(plain.extend(timeout=3)("Oslo"), str)
    assert_type(functions[0].extend(name="x"), Function)


async def a_call_has_an_outcome(toolbox: Toolbox, call: ToolCallContent) -> None:
    """Whatever the tool returns, the outcome has a type; awaiting a tool oneself gives what the function gives."""
    assert_type(await slow("Oslo"), list[int])
    outcome = await execute(toolbox, call, context=CallContext(deps=3))
    assert_type(outcome, ToolOutcome)
    assert_type(outcome.result, ToolResultContent)
    assert_type(outcome.error, str | None)
    assert_type(await execute_all(toolbox, [call]), tuple[ToolOutcome, ...])
