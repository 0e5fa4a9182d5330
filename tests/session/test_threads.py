"""Threads that share one object of a dialog: every write is one step, what is known moves forward only, and nobody sees half of anything."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from palaver import Conflict, Dialog, MemoryStore, Prompt, Session, Store, UserMessage
from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log import Draft, Handle, Header, MessageEntry, decode_entry
from palaver.prompts import Runtime
from palaver.view import fold
from tests.threads import WAIT, at_once

T = TypeVar("T")


class Held(MemoryStore):
    """A store in which one writer is held up just behind his write, before he learns of it."""

    def __init__(self) -> None:
        """Hold nobody up."""
        super().__init__()
        self.holds, self.written, self.go_on = threading.Event(), threading.Event(), threading.Event()

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append."""
        return self._held(super().append(dialog_id, drafts, turn_head))

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Annotate."""
        return self._held(super().annotate(dialog_id, draft))

    def _held(self, done: T) -> T:
        if self.holds.is_set():
            self.holds.clear()
            self.written.set()
            assert self.go_on.wait(WAIT)
        return done


def crossed(dialog: Dialog, late: Callable[[], object], between: Callable[[], object]) -> None:
    """Have something written by a thread that learns of it only when this one has written something, too."""
    store = dialog.store
    assert isinstance(store, Held)
    store.holds.set()
    thread = threading.Thread(target=late)
    thread.start()
    assert store.written.wait(WAIT)
    between()
    store.go_on.set()
    thread.join(WAIT)


def held() -> Dialog:
    """Give a dialog in such a store."""
    dialog = Session.create(Held(), "s").root
    dialog.put_text("first")
    return dialog


def test_what_is_known_never_goes_back_when_two_annotations_cross() -> None:
    """Who wrote first learns of it last: the other's label stays known, and so do both pins."""
    dialog = held()
    place = dialog.messages.handle(0)
    crossed(dialog, lambda: dialog.pin(place), lambda: dialog.label(place, "start"))
    assert dialog.spans[-1].stop == 3
    assert dialog.labels == {place: "start"}
    assert dialog.pins == (place,)


def test_what_is_written_beside_a_turn_that_is_just_being_written_is_known_with_it() -> None:
    """A label that got the number behind a message nobody was told of yet: once the message is known, the label is."""
    dialog = held()
    place = dialog.messages.handle(0)
    crossed(dialog, lambda: dialog.put_text("second"), lambda: dialog.label(place, "start"))
    assert [message.text_content() for message in dialog.messages] == ["first", "second"]
    assert dialog.labels == {place: "start"}


def test_a_reload_does_not_forget_what_is_written_meanwhile() -> None:
    """Also when the store was asked before that was written."""

    class Asked(Held):
        def last(self, dialog_id: DialogId) -> Header:
            """Give the newest header, and be held up."""
            return self._held(super().last(dialog_id))

    dialog = Session.create(Asked(), "s").root
    dialog.put_text("first")
    place = dialog.messages.handle(0)
    crossed(dialog, dialog.reload, lambda: dialog.label(place, "start"))
    assert dialog.labels == {place: "start"}


def test_two_who_continue_a_turn_at_once_are_two_writers(store: Store) -> None:
    """Of two threads that append through one object at the same moment one gets a Conflict, nothing of his is written, and he may try again."""
    dialog = Session.create(store, "s").root

    def work(number: int, barrier: threading.Barrier) -> list[str]:
        said = []
        for turn in range(15):
            text = f"{number}.{turn}"
            barrier.wait()
            while True:
                try:
                    dialog.put_text(text)
                    break
                except Conflict:
                    dialog.reload()
            said.append(text)
        return said

    told = at_once(4, work)
    texts = [message.text_content() for message in dialog.messages]
    assert sorted(texts) == sorted(text for one in told for text in one)
    for own in told:
        assert [text for text in texts if text in own] == own


