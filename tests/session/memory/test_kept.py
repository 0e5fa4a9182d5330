"""What is kept outside every summary: the state of a harness stays in every view, and every path and command can be found by its name."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from palaver import Dialog, MemoryStore, Session, recall_tools
from palaver.context import POLICIES
from palaver.context.work.deeds import deed
from palaver.log import Handle, Instructions, Pin, Place, Section
from palaver.messages import (
    AssistantMessage,
    Message,
    Speaker,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.view import View
from tests.context.helper import faults
from tests.session.memory.test_recalling import bodies, use

CUTTING = [name for name in POLICIES if name != "full"]
"""Every policy that leaves something out."""

PAGE = "\n".join(f"line {number} of some output" for number in range(120))
RULES = [
    "You must never push to main.",
    "Use tabs in src/palaver.",
    "不要修改测试文件。",
    "Antworte bitte nur auf Deutsch.",
]


def called(number: int, name: str, said: str, **args: object) -> tuple[Message, Message]:
    """Give a call and its result."""
    call = ToolCallContent(id=f"c{number}", name=name, args=args)
    return AssistantMessage(contents=(call,)), ToolMessage.from_result(
        ToolResultContent(id=call.id, content=said, name=name)
    )


def shown(view: View) -> str:
    """Give all that a model reads in a view: texts, results, and the arguments of calls."""
    said = []
    for exchange in view.exchanges:
        for block in exchange.blocks():
            content = block.content
            if isinstance(content, ToolCallContent):
                said.append("\n".join(_words(content.args)))
            elif isinstance(content, TextContent | ToolResultContent):
                said.append(content.text() if isinstance(content, ToolResultContent) else content.content)
    return "\n".join(said)


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _words(each)
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, str))
        yield " ".join(each for each in value if isinstance(each, str))


# --- what a harness wants kept --------------------------------------------------------------------------------------------------

INSTRUCTED = ["You are careful.", "Mode: plan."]
STATE = {
    "working folder": "<environment_context><cwd>/home/ada/heron</cwd></environment_context>",
    "permissions": "Approval policy: never. Sandbox: workspace-write. Network: off.",
    "skill": "Skill heron-pages: render with `tools/render.py --page NAME`, then look at out/NAME.png.",
    "memory file": "AGENTS.md says: the tests run with `make check`.",
}


@pytest.mark.parametrize("name", CUTTING)
def test_t10_harness_state_that_is_pinned_is_in_every_view(name: str) -> None:
    """Plan, todos, permissions, working folder, skills, what an agent's file says: each word for word behind each compaction, undone and forked."""
    dialog = Session.create(MemoryStore(), "s", owner="a").root
    dialog.record(Instructions(sections=tuple(Section(name=text, text=text) for text in INSTRUCTED)))
    dialog.put_text("Make the pages faster.")
    told = {what: _put(dialog, text) for what, text in STATE.items()}
    plan = _work(
        dialog,
        0,
        "update_plan",
        "Plan updated",
        plan=[{"step": "measure the heron page", "status": "completed"}, {"step": "cache it", "status": "in_progress"}],
    )
    todo = _work(
        dialog, 1, "TodoWrite", "Todos written", todos=[{"content": "ask Grace about tea", "status": "pending"}]
    )
    for place in (*told.values(), plan, todo):
        dialog.annotate(Pin(target=Place(dialog=place.dialog, seq=place.seq)))
    for round_ in range(2):
        for number in range(6):
            _work(dialog, 10 * round_ + number + 2, "bash", PAGE, command=f"pytest tests/test_{round_}_{number}.py")
            dialog.put_text(f"Go on, {round_} {number}.")
        preview = dialog.compact(policy=name, budget=4_000, model="gpt-4o")
        preview.approve()
        for one in (dialog, dialog.fork()):
            view = one.view()
            said = shown(view)
            assert [what for what, text in STATE.items() if text not in said] == []
            assert [
                text
                for text in ("measure the heron page", "cache it", "ask Grace about tea")
                if text not in str(view.exchanges)
            ] == []
            assert [
                block.content.content for block in view.system if isinstance(block.content, TextContent)
            ] == INSTRUCTED
            assert faults(view) == []
    dialog.undo()
    assert [what for what, text in STATE.items() if text not in shown(dialog.view())] == []


def _put(dialog: Dialog, text: str) -> Handle:
    """Have the harness say something."""
    dialog.append(UserMessage.text(text).model_copy(update={"speaker": Speaker.HARNESS}))
    return Handle(dialog.dialog_id, dialog.store.last(dialog.dialog_id).seq)


def _work(dialog: Dialog, number: int, name: str, said: str, **args: object) -> Handle:
    """Have the model call a tool; the place of the call."""
    call, result = called(number, name, said, **args)
    dialog.append(call)
    place = Handle(dialog.dialog_id, dialog.store.last(dialog.dialog_id).seq)
    dialog.append(result)
    return place


# --- by name --------------------------------------------------------------------------------------------------------------------


_REST = re.compile(r"\(The run goes on: recall (\S+) for the rest\.\)")
_MORE = "\n(There is more: recall the same with offset="


