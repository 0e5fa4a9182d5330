"""Time the view of openhands-sdk, in the Python that runs this file (3.12 with openhands-sdk): `python openhands_view.py MESSAGES CHARACTERS`.

Prints one JSON object. It imports nothing of palaver: that one need not be installed there.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any

from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.tool.builtins.think import ThinkAction, ThinkObservation


def events(count: int, size: int) -> list[Any]:
    """Return a conversation of an agent that thinks and is answered."""
    found: list[Any] = [
        MessageEvent(source="user", llm_message=Message(role="user", content=[TextContent(text="Read the files.")]))
    ]
    page = "word " * (size // 5)
    for number in range(count // 2):
        call = MessageToolCall(id=f"c{number}", name="think", arguments='{"thought": "on"}', origin="completion")
        action = ActionEvent(
            thought=[],
            action=ThinkAction(thought="on"),
            tool_name="think",
            tool_call_id=call.id,
            tool_call=call,
            llm_response_id=f"r{number}",
        )
        said = ThinkObservation(content=[TextContent(text=f"{number} {page}")])
        found += [
            action,
            ObservationEvent(tool_name="think", tool_call_id=call.id, observation=said, action_id=action.id),
        ]
    return found


def main() -> None:
    """Time the view of the whole list, as each step makes it."""
    found = events(int(sys.argv[1]), int(sys.argv[2]))
    times, view = [], View.from_events(found)
    for _ in range(5 if len(found) <= 10_001 else 1):
        start = time.perf_counter()
        View.from_events(found)
        times.append(time.perf_counter() - start)
    assert len(view.events) == len(found)
    print(json.dumps({"seconds": median(times), "events": len(view.events)}))


if __name__ == "__main__":
    main()
