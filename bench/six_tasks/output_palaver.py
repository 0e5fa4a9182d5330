"""A typed answer, with palaver."""

from pydantic import BaseModel

from palaver import Agent


class Order(BaseModel):
    """What is ordered."""

    item: str
    count: int


clerk = Agent("clerk", "Extract the order.", "openai/gpt-5-mini", output=Order)
print(repr(clerk.respond("Two lamps, please.").output))
