"""A turn that survives kill -9, with openai-agents and DBOS: start it again, and it finishes."""

import asyncio
from pathlib import Path

from agents import Agent, function_tool
from dbos import DBOS, SetWorkflowID
from dbos_openai_agents import DBOSRunner

DBOS(config={"name": "shop", "system_database_url": "sqlite:///shop.db"})


def note(line: str) -> None:
    """Add a line to the ledger."""
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{line}\n")


@function_tool
@DBOS.step()
async def charge(order: int) -> str:
    """Charge the card."""
    note(f"charge {order}")
    return "charged"


@function_tool
@DBOS.step()
async def ship(order: int) -> str:
    """Ship the order."""
    note(f"ship {order}")
    await asyncio.sleep(2)
    return "shipped"


clerk = Agent(name="clerk", instructions="You charge, then ship.", model="gpt-5-mini", tools=[charge, ship])


@DBOS.workflow()
async def process(question: str) -> str:
    """Answer a question."""
    return str((await DBOSRunner.run(clerk, question)).final_output)


async def main() -> None:
    """Start the workflow, or wait for the one that was recovered."""
    DBOS.launch()
    with SetWorkflowID("order 7"):
        print(await process("Process order 7."))


asyncio.run(main())
