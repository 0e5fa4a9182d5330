"""An erasure of one entry takes no constraint and no goal that others say: what a compaction knew is told anew from the entries that stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import (
    AssistantMessage,
    Dialog,
    Receipt,
    Session,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.cli.outcome import Exit
from palaver.context import POLICIES
from palaver.context.record.facts import Facts
from palaver.errors import Conflict, Erased, InfeasibleBudget, InvalidInput
from palaver.log import Compaction, Derived, Handle, decode_entry
from palaver.session.erasure import erase, preview_erasure, verify_receipt
from palaver.session.managed import SessionManager
from palaver.store import MemoryStore, SqliteStore, Store
from palaver.view import Drop, Plan, View, fold
from tests.privacy.test_commands import run
from tests.session.compaction.test_standing_for import GOAL, MODEL, RULE, WAYS, Dropping, Last, texts, told
from tests.stores import KINDS, empty_store

SECRET = "zebra9x"


@pytest.fixture(params=KINDS[:2])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store in memory, and one in a file."""
    yield from empty_store(request, tmp_path)


def answer(dialog: Dialog, name: str) -> None:
    """Have the model say something."""
    dialog.append(AssistantMessage(content=f"{name} " + "ok " * 60, response_id=name))


def chat(store: Store, goal: str = f"{GOAL} {RULE}") -> Dialog:
    """Make a dialog with a goal, a constraint, and a secret in an entry of its own."""
    dialog = Session.create(store, "heron", owner="coder").root
    for number, said in enumerate((goal, f"My password is {SECRET}, note it down.", "Do a.", "Do b.")):
        dialog.put_text(said)
        answer(dialog, f"x{number}")
    dialog.put_text("And now?")
    return dialog


def dropped(dialog: Dialog) -> None:
    """Compact by a plan of one's own that puts nothing in the place of what it drops."""
    view = dialog.view()
    drops = tuple(Drop(index=n) for n in range(len(view.exchanges)) if n not in view.protected())
    dialog.commit(Plan(policy="mine", drops=drops), model=MODEL, margin=0)


def gone(dialog: Dialog, seq: int) -> Receipt:
    """Erase an entry."""
    return erase(dialog.store, entries=[Handle(dialog.dialog_id, seq)], thorough=False)


def asked(dialog: Dialog, policy: str = "palaver") -> View:
    """Give what a request shows."""
    return dialog.compose(policy, 100_000, model=MODEL).view


def everything(store: Store, *dialogs: Dialog) -> str:
    """Give all that can be read of dialogs: bodies, views, what is known, requests."""
    found = []
    for one in dialogs:
        found += [body.decode() for _, body in store.bodies(one.dialog_id)]
        view = one.view()
        found += [repr(view), *(block.facts for x in view.known() for block in x.blocks()), *one.constraints.texts]
        with suppress(InfeasibleBudget):
            found.append(repr(asked(one)))
        found.append(json.dumps(one.request("openai-chat", MODEL).body))
    return "\n".join(found)


# --- what stands is told ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [*sorted(set(WAYS) - {"full"}), "mine"])
def test_what_others_said_is_known_behind_an_erasure(store: Store, policy: str) -> None:
    """Goal and constraint are listed, said in the next request and known to the next compaction, in the dialog, a fork and the next process."""
    dialog = chat(store)
    if policy == "mine":
        dropped(dialog)
    else:
        dialog.compact(policy=WAYS[policy], model=MODEL).approve()
    child = dialog.fork()
    gone(dialog, 2)
    again = Session.open("heron", store)
    for one in (dialog, child, again.root, again.dialog(child.dialog_id), dialog.fork()):
        said = "\n".join(texts(asked(one)))
        assert one.constraints.texts == (RULE,)
        assert GOAL in said
        assert told(asked(one), [RULE])
        assert fold(store, one.dialog_id) == one.view()
        assert SECRET not in everything(store, one)
    for number in range(3):
        answer(dialog, f"y{number}")
        dialog.put_text(f"Go on {number}.")
    dialog.compact(policy="fold", model=MODEL).approve()
    assert dialog.constraints.texts == (RULE,)
    assert told(dialog.view(), [RULE])
    assert any(GOAL in block.facts for x in dialog.view().known() for block in x.blocks()) or any(
        GOAL in text for text in texts(dialog.view())
    )
    assert SECRET not in everything(store, dialog)


