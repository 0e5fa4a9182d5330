"""A call that a person approves, with pydantic-ai: `ask` ends at the call, `approve` continues in another process."""

import sys
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter, ToolCallPart

desk = Agent("openai:gpt-5-mini", instructions="You handle complaints.", output_type=[str, DeferredToolRequests])
stored = Path("messages.json")


@desk.tool_plain(requires_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"refunded {amount}"


if sys.argv[1] == "ask":
    result = desk.run_sync("The lamp is broken.")
    stored.write_bytes(result.all_messages_json())
    if isinstance(result.output, DeferredToolRequests):
        print(*(f"{call.tool_name} {call.args_as_dict()}" for call in result.output.approvals))
else:
    messages = ModelMessagesTypeAdapter.validate_json(stored.read_bytes())
    calls = [part for part in messages[-1].parts if isinstance(part, ToolCallPart)]
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in calls})
    print(desk.run_sync(message_history=messages, deferred_tool_results=results).output)
