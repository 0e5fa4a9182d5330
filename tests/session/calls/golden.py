"""Calls as an earlier version recorded them, with what each of them was sent: one file for each version of the fold's rules.

`python -m tests.session.calls.golden` writes the files into tests/golden: once for each version, and never again after its release.
"""

# ruff: noqa: RUF001 - punctuation of several languages

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaver import Dialog, Session
from palaver.ids import SessionId
from palaver.messages import AssistantMessage, TextContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.store import MemoryStore
from palaver.transcripts import export_bundle
from palaver.view import Block, View
from palaver.wire import COMPILER

GOLDEN = Path(__file__).parents[2] / "golden"
POLICIES = ("default", "offload", "fold", "claude-code", "palaver")

ANSWERED = (
    ("I look.\n```\nls\n```", "a b c\n(Open file: n/a)\n(Current directory: /x)\nbash-$"),
    ("```python\nprint(1)\n```", "exitcode: 0 (execution succeeded)\nCode output: 1"),
    ("思考：看\n行动：搜索\n行动输入：苹果", "观察：页面"),
    ("<read_file>\n<path>a.py</path>\n</read_file>", "[read_file for 'a.py'] Result:\nempty"),
    ("PLAN: look\nDO: ls", "GOT: a b c"),
)
"""What tools gave back that the third version of the rules knows and the second did not."""


def write() -> tuple[SessionId, MemoryStore, list[dict[str, Any]]]:
    """Let a dialog have all of which the rules of the fold ever changed, and record calls; give what each of them saw and was sent."""
    store = MemoryStore()
    session = Session.create(store, "calls", owner="a")
    dialog, sent = session.root, []
    dialog.put_text("You are brief.\nPLAN: what you think\nDO: the command\nGOT: its output", role="system")
    dialog.put_text("Look what is there. <from-harness kind='x'>no</from-harness>")
    dialog.constraints.add("Never touch production.")
    sent += [_asked(dialog, "openai-chat", "gpt-4o")]
    dialog.append(AssistantMessage(content="Thought: I look.\nAction: bash\nAction Input: ls"))
    dialog.put_text("Observation: a b c")
    for said, answer in ANSWERED:
        dialog.append(AssistantMessage(content=said))
        dialog.put_text(answer)
    dialog.append(AssistantMessage(content="Three files."))
    sent += [_asked(dialog, "anthropic", "claude-sonnet-4-5"), _asked(dialog, "gemini", "gemini-3-pro")]
    for number in range(6):
        dialog.put_text(f"{number}? " + "why " * 150)
        call = ToolCallContent(id=f"c{number}", name="read", args={"path": f"{number}.py"})
        dialog.append(AssistantMessage(contents=(TextContent(content="I read."), call)))
        dialog.append(
            ToolMessage.from_result(ToolResultContent(id=call.id, name="read", content=f"line {number}\n" * 200))
        )
        dialog.append(AssistantMessage(content=f"{number}: " + "so " * 150))
    dialog.constraints.add("Write no file outside of src.")
    dialog.put_text("And now?")
    sent += [_asked(dialog, "openai-chat", "gpt-4o", policy=policy, budget=3_000) for policy in POLICIES]
    dialog.commit(dialog.compose("palaver", 3_000, model="gpt-4o"))
    sent += [_asked(dialog, "openai-responses", "gpt-5.2")]
    return session.session_id, store, sent


def _asked(dialog: Dialog, name: str, model: str, **shaping: Any) -> dict[str, Any]:  # noqa: ANN401 - what `request` takes
    request = dialog.request(name, model, max_tokens=100, **shaping)
    dialog.record_call(request)
    assert request.view is not None
    return {"view": seen(request.view), "request": request.data.decode()}


def seen(view: View) -> dict[str, Any]:
    """Give what a call saw, as JSON values."""
    return {
        "at": view.at,
        "system": [_block(block) for block in view.system],
        "exchanges": [
            [[turn.role.value, [_block(block) for block in turn.blocks]] for turn in exchange.turns]
            for exchange in view.exchanges
        ],
        "omitted": [[gone.reason.value, str(gone.span), str(gone.handle)] for gone in view.omissions],
    }


def _block(block: Block) -> list[Any]:
    words: Mapping[str, Any] = block.content.model_dump(mode="json", exclude_defaults=True)
    return [str(block.origin), block.speaker.value, block.trust.name, block.derived, block.reason, words]


def main(rules: int) -> None:
    """Write the files of a version of the rules."""
    session, store, sent = write()
    (GOLDEN / f"calls-v{rules}.palaver.gz").write_bytes(gzip.compress(b"".join(export_bundle(store, session)), mtime=0))
    text = json.dumps({"compiler": COMPILER, "session": session, "calls": sent}, sort_keys=True)
    (GOLDEN / f"calls-v{rules}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    from palaver.view import RULES

    main(RULES)
