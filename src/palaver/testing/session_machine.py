"""The laws of a session as one machine: any history of two writers, with deaths in it, over any store.

Two processes, each with its own handle of one store, say things, answer, fork (also in the middle of a turn), compact, undo, rewind, merge,
annotate, call models of four providers in turn, and die. Every step that a handle made durable is played into the reference store in memory;
that, and a few plain lists, is what the laws are held to. Each rule says which laws it tries; the end tries them all again::

    class MyMachine(SessionMachine):
        def place(self) -> Place:
            return SharedPlace(lambda: open_my_store(...))


    TestMySessions = MyMachine.TestCase
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from palaver.context import POLICIES, Meter
from palaver.errors import Conflict, InfeasibleBudget, InvalidInput
from palaver.ids import BlobId, DialogId
from palaver.log import Custom, Inbox, Toolset, ToolSpec, TurnEnded, TurnStarted
from palaver.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    UserMessage,
)
from palaver.session import Dialog, Session
from palaver.store.copying import fingerprint
from palaver.testing.conversations import EVALUATED, TEMPLATES
from palaver.testing.disk import Loss
from palaver.testing.logs import result
from palaver.testing.policy_laws import MODELS, hold
from palaver.testing.session_laws import Sent, goes_on, hold_bodies, hold_handles, hold_infeasible, hold_sent
from palaver.testing.session_place import Died, Place
from palaver.tokens import Budget, counter
from palaver.wire import Request

__all__ = ["SessionMachine"]

WHO = st.integers(0, 1)
WHICH = st.integers(0, 5)
TEXTS = st.sampled_from(
    [
        *TEMPLATES[:3],
        "'); DROP TABLE entries; --",
        "../../../../etc/passwd",
        "a\x00b \ud800 c",
        "你好 🙂 \u202e",
        "words " * 40,
        "go on",
    ]
)
POLICY = st.sampled_from(["default", "offload", "fold"])
PROFILE = st.sampled_from(sorted(MODELS))
_MODEL = "gpt-4o"
_MOST_DIALOGS = 6
_CLEANED = {0: "\ufffd", 0xD800: "\ufffd"}
_PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


class SessionMachine(RuleBasedStateMachine):
    """A random history; a subclass says where its sessions lie."""

    def place(self) -> Place:
        """Give an empty place."""
        raise NotImplementedError("say where the sessions lie")

    def __init__(self) -> None:
        """Begin a session, and let the other process open it."""
        super().__init__()
        self.where = self.place()
        self.sent: list[Sent] = []
        self.before: dict[tuple[int, DialogId, str], Request] = {}
        self.edits: dict[DialogId, list[int]] = {}
        self.numbers = 0
        first = Session.create(self.where.handle(), "machine")
        self.session_id = first.session_id
        self.writers = [first, Session.open(self.session_id, self.where.handle())]
        first.root.put_text("Be brief.", role="system")
        first.root.record(Toolset(tools=(ToolSpec(name="look", description="Looks at a file."),)))
        first.root.put_text("Find the fault. You must never push.")
        self.since = self.where.at()

    def number(self) -> int:
        """Give a number that was never given."""
        self.numbers += 1
        return self.numbers

    def dialog(self, who: int, which: int) -> Dialog:
        """Give a dialog as one of the writers knows it, and note where the disk is."""
        self.since = self.where.at()
        session = self.writers[who]
        nodes = session.store.nodes(self.session_id)
        return session.dialog(nodes[which % len(nodes)].dialog_id)

    def write(self, dialog: Dialog, say: Callable[[], object], *, fork: bool = False) -> Dialog:
        """Law 5: whoever knows the head has written, and everybody else is told, has written nothing, and goes on as he likes.

        Returns:
            The dialog that it was said in.
        """
        head, steps = dialog.store.last(dialog.dialog_id).turn_head, len(self.where.steps)
        knows = dialog._last.turn_head == head  # noqa: SLF001 - what it knows is what the law is about
        told: Conflict | None = None
        try:
            say()
        except Conflict as conflict:
            told = conflict
        assert (told is None) is knows, "told of a conflict where there was none, or not told of one"
        if told is None:
            return dialog
        assert (told.expected, told.actual) == (dialog._last.turn_head, head)  # noqa: SLF001
        assert all(step[0].method == "put_blob" for step in self.where.steps[steps:]), "told, and written all the same"
        return dialog.fork() if fork else dialog.reload()

    # --- turns ------------------------------------------------------------------------------------------------------------------

    @rule(who=WHO, which=WHICH, text=TEXTS, fork=st.booleans())
    def ask(self, who: int, which: int, text: str, fork: bool) -> None:  # noqa: FBT001 - drawn
        """The user says something (laws 2, 5, 11, 12)."""
        dialog = self.dialog(who, which)
        read, steps = bodies_read(dialog), len(self.where.steps)
        said = self.write(dialog, lambda: dialog.put_text(text), fork=fork)
        if len(self.where.steps) == steps + 1 and said is dialog:
            assert bodies_read(dialog) - read <= 1, "an append reads what does not belong to it"
            assert [write.method for write in self.where.steps[-1]] == ["append"]
            assert dialog.tail is not None
            assert dialog.tail.text_content() == text.translate(_CLEANED)

    @rule(who=WHO, which=WHICH, name=PROFILE, calls=st.booleans())
    def turn(self, who: int, which: int, name: str, calls: bool) -> None:  # noqa: FBT001 - drawn
        """A model of some provider is asked, recorded, and answers with what only it can read (laws 1, 5, 6, 7, 12)."""
        dialog = self.dialog(who, which)
        request = dialog.request(name, MODELS[name], max_tokens=100)
        assert EVALUATED.encode() not in request.data, "a text was rendered as a template"
        self._goes_on(who, dialog, name, request)
        place = dialog.record_call(request)
        self.sent.append(Sent(place.dialog, place.seq, request.data))
        number = self.number()
        contents: list[Content] = [
            ThinkingContent(f"thought {number}", signature=f"signed-{number}"),
            TextContent(f"answer {number} " * 20),
        ]
        if calls:
            contents.append(ToolCallContent(id=f"call_{number}", name="look", args={"path": f"../{number}"}))
        answer = AssistantMessage(contents=tuple(contents), model=MODELS[name], response_id=f"r{number}")
        self.write(dialog, lambda: dialog.append(answer))

    def _goes_on(self, who: int, dialog: Dialog, name: str, request: Request) -> None:
        """Law 7, where nothing was edited between what the two requests know, and in the one before something was said and no call was open."""
        assert request.view is not None
        key = (who, dialog.dialog_id, name)
        before = self.before.get(key)
        if before is not None and before.view is not None:
            known = range(before.view.at + 1, request.view.at + 1)
            edited = any(seq in known for seq in self.edits.get(dialog.dialog_id, ()))
            assert edited or goes_on(before, request), "without an edit, a request does not go on from the one before"
        self.before.pop(key, None)
        if request.view.exchanges and not any(exchange.open for exchange in request.view.exchanges):
            self.before[key] = request

    @rule(who=WHO, which=WHICH, size=st.sampled_from([1, 600]))
    def answer(self, who: int, which: int, size: int) -> None:
        """A tool answers the oldest open call (laws 5, 10)."""
        dialog = self.dialog(who, which)
        waiting = dialog.store.last(dialog.dialog_id).open_calls
        if waiting:
            self.write(dialog, lambda: dialog.append(result(waiting[0], "line of a file\n" * size)))

    @rule(who=WHO, which=WHICH)
    def begin_or_end(self, who: int, which: int) -> None:
        """A turn begins, or ends: forks that are made in between are made in the middle of it (law 5)."""
        dialog = self.dialog(who, which)
        self.write(dialog, lambda: dialog.record(TurnEnded() if dialog.in_turn else TurnStarted(agent="coder")))

    @rule(who=WHO, which=WHICH, at=st.integers(0, 20), what=st.sampled_from(["label", "pin", "inbox", "custom"]))
    def annotate(self, who: int, which: int, at: int, what: str) -> None:
        """Something arrives beside a turn: it lands whoever else wrote meanwhile, and moves no turn (law 5)."""
        dialog = self.dialog(who, which)
        head, newest = _ends(dialog)
        place = dialog.messages.handle(at % len(dialog.messages))
        if what == "label":
            dialog.label(place, f"label {self.number()}")
        elif what == "pin":
            dialog.pin(place, pinned=at % 3 > 0)
            self._edited(dialog)
        elif what == "inbox":
            dialog.annotate(Inbox(message=UserMessage.text(f"by the way {self.number()}")))
        else:
            dialog.annotate(Custom(custom_type="machine", data={"n": self.number()}))
        assert _ends(dialog) == (head, newest + 1)

    @rule(who=WHO, which=WHICH, number=st.integers(0, 1))
    def show(self, who: int, which: int, number: int) -> None:
        """The user shows a picture, which is stored once (laws 4, 5)."""
        dialog = self.dialog(who, which)
        picture = UserMessage(contents=(TextContent("see"), ImageContent(images=(_PNG + bytes([number]),))))
        self.write(dialog, lambda: dialog.append(picture))

    # --- branches -----------------------------------------------------------------------------------------------------------------

    @rule(who=WHO, which=WHICH, last_n=st.integers(0, 5), first_k=st.integers(0, 2))
    def fork(self, who: int, which: int, last_n: int, first_k: int) -> None:
        """A branch, of all or of some messages: one row, whatever the length of the log (laws 3, 11)."""
        if len(self.writers[who].dialogs) >= _MOST_DIALOGS:
            return
        dialog = self.dialog(who, which)
        read, steps = bodies_read(dialog), len(self.where.steps)
        child = dialog.fork(last_n, first_k)
        assert [[write.method for write in step] for step in self.where.steps[steps:]] == [["create_dialog"]]
        assert bodies_read(dialog) - read <= 1, "a fork reads the log"
        assert len(child.messages) == (min(last_n + first_k, len(dialog.messages)) if last_n else len(dialog.messages))

    @rule(who=WHO, which=WHICH, at=st.integers(0, 20), undone=st.booleans())
    def rewind(self, who: int, which: int, at: int, undone: bool) -> None:  # noqa: FBT001 - drawn
        """Going back leaves everything where it is, and can be undone (laws 3, 5)."""
        if len(self.writers[who].dialogs) >= _MOST_DIALOGS:
            return
        dialog = self.dialog(who, which)
        try:
            back = dialog.rewind(dialog.messages.handle(at % len(dialog.messages))).apply()
        except (InvalidInput, Conflict):
            return  # nothing would leave; or somebody said something meanwhile
        if undone:
            assert back.undo_rewind().dialog_id == dialog.dialog_id

    @rule(who=WHO, which=WHICH, other=WHICH)
    def merge(self, who: int, which: int, other: int) -> None:
        """What happened on one branch is told on another, by an entry that moves no turn (law 5)."""
        branch, dialog = self.dialog(who, other), self.dialog(who, which)
        head = _ends(dialog)[0]
        try:
            dialog.merge(branch)
        except InvalidInput:
            return  # there is nothing to tell
        assert _ends(dialog)[0] == head

    # --- views ----------------------------------------------------------------------------------------------------------------------

    @rule(who=WHO, which=WHICH, name=POLICY, percent=st.sampled_from([15, 40, 70]))
    def compact(self, who: int, which: int, name: str, percent: int) -> None:
        """A smaller view is written down: it is smaller, and everything it leaves out can be had from every branch (laws 3, 8, 9)."""
        dialog = self.dialog(who, which)
        meter = Meter(counter(_MODEL))
        before, knows_all = meter.view(dialog.view()).total, dialog._last.seq == _ends(dialog)[1]  # noqa: SLF001
        try:
            place = dialog.commit(dialog.compose(name, max(before * percent // 100, 1), model=_MODEL), margin=0)
        except InfeasibleBudget as error:
            hold_infeasible(error)
            return
        except (InvalidInput, Conflict):
            return  # not smaller; or another writer was first
        self._edited(dialog)
        made = dialog.view(at=place.seq)
        if knows_all:  # else what the other one said meanwhile is in it, too
            assert meter.view(made).total < before, "a commit made the view no smaller"
        hold_handles(made, self.writers[who].dialogs)

    @rule(who=WHO, which=WHICH)
    def undo(self, who: int, which: int) -> None:
        """A commit is taken back by an entry (law 3)."""
        dialog = self.dialog(who, which)
        try:
            dialog.undo()
        except (InvalidInput, Conflict):
            return
        self._edited(dialog)

    @rule(who=WHO, which=WHICH, name=POLICY, percent=st.sampled_from([10, 50, 100]))
    def look(self, who: int, which: int, name: str, percent: int) -> None:
        """Any policy, any budget: valid for every provider, true about what it leaves out (laws 1, 8, 9, 10)."""
        dialog = self.dialog(who, which)
        view, count = dialog.view(), counter(_MODEL)
        budget = Budget.of_input(max(Meter(count).view(view).total * percent // 100, 1))
        composed = hold(
            view,
            POLICIES[name](model_name=_MODEL),
            budget,
            count,
            media=lambda digest: dialog.store.blob(BlobId(digest)),
        )
        if composed is not None:
            hold_handles(composed.view, self.writers[who].dialogs)

    def _edited(self, dialog: Dialog) -> None:
        """Note an edit of a view: what a writer sees changes when he learns of the entry."""
        self.edits.setdefault(dialog.dialog_id, []).append(dialog.store.last(dialog.dialog_id).seq)

    # --- processes ------------------------------------------------------------------------------------------------------------------

    @rule(who=WHO, which=WHICH)
    def reload(self, who: int, which: int) -> None:
        """A writer looks at what the other one wrote (law 5)."""
        dialog = self.dialog(who, which)
        dialog.reload()
        assert dialog.store.last(dialog.dialog_id).seq == _ends(dialog)[1]

    @rule(who=WHO, which=WHICH, steps=st.integers(1, 2), what=st.sampled_from(["say", "fork", "show"]), text=TEXTS)
    def die_in(self, who: int, which: int, steps: int, what: str, text: str) -> None:
        """A process dies behind a step that nobody was told of: it is there, whole, or the process had ended before (law 4)."""
        self.where.dies_in = steps
        try:
            if what == "fork":
                self.fork(who, which, 0, 1)
            elif what == "show":
                self.show(who, which, self.number() % 250)
            else:
                self.ask(who, which, text, fork=False)
        except Died:
            self.since = self.where.at()
            self._after(self.where.crash(self.since, _last, Loss.NONE, 0))
        self.where.dies_in = 0

    @rule(point=st.integers(0, 1000), loss=st.sampled_from(list(Loss)), seed=st.integers(0, 99))
    def crash(self, point: int, loss: Loss, seed: int) -> None:
        """The machine dies within the last operation: what was acknowledged is there, and at most one step more (law 4)."""
        self._after(self.where.crash(self.since, lambda count: point % count, loss, seed))

    def _after(self, possible: range) -> None:
        """Reopen, hold what is there to what was acknowledged, and write on."""
        handles = [self.where.handle(), self.where.handle()]
        state = fingerprint(self.where.store())
        found = [count for count in possible if fingerprint(self.where.known(count)) == state]
        assert found, f"after the death there is not what was acknowledged: {possible}"
        self.where.cut(found[-1])
        self.writers = [Session.open(self.session_id, handle, verify=True) for handle in handles]
        extent = self.writers[0].opened.extent if self.writers[0].opened else None
        assert extent is not None
        assert extent.unreachable == 0, str(self.writers[0].opened)
        lengths = {dialog.dialog_id: _ends(dialog)[1] for dialog in self.writers[0].dialogs}
        self.sent = [one for one in self.sent if one.seq <= lengths.get(one.dialog, -1)]
        self.before.clear()
        self.ask(0, 0, "after the death", fork=False)

    # --- the end ----------------------------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Try every law again on all that there is, as a third process finds it."""
        try:
            self._end()
        finally:
            self.where.close()

    def _end(self) -> None:
        store = self.where.store()
        assert fingerprint(store) == fingerprint(self.where.known(len(self.where.steps))), (
            "the log is not what was written"
        )
        session = Session.open(self.session_id, store, verify=True)
        assert session.opened is not None
        assert session.opened.extent.unreachable == 0
        hold_bodies(store, session)
        hold_sent(session, self.sent)
        for dialog in session.dialogs:
            for name, model in MODELS.items():
                dialog.request(name, model, max_tokens=100)


def bodies_read(dialog: Dialog) -> int:
    """Give how many bodies a dialog's handle has read."""
    found: int = dialog.store.bodies_read  # type: ignore[attr-defined]
    return found


def _ends(dialog: Dialog) -> tuple[int, int]:
    """Give the turn head of a dialog and its newest entry, as its store has them."""
    last = dialog.store.last(dialog.dialog_id)
    return last.turn_head, last.seq


def _last(count: int) -> int:
    return count - 1