@pytest.mark.parametrize("policy", ["palaver", "fold", "default"])
def test_an_erased_constraint_is_gone_everywhere(store: Store, policy: str) -> None:
    """A constraint whose own entry is erased is listed, said and known nowhere; those of other entries are."""
    dialog = chat(store, GOAL)
    other = "You must never call zoraida7k at night."
    dialog.put_text(other)
    answer(dialog, "z")
    dialog.put_text(RULE)
    answer(dialog, "zz")
    dialog.put_text("And then?")
    dialog.compact(policy=policy, model=MODEL).approve()
    assert set(dialog.constraints.texts) == {other, RULE}
    gone(dialog, 9)
    assert dialog.constraints.texts == (RULE,)
    assert told(asked(dialog), [RULE])
    assert "zoraida7k" not in everything(store, dialog, dialog.fork())


@pytest.mark.parametrize("policy", ["palaver", "fold", "default"])
def test_an_erased_goal_is_nobodys(store: Store, policy: str) -> None:
    """With the first words erased there is no goal: what the user said next is an ask, in the retold text and in the record after it."""
    dialog = chat(store)
    dialog.compact(policy=policy, model=MODEL).approve()
    gone(dialog, 0)
    for _ in range(2):
        assert dialog.constraints.texts == ()
        known = everything(store, dialog)
        assert "heron site" not in known
        assert '"goal":' not in known
        assert "Goal, in the user's words" not in known
        assert "Do a." in known
        for number in range(3):
            answer(dialog, f"y{number}")
            dialog.put_text(f"Go on {number}.")
        dialog.compact(policy="fold", model=MODEL).approve()


@pytest.mark.parametrize("order", [(2, 0, 4), (0, 2, 4), (4, 2, 0), (2, 4, 6)])
def test_one_erasure_after_the_other(store: Store, order: tuple[int, ...]) -> None:
    """Each erasure tells anew what stands then; what an earlier one took does not come back, and every receipt holds."""
    dialog = chat(store)
    words = {0: "heron", 2: SECRET, 4: "Do a.", 6: "Do b."}
    dialog.compact(policy="palaver", model=MODEL).approve()
    receipts = []
    for number, seq in enumerate(order):
        receipts.append(gone(dialog, seq))
        known = everything(store, dialog)
        assert not [words[one] for one in order[: number + 1] if words[one] in known]
        assert dialog.constraints.texts == ((RULE,) if 0 not in order[: number + 1] else ())
        assert all(verify_receipt(store, one.id).holds for one in receipts)


def test_a_compaction_that_is_erased_itself_says_what_the_user_said(store: Store) -> None:
    """Who erases the record alone is rid of its words; what the user said stands in his own entries and is told from there, and the receipts hold."""
    dialog = chat(store)
    place = dialog.compact(policy="palaver", model=MODEL).approve()
    first = gone(dialog, place.seq)
    assert first.retold == first.summaries == (f"{place.dialog}:{place.seq}",)
    assert dialog.constraints.texts == (RULE,)
    assert told(asked(dialog), [RULE])
    with pytest.raises(Erased):
        Session.open("heron", store).recall(place)
    second = gone(dialog, 2)
    with pytest.raises(Erased):
        Session.open("heron", store).recall(place)
    assert verify_receipt(store, first.id).holds
    assert verify_receipt(store, second.id).holds
    assert SECRET not in everything(store, dialog)
    assert dialog.constraints.texts == (RULE,)


def test_what_the_rest_says_of_it_is_not_told_again() -> None:
    """Of the work and the asks nothing is told that has a line or a number of what was erased; failures and files beside it are, and what must not be."""
    dialog = Session.create(MemoryStore(), "heron").root
    dialog.put_text(f"{GOAL} {RULE}")
    for number, typed in enumerate((f"login {SECRET}", "make heron", "cat src/nest.py")):
        call = ToolCallContent(id=f"c{number}", name="bash", args={"command": typed})
        dialog.append(AssistantMessage(contents=(call,), response_id=f"r{number}"))
        output = f"{typed}: error: it broke" if number < 2 else "fine " * 90
        failed = number < 2
        dialog.append(
            ToolMessage.from_result(ToolResultContent(id=f"c{number}", name="bash", content=output, is_error=failed))
        )
    dialog.put_text(f"My password is {SECRET}, or tangerine.")
    answer(dialog, f"Noted, {SECRET}.")
    dialog.put_text(f"Was it {SECRET}?")
    answer(dialog, "It is Tangerine.")
    dialog.put_text("And now?")
    dropped(dialog)
    gone(dialog, 7)
    known = "\n".join(block.facts for x in dialog.view().known() for block in x.blocks())
    assert SECRET not in "\n".join([known, *texts(asked(dialog))])
    assert "tangerine" not in known.casefold()
    assert "make heron: error: it broke" in known
    assert "src/nest.py" in known
    assert RULE in known


