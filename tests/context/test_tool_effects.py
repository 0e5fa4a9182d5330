"""What a call did, by its tool's declaration or a table of names: never by what it says."""

from __future__ import annotations

from palaver.context.tool_effects import Effect, effect
from palaver.log import ToolSpec

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+hello\n*** End Patch"


def test_the_table_knows_tools_and_arguments_by_name() -> None:
    """A tool that is not in the table did nothing, whatever its arguments are called."""
    cases: list[tuple[str, dict[str, object], Effect]] = [
        ("Read", {"file_path": "/a.py", "limit": 5}, Effect(reads=("/a.py",))),
        ("read_many_files", {"paths": ["a", "b"]}, Effect(reads=("a", "b"))),
        ("mcp__disk__read-file", {"path": "x"}, Effect(reads=("x",))),
        ("Edit", {"file_path": "/a.py", "old_string": "/b.py"}, Effect(writes=("/a.py",))),
        ("str_replace_editor", {"command": "view", "path": "x"}, Effect(reads=("x",))),
        ("str_replace_editor", {"command": "create", "path": "x"}, Effect(writes=("x",))),
        ("apply_patch", {"input": PATCH}, Effect(writes=("src/a.py", "b.md"))),
        ("Bash", {"command": "rm -rf /a.py"}, Effect(command="rm -rf /a.py")),
        ("shell", {"command": ["bash", "-lc", "ls"]}, Effect(command="bash -lc ls")),
        ("TodoWrite", {"todos": []}, Effect(plan=True)),
        ("get_user_details", {"path": "/a.py", "command": "ls"}, Effect()),
        ("Read", {"file_path": 5}, Effect()),
        ("", {"command": None, "paths": [None]}, Effect()),
    ]
    for tool, arguments, expected in cases:
        assert effect(tool, arguments) == expected, (tool, arguments, expected)


def test_a_declaration_wins_over_the_table() -> None:
    """`@tool(reads=..., writes=...)` names the arguments."""
    spec = ToolSpec(name="bash", reads=("source",), writes=("target", "more"))
    done = effect("bash", {"source": "a", "target": "b", "more": ["c"], "command": "cp a b"}, spec)
    assert done == Effect(reads=("a",), writes=("b", "c"))
    assert effect("bash", {"command": "ls"}, ToolSpec(name="bash")) == Effect(command="ls")
