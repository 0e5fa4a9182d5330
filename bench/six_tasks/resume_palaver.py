"""A turn that survives kill -9, with palaver: start it again, and it finishes."""

import time
from pathlib import Path

from palaver import Agent, tool
from palaver.errors import NotFound


def note(line: str) -> None:
    """Add a line to the ledger."""
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{line}\n")


@tool
def charge(order: int) -> str:
    """Charge the card."""
    note(f"charge {order}")
    return "charged"


@tool(idempotent=True)
def ship(order: int) -> str:
    """Ship the order."""
    note(f"ship {order}")
    time.sleep(2)
    return "shipped"


clerk = Agent("clerk", "You charge, then ship.", "openai/gpt-5-mini", tools=[charge, ship], store="shop.db")
try:
    answer = clerk.resume("order 7").respond()
except NotFound:
    clerk.open("order", session_name="order 7")
    answer = clerk.respond("Process order 7.")
print(answer.content)
