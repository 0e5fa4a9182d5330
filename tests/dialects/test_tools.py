"""Schemas of tools are read in each dialect that writes them."""

from __future__ import annotations

import pytest

from palaver.context import RECALL_TOOLS
from palaver.dialects import names, read_list, tool_specs


@pytest.mark.parametrize("name", names())
def test_a_declared_tool_is_read(name: str) -> None:
    """A tool counts whole, also in the dialect of a framework or a page."""
    declared = [read_list([], name, (), "").declare(tool) for tool in RECALL_TOOLS]
    assert tool_specs(declared)[1] == RECALL_TOOLS


def test_a_tool_of_converse_is_read() -> None:
    """A request to Bedrock has the specification of a tool in an object."""
    declared = [{"toolSpec": read_list([], "bedrock", (), "").declare(tool)} for tool in RECALL_TOOLS]
    assert tool_specs(declared)[1] == RECALL_TOOLS
