"""Whatever was erased, refused, lost or damaged in a log: it goes on, under every policy, and nothing that was erased is told again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver import AssistantMessage, Dialog, Session, ToolCallContent, ToolMessage, ToolResultContent, UserMessage
from palaver.context import POLICIES, SummaryAnswer
from palaver.context.summary import SummaryRequest
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.ids import BlobId
from palaver.log import Handle, Instructions, Section, Toolset
from palaver.messages import ImageContent, Media, TextContent, ThinkingContent
from palaver.session.erasure import erase
from palaver.session.erasure.doing import erasing_store
from palaver.store import MemoryStore, Store
from palaver.store.erasing import Placed
from palaver.testing.logs import assert_closed
from palaver.wire import Request
from tests.stores import KINDS, empty_store
from tests.wire.scenes import BASH, MODELS

MARK = re.compile(r"zq\d{5}x")
WORDS = "word " * 60


@pytest.fixture(params=KINDS[1:])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind that is on a disk."""
    yield from empty_store(request, tmp_path)


async def quoting(request: SummaryRequest, /) -> SummaryAnswer:
    """Summarise by quoting every mark that is there to be read."""
    said = " ".join(sorted(set(MARK.findall(request.prompt()))))
    return SummaryAnswer(text="\n\n".join(f"## {heading}\nHe said {said}." for heading in request.headings))


class Life:
    """A session, and what may happen to it; whatever says something by itself has a mark of its own."""

    def __init__(self, store: Store, seed: int) -> None:
        """Begin."""
        self.random = Random(seed)  # noqa: S311 - nothing is protected by it
        self.store = store
        self.numbers = count()
        self.marks: dict[Handle, set[str]] = {}
        self.gone: set[str] = set()
        self.dialog = Session.create(store, "life").root
        self.dialog.record(Toolset(tools=(BASH,)))
        self.acts: Mapping[str, Callable[[str], None]] = {
            "compacts": self.compacts,
            "undoes": self.undoes,
            "erases": self.erases,
            "loses": self.loses,
            "damages": self.damages,
            "forks": self.forks,
            "merges": self.merges,
            "calls": self.calls,
            "pins": self.marks_up,
            "quarantines": self.marks_up,
        }

    def mark(self) -> str:
        """Make a mark."""
        return f"zq{next(self.numbers):05}x"

    def elsewhere(self) -> Session:
        """Give the session as another process has it."""
        return Session.open(self.dialog.session_id, self.store)

    def fresh(self) -> Dialog:
        """Give the dialog as a process has it that has read nothing yet."""
        return self.elsewhere().dialog(self.dialog.dialog_id)

    # --- what may happen ----------------------------------------------------------------------------------------------------------

    def happens(self, what: str) -> None:
        """Let something happen, and take note of whose marks are whose."""
        known = {one.dialog_id: self.store.last(one.dialog_id).seq for one in self.elsewhere().dialogs}
        self.acts.get(what, self.says)(what)
        if what in SAYINGS:
            dialog = self.dialog.dialog_id
            for seq, body in self.store.bodies(dialog, known.get(dialog, -1) + 1):
                self.marks[Handle(dialog, seq)] = set(MARK.findall(body.decode()))

    def says(self, what: str) -> None:
        """Say something by itself."""
        dialog, mark = self.dialog, self.mark()
        if what == "asks":
            dialog.put_text(f"Question {mark}. You must never touch {mark}.py. {WORDS}")
        elif what == "works":
            call = ToolCallContent(id=f"c{next(self.numbers)}", name="bash", args={"command": f"cat {mark}.py"})
            output = ToolResultContent(id=call.id, name="bash", content=f"It says {self.mark()}. {WORDS * 4}")
            dialog.append(AssistantMessage(contents=(call,), response_id=call.id))
            dialog.append(ToolMessage.from_result(output))
        elif what == "thinks":
            thought = ThinkingContent(content=f"Perhaps {mark}", signature="c2lnbmVk", provider="anthropic")
            said = TextContent(content=f"{mark}: {WORDS}")
            dialog.append(
                AssistantMessage(
                    contents=(thought, said), response_id=f"r{next(self.numbers)}", model=MODELS["anthropic"]
                )
            )
        elif what == "shows":
            picture = Media.from_bytes(b"\x89PNG\r\n\x1a\n" + mark.encode())
            dialog.append(UserMessage(contents=(TextContent(content=f"See {mark}"), ImageContent(images=(picture,)))))
        else:
            self.states(what, mark)

    def states(self, what: str, mark: str) -> None:
        """Say something that holds from there on."""
        if what == "instructs":
            self.dialog.record(Instructions(sections=(Section(name="careful", text=f"Be careful of {mark}."),)))
        elif what == "declares":
            self.dialog.record(Toolset(tools=(BASH.model_copy(update={"description": f"Runs {mark}."}),)))
        else:
            self.dialog.constraints.add(f"Never say {mark}.")

    def marks_up(self, what: str) -> None:
        """Say something of what was said."""
        places = self.places()
        if places:
            place = self.random.choice(places)
            (self.dialog.pin if what == "pins" else self.dialog.quarantine)(place)

    def forks(self, _: str) -> None:
        """Go on with a branch."""
        self.dialog = self.dialog.fork(self.random.choice([0, 0, 3]))

    def merges(self, _: str) -> None:
        """Tell what happened on a branch."""
        child, mark = self.dialog.fork(), self.mark()
        child.put_text(f"On the branch: {mark}. {WORDS}")
        self.marks[Handle(child.dialog_id, 0)] = {mark}
        self.dialog.merge(child)

    def calls(self, _: str) -> None:
        """Record a call, and find it again as it was."""
        self.dialog.record_call(request := self.dialog.request("anthropic", MODELS["anthropic"]))
        assert self.dialog.invocations[-1].request().data == request.data

    def undoes(self, _: str) -> None:
        """Take the newest compaction back, where there is one."""
        with suppress(InvalidInput):
            self.dialog.undo()

    def places(self) -> list[Handle]:
        """Give what the view shows."""
        blocks = (block for exchange in self.dialog.view().exchanges for block in exchange.blocks())
        return [block.origin for block in blocks if block.origin is not None and block.origin.block is not None]

    def compacts(self, _: str) -> None:
        """Make the view smaller, in one of many ways."""
        policy = self.random.choice(sorted(POLICIES))
        by = self.random.choice([None, quoting])
        with suppress(InfeasibleBudget):
            preview = self.dialog.compact(policy=policy, summarizer=by, model=MODELS["openai-chat"])
            assert not self.told(json.dumps(preview.to_dict()), repr(preview.composed))
            if preview.worthwhile:
                preview.approve()

    def erases(self, _: str) -> None:
        """Erase any entry of any branch, elsewhere: no object that is in use here is told."""
        dialog = self.random.choice([one.dialog_id for one in self.elsewhere().dialogs])
        last = self.store.last(dialog).seq
        if last >= 0:
            place = Handle(dialog, self.random.randint(0, last))
            erase(self.store, entries=[place], thorough=False)
            self.gone |= self.marks.get(place, set())

    def loses(self, _: str) -> None:
        """Lose the bytes of a picture."""
        named = [BlobId(found) for found in self.pictures() if self.store.has_blob(BlobId(found))]
        if named:
            with erasing_store(self.store).erasing() as eraser:
                eraser.remove_blobs([self.random.choice(sorted(named))])

    def pictures(self) -> set[str]:
        """Give the digests that entries name."""
        bodies = (body for one in self.elsewhere().dialogs for _, body in self.store.bodies(one.dialog_id))
        return {found for body in bodies for found in re.findall(r'"digest":"([0-9a-f]{64})"', body.decode())}

    def damages(self, _: str) -> None:
        """Have the store give back other bytes than were written of an entry, and find it when the dialog is opened."""
        dialog = self.dialog.dialog_id
        headers = list(self.store.headers(dialog))
        if headers:
            header = self.random.choice(headers)
            with erasing_store(self.store).erasing() as eraser:
                eraser.put_in_place(dialog, [Placed(header.seq, header.kind, b"\x00 no entry")])
            self.dialog = self.fresh()

    # --- what holds ---------------------------------------------------------------------------------------------------------------

    def told(self, *texts: str) -> set[str]:
        """Give the marks of what was erased that texts tell."""
        return self.gone.intersection(found for text in texts for found in MARK.findall(text))

    def holds(self) -> None:
        """Ask for all that is planned and sent: it is there, valid, the same as elsewhere, and says nothing that was erased."""
        policy = self.random.choice(sorted(POLICIES))
        model = MODELS["openai-chat"]
        dialog = self.dialog
        assert not self.told(*dialog.constraints.texts)
        for budget in (None, 1_500, 600):
            name = self.random.choice(sorted(MODELS))
            used = None if budget is None else policy
            asked = [sent(one, name, used, budget) for one in (dialog, self.fresh())]
            assert asked[0] == asked[1]
            assert not self.told(*asked)
            if budget is not None:
                with suppress(InfeasibleBudget):
                    composed = dialog.compose(policy, budget, model=model)
                    assert_closed(composed.view)
                    assert not self.told(repr(composed.view), repr(composed.plan))
        assert dialog.figures(at=0.0) == self.fresh().figures(at=0.0)


