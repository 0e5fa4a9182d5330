"""A streamed answer, with pydantic-ai."""

import asyncio

from pydantic_ai import Agent

teller = Agent("openai:gpt-5-mini", instructions="You tell stories.")


async def main() -> None:
    """Print each piece when it arrives."""
    async with teller.run_stream("Begin.") as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            print(text, flush=True)


asyncio.run(main())
