"""A streamed answer, with openai-agents."""

import asyncio

from agents import Agent, Runner
from openai.types.responses import ResponseTextDeltaEvent

teller = Agent(name="teller", instructions="You tell stories.", model="gpt-5-mini")


async def main() -> None:
    """Print each piece when it arrives."""
    async for event in Runner.run_streamed(teller, "Begin.").stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            print(event.data.delta, flush=True)


asyncio.run(main())
