"""A tool, with openai-agents."""

from agents import Agent, Runner, function_tool


@function_tool
def stock(item: str) -> str:
    """Return how many there are."""
    return f"7 {item}"


clerk = Agent(name="clerk", instructions="You keep a shop.", model="gpt-5-mini", tools=[stock])
print(Runner.run_sync(clerk, "How many lamps are there?").final_output)