def test_a_message_says_which_prompt_governs_whoever_puts_another_one_meanwhile() -> None:
    """Each message bears the path of its own prompt; who was refused changes nothing; what stands last in the log governs."""
    runtime = Runtime()
    prompts = [runtime.register_prompt(Prompt(path=f"p{number}", prompt=f"Say {number}.")) for number in range(4)]
    dialog = Session.create(name="s", runtime=runtime).root

    def work(number: int, barrier: threading.Barrier) -> None:
        for _ in range(25):
            barrier.wait()
            try:
                dialog.put_prompt(prompts[number])
            except Conflict:
                dialog.reload()

    at_once(4, work)
    entries = [decode_entry(body) for _, body in dialog.store.bodies(dialog.dialog_id)]
    said = [(entry.message.text_content(), entry.prompt) for entry in entries if isinstance(entry, MessageEntry)]
    assert set(said) <= {(f"Say {number}.", f"p{number}") for number in range(4)}
    assert dialog.top_prompt is not None
    assert dialog.top_prompt.path == said[-1][1]


def deeds(dialog: Dialog) -> dict[str, Callable[[int], object]]:
    """Give all that threads do with one dialog at once; each gives the handles that were acknowledged, or what it read."""
    first = dialog.messages.handle(0)

    def read(_: int) -> object:
        messages = dialog.messages
        texts = [message.text_content() for message in messages]
        assert len(texts) == len(messages)
        assert dialog.overview()
        return None

    def seen(_: int) -> object:
        view = dialog.view()
        assert view == fold(dialog.store, dialog.dialog_id, view.at)
        return None

    def asked(turn: int) -> object:
        request = dialog.request("openai-chat", "gpt-4o", policy="palaver", budget=4_000)
        return dialog.record_call(request, {"turn": turn})

    def compacted(_: int) -> object:
        try:
            return dialog.compact(model="gpt-4o", budget=3_000).approve()
        except (Conflict, InvalidInput):  # another was first, or it is small enough
            dialog.reload()
        return None

    return {
        "append": lambda turn: dialog.append(UserMessage(content=f"Line {turn}. " * 40)),
        "text": lambda turn: dialog.put_text(f"Text {turn}. " * 40),
        "label": lambda turn: dialog.label(first, f"label {turn}"),
        "pin": lambda turn: dialog.pin(first, pinned=turn % 2 == 0),
        "read": read,
        "view": seen,
        "ask": asked,
        "compact": compacted,
        "figures": lambda _: dialog.figures(model="gpt-4o"),
        "fork": lambda _: dialog.fork().view(),
        "reload": lambda _: dialog.reload(),
    }


def test_whatever_threads_do_with_one_object_the_log_is_whole(store: Store) -> None:
    """Everything acknowledged is there once and known; every view is a fresh fold's; every recorded call is given back to the byte."""
    dialog = Session.create(store, "s").root
    for turn in range(20):
        dialog.append(UserMessage(content=f"Before {turn}. " * 40))
    all_of_it = list(deeds(dialog).values())

    def work(number: int, barrier: threading.Barrier) -> list[Handle]:
        made = []
        for turn in range(22):
            barrier.wait()
            try:
                handle = all_of_it[(turn + 3 * number) % len(all_of_it)](turn)
            except Conflict:
                dialog.reload()
                continue
            if isinstance(handle, Handle):
                made.append(handle)
        return made

    made = [handle for one in at_once(5, work) for handle in one]
    assert len(set(made)) == len(made)
    assert all(any(handle in span for span in dialog.spans) for handle in made)
    assert dialog.view() == fold(store, dialog.dialog_id) == Session.open("s", store).root.view()
    assert [seq for seq, _ in store.bodies(dialog.dialog_id)] == list(range(dialog.spans[-1].stop))
    assert len(dialog.invocations) == 10
    for call in dialog.invocations:
        assert call.request().digest == call.sent["digest"]


def test_each_dialog_of_a_session_has_one_object_for_all_threads(store: Store) -> None:
    """Whoever asks first: what one thread writes through it, all know."""
    root = Session.create(store, "s").root
    root.put_text("first")

    def work(_: int, barrier: threading.Barrier) -> list[Dialog]:
        found = []
        for session in sessions:
            barrier.wait()
            found.append(session.root)
        return found

    sessions = [Session.open("s", store) for _ in range(20)]
    for first, *others in zip(*at_once(4, work), strict=True):
        assert all(other is first for other in others)
