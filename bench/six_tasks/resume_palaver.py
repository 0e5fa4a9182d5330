"""A turn that survives kill -9, with palaver: start it again, and it finishes."""

import time
from pathlib import Path

from palaver import Agent, tool


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
clerk.open("order 7", resume=True, first="Process order 7.")
print(clerk.respond().content)