def test_what_the_user_took_off_the_list_is_not_told_anew() -> None:
    """A constraint that was taken off by hand after the compaction is in no text that is told anew."""
    dialog = chat(MemoryStore())
    dialog.compact(policy="palaver", model=MODEL).approve()
    dialog.constraints.remove(RULE)
    gone(dialog, 2)
    assert dialog.constraints.texts == ()
    assert not any(f'- "{RULE}"' in text for text in texts(asked(dialog)))


def test_a_constraint_by_hand_that_is_erased_takes_no_other_along() -> None:
    """Erasing what was put on the list by hand takes every text that may quote it; what the user said in the conversation is told anew."""
    dialog = chat(MemoryStore())
    place = dialog.constraints.add(f"Never tell {SECRET}1 to anybody.")
    dialog.compact(policy="palaver", model=MODEL).approve()
    erase(dialog.store, entries=[place], thorough=False)
    assert dialog.constraints.texts == (RULE,)
    assert told(asked(dialog), [RULE])
    assert f"{SECRET}1" not in everything(dialog.store, dialog)


def test_an_erasure_is_still_a_conflict_for_what_is_in_flight() -> None:
    """A preview made before is not committed, though what was known stands; the next one is."""
    dialog = chat(MemoryStore())
    dialog.compact(policy="palaver", model=MODEL).approve()
    for number in range(3):
        answer(dialog, f"y{number}")
        dialog.put_text(f"Go on {number}.")
    preview = dialog.compact(policy="fold", model=MODEL)
    gone(dialog, 2)
    with pytest.raises(Conflict):
        preview.approve()
    dialog.reload().compact(policy="fold", model=MODEL).approve()
    assert dialog.constraints.texts == (RULE,)


def test_a_session_managers_compaction_forgets_nothing_that_stands(store: Store) -> None:
    """What a manager's summary was made of goes with an erasure; goal and constraint of other entries are known, and said in the next request."""
    manager = SessionManager.create("/srv/site", store)
    for said in (f"{GOAL} {RULE}", f"My password is {SECRET}, note it down.", "Do a."):
        manager.append_message(UserMessage(content=said))
        manager.append_message(AssistantMessage(content="ok " * 60, model=MODEL))
    kept = manager.append_message(UserMessage(content="And now?"))
    manager.append_compaction(f"He has the password {SECRET}.", kept, 1_000)
    dialog = manager.dialog
    gone(dialog, 2)
    assert dialog.constraints.texts == (RULE,)
    assert told(asked(dialog), [RULE])
    assert GOAL in "\n".join(texts(asked(dialog)))
    assert SECRET not in everything(store, dialog)


# --- the receipt --------------------------------------------------------------------------------------------------------------------


def test_the_receipt_tells_what_was_told_anew(store: Store) -> None:
    """A receipt names the records that went and those told anew; it reads back, and one of before, which does not say it, is read, too."""
    dialog = chat(store)
    place = dialog.compact(policy="palaver", model=MODEL).approve()
    receipt = gone(dialog, 2)
    assert receipt.summaries == receipt.retold == (f"{place.dialog}:{place.seq}",)
    assert Receipt.from_json(receipt.to_json()) == receipt
    old = {name: value for name, value in receipt.to_dict().items() if name not in {"summaries", "retold"}}
    assert Receipt.from_json(json.dumps(old)).retold == ()
    other = gone(dialog, 8)
    assert (other.summaries, other.retold) == ((), ())


