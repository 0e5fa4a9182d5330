"""A call that a person approves, with palaver: `ask` ends at the call, `approve` continues in another process."""

import sys

from palaver import Agent, tool


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"refunded {amount}"


desk = Agent("desk", "You handle complaints.", "openai/gpt-5-mini", tools=[refund], store="desk.db")
if sys.argv[1] == "ask":
    desk.open("complaint", session_name="complaint 3")
    session = desk.respond("The lamp is broken.", return_session=True)
    print(*(f"{call.name} {dict(call.args)}" for call in session.waiting))
else:
    desk.resume("complaint 3")
    for call in desk.waiting:
        desk.approve(call.id)
    print(desk.respond().content)
