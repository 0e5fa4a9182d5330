"""A typed answer, with pydantic-ai."""

from pydantic import BaseModel
from pydantic_ai import Agent


class Order(BaseModel):
    """What is ordered."""

    item: str
    count: int


clerk = Agent("openai:gpt-5-mini", instructions="Extract the order.", output_type=Order)
order = clerk.run_sync("Two lamps, please.").output
print(repr(order))
