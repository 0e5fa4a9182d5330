"""The agent of the demo: a scripted model that drives real tools over this checkout, in a short loop that can be killed anywhere.

What it shows of palaver: every step is durable before the next, and after a kill the log alone says where to go on. Nothing that was
recorded is asked or done again; a call that was cut off is repeated because these tools only read.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from palaver import (
    AssistantMessage,
    Dialog,
    Session,
    Store,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    open_store,
)
from palaver.log import CallStarted, ModelChange, Toolset, ToolSpec

ROOT = Path(__file__).resolve().parent.parent
NAME = "demo"
MODEL = "claude-sonnet-4-5"
GOAL = (
    "Review this checkout before a release. List the packages, read each package's first module, search for what looks "
    "unfinished, and run the linter. You must not change any file. Report what you would fix first."
)
_LONGEST_READ = 4_000


# --- the tools: they only read ----------------------------------------------------------------------------------------------------


def list_files(folder: str) -> str:
    """List a folder."""
    return "\n".join(sorted(f"{path.name}{'/' if path.is_dir() else ''}" for path in (ROOT / folder).iterdir()))


def read_file(path: str) -> str:
    """Read a file."""
    return (ROOT / path).read_text(encoding="utf-8")[:_LONGEST_READ]


def search(pattern: str, folder: str) -> str:
    """Search the Python files of a folder for a regular expression."""
    wanted = re.compile(pattern)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if wanted.search(line)
    ]
    return "\n".join(found) or "nothing found"


def lint(folder: str) -> str:
    """Run the linter over a folder."""
    command = [sys.executable, "-m", "ruff", "check", "--output-format=concise", "--no-cache", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


TOOLS: dict[str, Callable[..., str]] = {tool.__name__: tool for tool in (list_files, read_file, search, lint)}


def declared() -> Toolset:
    """Declare the tools as a model is told of them."""
    return Toolset(
        tools=tuple(
            ToolSpec(
                name=name,
                description=tool.__doc__ or "",
                parameters={
                    "type": "object",
                    "properties": {word: {"type": "string"} for word in tool.__annotations__ if word != "return"},
                    "required": [word for word in tool.__annotations__ if word != "return"],
                },
            )
            for name, tool in TOOLS.items()
        )
    )


# --- the model: a script over what is really there ----------------------------------------------------------------------------------


class Step(NamedTuple):
    """One answer of the model: what it says, and the calls it makes."""

    text: str
    calls: tuple[tuple[str, dict[str, str]], ...] = ()


def script() -> Iterator[Step]:
    """Return the model's answers in order: the same at every start, which is what a model's recorded answers would be."""
    packages = sorted(path.name for path in (ROOT / "src" / "palaver").iterdir() if (path / "__init__.py").is_file())
    yield Step(
        "I begin with what is there.", (("list_files", {"folder": "."}), ("list_files", {"folder": "src/palaver"}))
    )
    yield Step(
        "Every class that is defined, in one go.",
        (("search", {"pattern": r"^class ", "folder": "src"}),),
    )
    for package in packages:
        folder = f"src/palaver/{package}"
        yield Step(
            f"Package {package}.",
            (("list_files", {"folder": folder}), ("read_file", {"path": f"{folder}/__init__.py"})),
        )
        modules = sorted(path.name for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py")
        for module in modules[:2]:
            yield Step(f"I read {module} of {package}.", (("read_file", {"path": f"{folder}/{module}"}),))
        words = {"pattern": "TODO|FIXME|XXX|NotImplementedError", "folder": folder}
        yield Step(f"Unfinished places in {package}.", (("search", words),))
    yield Step(
        "One path that is not there, to see that an error is only a result.",
        (("read_file", {"path": "src/nowhere.py"}),),
    )
    yield Step(f"I have seen {len(packages)} packages. Next step: write the release notes, then tag.")


def side_script() -> Iterator[Step]:
    """Return the answers on the branch."""
    yield Step(
        "On this branch I look at the demo only.", (("list_files", {"folder": "demo"}), ("lint", {"folder": "demo"}))
    )
    yield Step("The demo is two files; nothing to do there.")


# --- the loop -------------------------------------------------------------------------------------------------------------------------


def run_tool(name: str, arguments: dict[str, str]) -> tuple[str, bool]:
    """Run a tool; a failure is a result like any other."""
    try:
        return TOOLS[name](**arguments), False
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}", True


def answer(dialog: Dialog, call: ToolCallContent) -> None:
    """Run one call: the intent is durable before the effect, the result as soon as there is one."""
    dialog.record(CallStarted(call_id=call.id, tool=call.name, idempotent=True))
    text, failed = run_tool(call.name, dict(call.args))
    dialog.append(ToolMessage.from_result(ToolResultContent(id=call.id, name=call.name, content=text, is_error=failed)))


def open_calls(dialog: Dialog) -> list[ToolCallContent]:
    """Return the calls that have no result yet: the header of the newest entry knows them."""
    waiting = dialog.store.last(dialog.dialog_id).open_calls
    newest = next((message for message in reversed(dialog.messages) if message.tool_calls()), None)
    return [] if newest is None else [call for call in newest.tool_calls() if call.id in waiting]


def go_on(dialog: Dialog, steps: Iterator[Step]) -> None:
    """Bring a dialog to its end, from wherever it stands."""
    for call in open_calls(dialog):
        answer(dialog, call)
    shared = dialog.tree_node.split_point or 0
    told = sum(message.is_assistant_side for message in dialog.messages[shared:])
    for number, step in enumerate(itertools.islice(steps, told, None), told):
        calls = tuple(
            ToolCallContent(id=f"call_{shared}_{number}_{place}", name=name, args=arguments)
            for place, (name, arguments) in enumerate(step.calls)
        )
        dialog.append(AssistantMessage(contents=(TextContent(step.text), *calls), model=MODEL))
        for call in calls:
            answer(dialog, call)


def main(store_url: str) -> None:
    """Record the session, or go on with the one that was cut off."""
    with closing(open_store(store_url)) as store:
        known = next(store.sessions(name=NAME), None)
        session = begun(store) if known is None else Session.open(store, known.session_id)
        go_on(session.root, script())
        side = session.root.children[0] if session.root.children else session.root.fork(last_n=3, first_k=2)
        if len(side.messages) == side.tree_node.split_point:
            side.put_text("And the demo? Only look, and say it in one sentence.")
        go_on(side, side_script())


def begun(store: Store) -> Session:
    """Begin the session: instructions, tools, and what the user asks."""
    session = Session.create(store, NAME, owner="reviewer", workdir=str(ROOT))
    session.root.record(declared(), ModelChange(model=MODEL))
    session.root.put_text("You review Python projects. Be brief and exact.", role="system", name="system")
    session.root.put_text(GOAL)
    return session


if __name__ == "__main__":
    main(sys.argv[1])
