"""A tool, with palaver."""

from palaver import Agent, tool


@tool
def stock(item: str) -> str:
    """Return how many there are."""
    return f"7 {item}"


clerk = Agent("clerk", "You keep a shop.", "openai/gpt-5-mini", tools=[stock])
print(clerk.respond("How many lamps are there?").content)
