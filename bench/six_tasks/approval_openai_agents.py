"""A call that a person approves, with openai-agents: `ask` ends at the call, `approve` continues in another process."""

import asyncio
import json
import sys
from pathlib import Path

from agents import Agent, Runner, RunState, function_tool


@function_tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"refunded {amount}"


desk = Agent(name="desk", instructions="You handle complaints.", model="gpt-5-mini", tools=[refund])
stored = Path("state.json")


async def main() -> None:
    """Ask, or approve."""
    if sys.argv[1] == "ask":
        result = await Runner.run(desk, "The lamp is broken.")
        stored.write_text(result.to_state().to_string())
        print(*(f"{call.name} {json.loads(call.arguments or '{}')}" for call in result.interruptions))
    else:
        state = await RunState.from_string(desk, stored.read_text())
        for call in state.get_interruptions():
            state.approve(call)
        print((await Runner.run(desk, state)).final_output)


asyncio.run(main())