def sent(dialog: Dialog, name: str, policy: str | None, budget: int | None) -> str:
    """Give what a dialog sends, or why it cannot."""
    try:
        request: Request = dialog.request(name, MODELS[name], policy=policy, budget=budget)
    except InfeasibleBudget as error:
        return str(error)
    return json.dumps(request.body)


SAYINGS = frozenset({"asks", "works", "thinks", "shows", "instructs", "declares", "states"})
HAPPENINGS = (
    *("asks", "works", "asks", "works", "works", "thinks", "shows", "shows", "instructs", "declares", "states", "pins"),
    *(
        "quarantines",
        "forks",
        "merges",
        "calls",
        "undoes",
        "compacts",
        "compacts",
        "erases",
        "erases",
        "loses",
        "damages",
    ),
)


PAST = st.lists(st.sampled_from(["asks", "works", "thinks", "shows"]), min_size=3, max_size=6)
ACTS = st.lists(st.sampled_from(HAPPENINGS), min_size=3, max_size=12)


def lives(store: Store, acts: list[str], seed: int) -> None:
    """Let it all happen, and look at what is there then."""
    life = Life(store, seed)
    for what in acts:
        life.happens(what)
    life.holds()


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(past=PAST, acts=ACTS, seed=st.integers(0, 2**32))
def test_whatever_is_gone_the_next_request_is_there(past: list[str], acts: list[str], seed: int) -> None:
    """After any erasure, quarantine, loss or damage: plans, views, requests and constraints of every policy, without a word that was erased."""
    lives(MemoryStore(), [*past, *acts], seed)


@settings(
    max_examples=settings().max_examples // 16,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(past=PAST, acts=ACTS, seed=st.integers(0, 2**32))
def test_it_is_so_in_every_store(store: Store, past: list[str], acts: list[str], seed: int) -> None:
    """The same where the log lies in a file or on a server."""
    lives(store, [*past, *acts], seed)
