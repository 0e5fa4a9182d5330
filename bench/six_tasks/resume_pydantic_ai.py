"""A turn that survives kill -9, with pydantic-ai and DBOS: start it again, and it finishes."""

import asyncio
import time
from pathlib import Path

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability

DBOS(config={"name": "shop", "system_database_url": "sqlite:///shop.db"})
clerk = Agent("openai:gpt-5-mini", name="clerk", instructions="You charge, then ship.", capabilities=[DBOSDurability()])


def note(line: str) -> None:
    """Add a line to the ledger."""
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{line}\n")


@clerk.tool_plain
@DBOS.step()
def charge(order: int) -> str:
    """Charge the card."""
    note(f"charge {order}")
    return "charged"


@clerk.tool_plain
@DBOS.step()
def ship(order: int) -> str:
    """Ship the order."""
    note(f"ship {order}")
    time.sleep(2)
    return "shipped"


@DBOS.workflow()
async def process(question: str) -> str:
    """Answer a question."""
    return (await clerk.run(question)).output


async def main() -> None:
    """Start the workflow, or wait for the one that was recovered."""
    DBOS.launch()
    with SetWorkflowID("order 7"):
        print(await process("Process order 7."))


asyncio.run(main())
