"""A typed answer, with palaver."""

from pydantic import BaseModel

from palaver import Agent, Prompt


class Order(BaseModel):
    """What is ordered."""

    item: str
    count: int


prompt = Prompt(path="clerk", prompt="Extract the order.", format=Order)
clerk = Agent("clerk", prompt, "openai/gpt-5-mini")
order = prompt.read(clerk.respond("Two lamps, please."))
print(repr(order))
