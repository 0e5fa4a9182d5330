"""A tool, with pydantic-ai."""

from pydantic_ai import Agent

clerk = Agent("openai:gpt-5-mini", instructions="You keep a shop.")


@clerk.tool_plain
def stock(item: str) -> str:
    """Return how many there are."""
    return f"7 {item}"


print(clerk.run_sync("How many lamps are there?").output)