class Names:
    """The paths and commands of a dialog, and which of them a model reaches, by its view and its tools."""

    def __init__(self, dialog: Dialog) -> None:
        self.dialog = dialog
        self.tools = recall_tools()
        self.every = tuple(dict.fromkeys(name for message in dialog.messages for name in _named(message)))
        self.said = shown(dialog.view())
        self.recalled = ""

    def in_view(self) -> set[str]:
        """Those that stand in the view."""
        return {name for name in self.every if name in self.said}

    def listed(self) -> set[str]:
        """Those that stand in the view, or in what `recall` gives for the places that `list_omitted` names, page by page."""
        if not self.recalled:
            self.recalled = "\n".join(bodies(self._recall(place)) for place in self._places())
        return {name for name in self.every if name in self.said or _says(self.recalled, name)}

    def searched(self) -> set[str]:
        """Those that stand in the view, or in what `recall` gives for a place that `search_history` finds with their own words."""
        return {name for name in self.every if name in self.said or self._finds(name)}

    def _places(self) -> Iterator[str]:
        offset = 0
        while True:
            said, wrong = use(self.tools, "list_omitted", self.dialog, offset=offset, limit=50)
            assert not wrong
            places = [line.split(" ")[0] for line in said.splitlines()[1:] if not line.startswith("(")]
            yield from places
            if not said.endswith(".)"):
                return
            offset += len(places)

    def _recall(self, place: str) -> str:
        parts, offset = [], 0
        while True:
            said, wrong = use(self.tools, "recall", self.dialog, handle=place, offset=offset, limit=40_000)
            assert not wrong, said
            body, more, where = said.rpartition(_MORE)
            parts.append(body if more else said)
            if not more:
                rest = _REST.search(parts[-1])
                return "".join(parts) if rest is None else "".join([*parts, self._recall(rest[1])])
            offset = int(where.removesuffix(".)"))

    def _finds(self, name: str) -> bool:
        said, wrong = use(self.tools, "search_history", self.dialog, query=name, limit=50)
        assert not wrong, said
        return any(
            _says(bodies(self._recall(line.split(" ")[0])), name)
            for line in said.splitlines()
            if ":" in line.split(" ")[0]
        )


def _says(text: str, name: str) -> bool:
    """Tell whether a text says a name, as it stands or as JSON spells it."""
    return name in text or json.dumps(name, ensure_ascii=False)[1:-1] in text


def _named(message: Message) -> Iterator[str]:
    for call in message.tool_calls():
        done = deed(call)
        yield from (*done.read, *done.wrote, *((done.run,) if done.run else ()))


def chained(dialog: Dialog, name: str, budget: int, count: int) -> int:
    """Work on until so many compactions were committed, by a policy, each behind the one before; the most tokens that a view had then."""
    commits, turn, largest = 0, 0, 0
    while commits < count:
        _work(
            dialog,
            4 * turn,
            "bash",
            PAGE,
            command=f"pytest tests/test_{turn}.py -k 'slow or \"heron {turn}\"' && git -C sub/dir{turn} diff --stat",
        )
        _work(dialog, 4 * turn + 1, "Read", PAGE, file_path=f"/srv/app-{turn}/src/main.py")
        _work(
            dialog, 4 * turn + 2, "Edit", "done", file_path=f"docs/Übersicht {turn}.md", old_string="a", new_string="b"
        )
        _work(
            dialog, 4 * turn + 3, "bash", PAGE, command=f"cat < in{turn}.txt | tee 'out {turn}.txt' >> logs/{turn}.log"
        )
        dialog.put_text(f"Go on with {turn}.")
        turn += 1
        preview = dialog.compact(policy=name, budget=budget, model="gpt-4o")
        if preview.worthwhile:
            preview.approve()
            commits += 1
            largest = max(largest, preview.tokens_after)
        assert turn < 4 * count + 20, "it does not get smaller"
    return largest


def fifty(name: str, count: int) -> str:
    """Compact so many times over, and hold what is kept to it; say the counts."""
    dialog = Session.create(MemoryStore(), "s", owner="a").root
    dialog.put_text("Make the pages faster.")
    for rule in RULES:
        dialog.put_text(f"Good. {rule}")
    pinned = _put(dialog, STATE["skill"])
    dialog.annotate(Pin(target=Place(dialog=pinned.dialog, seq=pinned.seq)))
    largest = chained(dialog, name, 6_000, count)
    names = Names(dialog)
    assert largest <= 6_000, "the view is bounded"
    assert STATE["skill"] in names.said
    assert [rule for rule in RULES if rule not in names.said] == []
    assert set(dialog.constraints.texts) >= set(RULES)
    assert set(names.every) - names.listed() == set(), "what left the view is in the list, and comes back by its place"
    assert set(names.every) - names.searched() == set(), "and is found by its own words"
    return (
        f"{name}: {count} compactions, at most {largest:,} tokens; 1 of 1 pinned and {len(RULES)} of {len(RULES)} stated constraints inline; "
        f"of {len(names.every)} paths and commands {len(names.in_view())} inline, {len(names.listed())} by list and recall, {len(names.searched())} by search and recall"
    )


@pytest.mark.parametrize("name", ["palaver", "lllm"])
def test_chained_compactions_keep_all_names_in_reach(name: str) -> None:
    """Bounded; what is pinned and stated inline; each path and command reached by list and recall, and by search and recall."""
    assert f"{name}: 5 compactions" in fifty(name, 5)


@pytest.mark.soak
@pytest.mark.parametrize("name", CUTTING)
def test_fifty_chained_compactions_keep_all_names_in_reach(name: str, tell: Callable[[str], None]) -> None:
    """The same fifty times over, under every policy; the counts are printed."""
    tell(fifty(name, 50))