def test_the_command_says_what_was_told_anew(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    """`palaver erase` names the records that went with an entry and those told anew, in words and in JSON; the check of the receipt holds."""
    path = str(tmp_path / "s.db")
    with SqliteStore(Path(path)) as made:
        dialog = chat(made)
        place = dialog.compact(policy="palaver", model=MODEL).approve()
        places = [f"{dialog.dialog_id}:{seq}" for seq in (2, 4)]
    name = f"{place.dialog}:{place.seq}"
    code, _, out = run(capsysbinary, "erase", path, "--entry", places[0], "--yes")
    assert code == Exit.OK
    assert f"  summaries and records that went with it: {name}\n" in out
    assert f"  of these, told anew by code from the entries that stand: {name}\n" in out
    code, rows, _ = run(capsysbinary, "erase", path, "--entry", places[1], "--yes", "--json")
    assert (code, rows[0]["summaries"], rows[0]["retold"]) == (Exit.OK, [name], [name])
    assert run(capsysbinary, "verify-receipt", path)[0] == Exit.OK


# --- random lives -------------------------------------------------------------------------------------------------------------------


class Life:
    """A conversation in which every entry has a word of its own, with compactions, forks and erasures."""

    def __init__(self, store: Store, seed: int) -> None:
        """Begin with a goal."""
        self.random, self.store, self.count = Random(seed), store, 0  # noqa: S311 - nothing is protected by it
        self.dialog = Session.create(store, "life").root
        self.dialogs = [self.dialog]
        self.words: dict[Handle, str] = {}
        self.rules: dict[Handle, str] = {}
        self.gone: set[str] = set()
        self.says()

    def says(self) -> None:
        """Have the user or the model say something."""
        self.count += 1
        word, dialog = f"zq{self.count:04}x", self.dialog
        place = Handle(dialog.dialog_id, self.store.last(dialog.dialog_id).seq + 1)
        self.words[place] = word
        if self.random.random() < 0.5:
            rule = f"You must never touch {word}.py."
            dialog.put_text(f"Ask {word}. {rule}")
            self.rules[place] = rule
        else:
            dialog.append(AssistantMessage(content=f"{word} " + "ok " * 60, response_id=f"r{self.count}"))

    def compacts(self) -> None:
        """Make the view smaller, in some way."""
        way = self.random.choice([*sorted(POLICIES), Last(), Dropping(), None])
        with suppress(InfeasibleBudget, InvalidInput):
            if way is None:
                dropped(self.dialog)
                return
            budget = self.random.choice([None, None, 300, 900])
            preview = self.dialog.compact(policy=way, model=MODEL, budget=budget)
            if preview.worthwhile:
                preview.approve()

    def forks(self) -> None:
        """Go on with another branch."""
        if self.random.random() < 0.5:
            self.dialogs.append(self.dialog.fork())
        self.dialog = self.random.choice(self.dialogs)
        self.dialog.reload()

    def undoes(self) -> None:
        """Take the newest compaction back, where there is one."""
        with suppress(InvalidInput):
            self.dialog.undo()

    def erases(self) -> None:
        """Erase what somebody said, or, now and then, a compaction."""
        places = sorted(place for place, word in self.words.items() if word not in self.gone)
        if self.random.random() < 0.1:
            own = self.dialog.dialog_id
            places = [Handle(own, one.seq) for one in self.store.headers(own) if one.kind == "compaction"] or places
        if places:
            place = self.random.choice(places)
            receipt = erase(self.store, entries=[place], thorough=False)
            if place in self.words:
                self.gone.add(self.words[place])
            assert verify_receipt(self.store, receipt.id).holds
            assert not [word for word in self.gone if word in receipt.to_json()]

    def holds(self) -> None:
        """No erased word is anywhere; what stands is listed and said, in every branch that has it."""
        for one in self.dialogs:
            known = everything(self.store, one)
            assert not [word for word in self.gone if word in known]
            shared = one.view().shared
            stand = [
                rule
                for place, rule in self.rules.items()
                if self.words[place] not in self.gone
                and (place.dialog == one.dialog_id or any(place in span for span in shared))
            ]
            assert set(stand) == set(one.constraints.texts)
            with suppress(InfeasibleBudget):
                assert told(asked(one), stand)
            assert fold(self.store, one.dialog_id) == one.view()


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(seed=st.integers(0, 2**32), acts=st.lists(st.sampled_from("ssssccfeeu"), min_size=6, max_size=24))
def test_no_erased_word_comes_back_and_none_that_stands_is_forgotten(seed: int, acts: list[str]) -> None:
    """Random lives: whatever is compacted, forked, undone and erased, all that stands is known, and nothing that is erased is."""
    life = Life(MemoryStore(), seed)
    does = {"s": life.says, "c": life.compacts, "f": life.forks, "e": life.erases, "u": life.undoes}
    for act in acts:
        does[act]()
    life.holds()
    for piece in (one for dialog in life.dialogs for one in pieces(dialog)):
        assert not [word for word in life.gone if word in f"{piece.text}{piece.facts}"]


def pieces(dialog: Dialog) -> Iterator[Derived]:
    """Give the texts that compactions of a dialog hold."""
    for _, body in dialog.store.bodies(dialog.dialog_id):
        entry = decode_entry(body)
        if isinstance(entry, Compaction):
            yield from (one for one in entry.pieces if isinstance(one, Derived))


def test_the_preview_names_what_stands_and_says_the_same_secret() -> None:
    """The goal and a rule are told on whatever they repeat, so whoever erases is told before which entries say the word, too, however short their lines."""
    dialog = chat(MemoryStore(), f"Log in with {SECRET}. {RULE}")
    dialog.compact(policy="palaver", model=MODEL).approve()
    preview = preview_erasure(dialog.store, entries=[Handle(dialog.dialog_id, 2)])
    assert preview.quoted == (Handle(dialog.dialog_id, 0),)


def test_facts_that_nest_without_end_hold_up_no_erasure() -> None:
    """Hostile facts in a compaction of somebody's are no facts; what is to be erased is erased."""
    with pytest.raises(InvalidInput, match="cannot be read"):
        Facts.from_json('{"more":' + "[" * 100_000 + "]" * 100_000 + "}")
