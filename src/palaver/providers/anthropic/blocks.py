"""The blocks of Anthropic's own tools, compactions and fallbacks: what each needs to go back.

After the types of the `anthropic` package 2.14 (`types/beta/beta_content_block_param.py`) and the pages under platform.claude.com/docs/en:
build-with-claude/handling-stop-reasons, …/compaction-threshold, …/compaction-on-demand, …/refusals-and-fallback, agents-and-tools/tool-use/tool-search-tool
and …/programmatic-tool-calling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from palaver.wire.table import OwnBlocks

CALLS = frozenset({"server_tool_use", "mcp_tool_use"})

RESULTS = frozenset({
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result", "tool_search_tool_result", "advisor_tool_result", "mcp_tool_result",
})  # fmt: skip

_PARTS_OF = re.compile(r"(?:bash|text_editor)_(?=code_execution)")
"""Code execution is one tool, which is called under these names, too."""


def missing(kind: str, fields: Mapping[str, Any], tools: frozenset[str]) -> str:
    """Return what a block needs and a request does not have, or an empty text."""
    if kind in CALLS:
        return _missing_of_call(kind, fields, tools)
    if kind in RESULTS or kind.endswith("_tool_result"):
        if not fields.get("tool_use_id") or not ("content" in fields or kind == "mcp_tool_result"):
            return "what its provider gives every such block is not there"
        unknown = sorted(set(references(fields)) - tools)
        return f"it found the tool {unknown[0]!r}, which is not declared" if unknown else ""
    # «Empty string content is not allowed»: BetaCompactionBlockParam; null is a compaction that failed, which does nothing
    return "it says nothing" if kind == "compaction" and fields.get("content") == "" else ""


def _missing_of_call(kind: str, fields: Mapping[str, Any], tools: frozenset[str]) -> str:
    """Return what a call of a tool needs: «`web_search` tool use … was found but no `web_search` tool was provided»."""
    if not (fields.get("id") and isinstance(fields.get("name"), str) and isinstance(fields.get("input"), Mapping)):
        return "what its provider gives every such block is not there"
    name = str(fields.get("server_name") if kind == "mcp_tool_use" else fields["name"])
    return "" if {name, _PARTS_OF.sub("", name)} & tools else f"the request does not ask for the tool {name!r}"


def references(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a search found."""
    content = fields.get("content")
    found = content.get("tool_references") if isinstance(content, Mapping) else None
    for reference in found if isinstance(found, list) else ():
        if isinstance(reference, Mapping):
            yield str(reference.get("tool_name"))


BLOCKS = OwnBlocks(
    known=CALLS | RESULTS | {"compaction", "fallback", "mcp_tool_listing", "container_upload"},
    denied={
        # «`document` blocks are not permitted in `assistant` messages»: api/migration-2026-10-21
        "document": "no document can stand in assistant words",
        "tool_use": "a call that was cut off or taken back",
    },
    missing=missing,
    calls=dict.fromkeys(CALLS, "id"),
    results=re.compile(r"\w+_tool_result"),
    compaction="content",
    carried=frozenset({"caller", "toolset_name", "citations"}),
    deferred="defer_loading",
    shown=references,  # «adding an unreferenced deferred tool» keeps thinking valid: build-with-claude/preserved-thinking
)
