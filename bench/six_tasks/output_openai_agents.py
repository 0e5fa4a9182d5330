"""A typed answer, with openai-agents."""

from agents import Agent, Runner
from pydantic import BaseModel


class Order(BaseModel):
    """What is ordered."""

    item: str
    count: int


clerk = Agent(name="clerk", instructions="Extract the order.", model="gpt-5-mini", output_type=Order)
order = Runner.run_sync(clerk, "Two lamps, please.").final_output
print(repr(order))
