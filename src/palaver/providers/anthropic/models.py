"""The models of Anthropic, from the newest to the oldest.

Besides the page of each row (platform.claude.com/docs/en, November 2026):

* thinking: build-with-claude/thinking-troubleshooting. What a model reads, and what checks the words before it: build-with-claude/preserved-thinking.
* instructions and tools among the turns: build-with-claude/mid-conversation-system-messages. Prefill: api/errors.
* sampling: api/migration-2026-10-21. Requests that name this version have no sampling parameters, whatever the model.
* schemas of answers: build-with-claude/structured-outputs. Tools that Anthropic runs: agents-and-tools.
* compactions by Anthropic: build-with-claude/compaction, «supported models» (Opus and Sonnet 4.6, and later).
"""

from __future__ import annotations

from typing import Final

from palaver.wire.models import ModelRow, ModelTable, Reach

_DOCS: Final = "https://platform.claude.com/docs/en"
_NEW: Final = "/models/{0}/whats-new-{0}"
_PAIR: Final = ("fable", "mythos")
_LINES: Final = ("opus", "sonnet", "haiku")
_OLDER: Final = (*_LINES, "instant", "")
_TO_4: Final = Reach((), (0, 0), (4, 99))

_ROWS: Final = (
    ModelRow(
        line="claude",
        families=_PAIR,
        floor=(5, 2),
        source=_DOCS + _NEW.format("fable-5-2"),
        thinking=("adaptive",),
        thinks="always",
        forced=False,
        system_inside=True,
        tools_inside=True,
        bound=True,
        reads=(Reach((), (0, 0), (5, 5)),),
    ),
    ModelRow(
        line="claude",
        families=_PAIR,
        floor=(5, 1),
        source=f"{_DOCS}/build-with-claude/preserved-thinking",
        thinking=("adaptive",),
        thinks="always",
        forced=False,
        system_inside=True,
        tools_inside=True,
        bound=True,
        reads=(Reach((), (0, 0), (5, 0)), Reach(_PAIR, (5, 0), (5, 1)), Reach(("opus",), (5, 0), (5, 5))),
    ),
    ModelRow(
        line="claude",
        families=("opus",),
        floor=(5, 5),
        source=_DOCS + _NEW.format("opus-5-5"),
        thinking=("adaptive",),
        thinks="always",
        forced=False,
        system_inside=True,
        tools_inside=True,
        bound=True,
        reads=(_TO_4, Reach(("opus",), (5, 0), (5, 5)), Reach(("sonnet",), (5, 0), (5, 5))),
    ),
    ModelRow(
        line="claude",
        families=("sonnet",),
        floor=(5, 5),
        source=_DOCS + _NEW.format("sonnet-5-5"),
        thinking=("adaptive", "between_tools"),
        thinks="on",
        forced=False,
        system_inside=True,
        tools_inside=True,
        bound=True,
        reads=(_TO_4, Reach(("sonnet",), (5, 0), (5, 5))),
    ),
    ModelRow(
        line="claude",
        families=("haiku",),
        floor=(5, 5),
        source=f"{_DOCS}/models/haiku-5-5/migration-guide",
        thinking=("adaptive", "disabled"),
        thinks="on",
        quiet_effort="high",
        system_inside=True,
        tools_inside=True,
        bound=True,
    ),
    ModelRow(
        line="claude",
        families=_PAIR,
        floor=(5, 0),
        source=f"{_DOCS}/build-with-claude/thinking-troubleshooting",
        thinking=("adaptive",),
        thinks="always",
        system_inside=True,
        tools_inside=True,
        reads=(_TO_4, Reach(_PAIR, (5, 0), (5, 0))),
    ),
    ModelRow(
        line="claude",
        families=("opus",),
        floor=(5, 0),
        source=f"{_DOCS}/build-with-claude/thinking-troubleshooting",
        thinking=("adaptive", "disabled"),
        thinks="on",
        quiet_effort="high",
        system_inside=True,
        tools_inside=True,
        reads=(_TO_4,),
    ),
    ModelRow(
        line="claude",
        families=("sonnet", "haiku"),
        floor=(5, 0),
        source=f"{_DOCS}/build-with-claude/thinking-troubleshooting",
        thinking=("adaptive", "disabled"),
        thinks="on",
        reads=(_TO_4,),
    ),
    ModelRow(
        line="claude",
        families=("opus",),
        floor=(4, 8),
        source=f"{_DOCS}/build-with-claude/mid-conversation-system-messages",
        thinking=("adaptive", "disabled"),
        thinks="off",
        system_inside=True,
        tools_inside=True,
        reads=(_TO_4,),
    ),
    ModelRow(
        line="claude",
        families=_LINES,
        floor=(4, 7),
        source=f"{_DOCS}/build-with-claude/thinking-troubleshooting",
        thinking=("adaptive", "disabled"),
        thinks="off",
        reads=(_TO_4,),
    ),
    ModelRow(
        line="claude",
        families=_LINES,
        floor=(4, 6),
        source=f"{_DOCS}/build-with-claude/thinking-troubleshooting",
        thinking=("adaptive", "enabled", "disabled"),
        thinks="off",
        sampling="old",
        reads=(_TO_4,),
    ),
    ModelRow(
        line="claude",
        families=_LINES,
        floor=(4, 5),
        source=f"{_DOCS}/agents-and-tools/tool-use/programmatic-tool-calling",
        thinking=("enabled", "disabled"),
        thinks="off",
        sampling="old",
        prefill=True,
        reads=(_TO_4,),
        compacts=False,
    ),
    ModelRow(
        line="claude",
        families=_LINES,
        floor=(4, 1),
        source=f"{_DOCS}/build-with-claude/structured-outputs",
        thinking=("enabled", "disabled"),
        thinks="off",
        sampling="old",
        prefill=True,
        tooling=(),
        reads=(_TO_4,),
        compacts=False,
    ),
    ModelRow(
        line="claude",
        families=_OLDER,
        floor=(3, 7),
        source=f"{_DOCS}/build-with-claude/extended-thinking",
        thinking=("enabled", "disabled"),
        thinks="off",
        sampling="old",
        prefill=True,
        tooling=(),
        schema=False,
        reads=(_TO_4,),
        compacts=False,
    ),
    ModelRow(
        line="claude",
        families=_OLDER,
        floor=(3, 5),
        source=f"{_DOCS}/agents-and-tools",
        thinking=("disabled",),
        thinks="off",
        sampling="old",
        prefill=True,
        tooling=(),
        schema=False,
        compacts=False,
    ),
    ModelRow(
        line="claude",
        families=_OLDER,
        source=f"{_DOCS}/agents-and-tools",
        thinking=("disabled",),
        thinks="off",
        sampling="old",
        prefill=True,
        tooling=(),
        schema=False,
        served=False,
        compacts=False,
    ),
)

_STRICTEST: Final = ModelRow(
    source="the strictest of the rows",
    thinking=("adaptive", "between_tools", "disabled"),
    forced=False,
    schema=False,
    bound=True,
    tooling=(),
    compacts=False,
)

MODELS: Final = ModelTable(
    api="anthropic",
    rows=_ROWS,
    strictest=_STRICTEST,
    # A name that says nothing, such as that of a deployment, can be any of the rows.
    other=ModelRow(
        source="models of other names", thinking=_STRICTEST.thinking, bound=True, tooling=(), compacts=False
    ),
)
"""The table."""
