"""The repo map in a conversation: drawn for what it is at, recorded where it is shown, and never read from the disk by a view."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver import Dialog, MissingExtra, RepoMap, repo_map_tools
from palaver.context import Calls, ContextManager, Ledger, Meter, Policy, compose, fit, policy
from palaver.context.decided import sentences
from palaver.context.presets import Aider
from palaver.context.repo_map import Interest, interest_of
from palaver.context.repo_map.interest import Places
from palaver.context.repo_map.mapped import FIRST, FOLDED, LABEL
from palaver.context.units import Bytes
from palaver.context.work import acts_of
from palaver.errors import InvalidInput
from palaver.messages import Trust
from palaver.repomap import Limits
from palaver.testing.holding import hold, stable
from palaver.testing.logs import Log, model, system, user
from palaver.testing.policy_laws import PolicyLaws
from palaver.testing.policy_strategies import Step, conversations, played
from palaver.tokens import Budget, Rates, counter
from palaver.tools import CallContext
from palaver.view import Plan, View, fold
from tests.context.helper import COUNTER, commit, fitted, seen, size
from tests.context.work import PAGE, did, read, run, worked, write
from tests.repomap.made_up import SHOP, written

HERE = Path(__file__).parent


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Give the folder of a small repository."""
    return written(tmp_path / "shop", SHOP)


def interest(view: View, *, shown: bool = True) -> Interest:
    """Tell what a view is at."""
    return interest_of(view.exchanges, acts_of(view.exchanges).all, shown=shown)


class Seen:
    """A dialog that is its view."""

    def __init__(self, view: View) -> None:
        self._view = view

    def view(self) -> View:
        """Give it."""
        return self._view

    def derive(self, view: View) -> Seen:
        """Give another one."""
        return Seen(view)


# --- what a conversation is at ------------------------------------------------------------------------------------------------


def test_files_read_as_a_whole_are_known_and_others_are_near() -> None:
    """A file that was read or written as a whole is before the model's eyes; one that was edited since, read in part, or failed, is not."""
    found = interest(
        worked(
            read("a", "whole.py"),
            write("b", "written.py"),
            read("c", "edited.py"),
            did("d", "Edit", {"file_path": "edited.py", "old_string": "a", "new_string": "b"}),
            did("e", "Read", {"file_path": "part.py", "offset": 100}, PAGE),
            did("f", "Read", {"file_path": "gone.py"}, "no such file", failed=True),
            run("g", "cat shell.py"),
            ask="Look at src/asked.py and `rename_thing`.",
        )
    )
    assert found.whole == {"whole.py", "written.py"}
    assert found.touched == {"edited.py", "part.py", "shell.py", "src/asked.py"}
    assert {"rename_thing", "asked"} <= found.words


def test_the_first_and_the_newest_words_of_the_user_count() -> None:
    """His goal, and what he wants now; what he said between them, and what a model or a tool says, does not."""
    log = Log()
    log.put(system("Be system_word."), user("The first_goal."), model("The model_word."), user("The middle_word."))
    log.put(model("Done."), *run("a", "grep tool_word x.py", "output_word"), model("Done."), user("The newest_wish."))
    words = interest(seen(log)).words
    assert {"first_goal", "newest_wish"} <= words
    assert not {"middle_word", "model_word", "system_word", "tool_word", "output_word"} & words


def test_what_was_folded_is_still_known() -> None:
    """After a compaction the record says which files were touched and what the goal was."""
    log = Log()
    log.put(user("Reach the distant_goal."))
    for turn in range(12):
        log.put(*read(f"r{turn}", f"src/f{turn}.py"), model(f"did {turn}"), user(f"Go on with {turn}."))
    commit(log, fitted(seen(log), policy("aider", "gpt-4o") or Aider(), 6_000))
    found = interest(seen(log))
    assert {"src/f0.py", "src/f5.py"} <= found.touched | found.whole
    assert "distant_goal" in found.words


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("shop/till.py", "shop/till.py"),
        ("./shop/till.py", "shop/till.py"),
        ("/here/shop/till.py", "shop/till.py"),
        ("/elsewhere/of/shop/till.py", "shop/till.py"),
        ("C:\\work\\shop\\till.py", "shop/till.py"),
        ("till.py", "shop/till.py"),
        ("__init__.py", None),
        ("README.md", "README.md"),
        ("none.py", None),
        ("", None),
        ("/", None),
        ("..", None),
        ("../../README.md", "README.md"),
    ],
)
def test_files_are_found_by_what_others_call_them(named: str, meant: str | None) -> None:
    """Paths of other machines and folders lead to the file with the longest common end; a bare name only where one file has it."""
    places = Places("/here", ["README.md", "shop/till.py", "shop/__init__.py", "other/__init__.py"])
    assert places.of([named]) == (set() if meant is None else {meant})


# --- a map ----------------------------------------------------------------------------------------------------------------------


def test_a_map_leaves_out_what_the_model_sees(shop: Path) -> None:
    """The files that a conversation holds as a whole are not in its map; what they use comes before the rest."""
    repo_map = RepoMap(shop)
    bare = repo_map.draw(max_tokens=500).text
    assert "shop/till.py:" in bare
    view = worked(read("a", str(shop / "shop/till.py"), "…"), read("b", "shop/money.py", "…"))
    text = repo_map.draw(Seen(view), max_tokens=500).text
    assert "till.py" not in text
    assert "money.py" not in text
    assert "class ShoppingBasket" in repo_map.draw(Seen(view), max_tokens=70).text


def test_a_map_keeps_to_its_budget_by_the_model_s_counter(shop: Path) -> None:
    """The budget is kept by the counter of the model that was named, of the conversation's own, or of one that was given."""
    repo_map = RepoMap(shop)
    for name in ("gpt-4o", "claude-sonnet-4-5", "nobody-knows-this"):
        for tokens in (0, 50, 100, 150):
            drawing = repo_map.draw(max_tokens=tokens, model=name)
            assert drawing.tokens <= tokens
            assert not drawing.text or drawing.tokens == counter(name).text(drawing.text)
    assert repo_map.draw(max_tokens=100, counter=COUNTER).tokens <= 100


def test_without_a_number_a_map_is_larger_where_nothing_else_is_seen() -> None:
    """1,024 tokens beside files that the model sees, and eight times as many where it sees none (Aider)."""
    repo_map = RepoMap(HERE.parents[1] / "src/palaver/context")
    alone = repo_map.draw()
    view = worked(read("a", "src/palaver/context/ground.py"))
    beside = repo_map.draw(Seen(view))
    assert 1_024 < alone.tokens <= 8_192
    assert 900 < beside.tokens <= 1_024
    assert "ground.py" not in beside.text


def test_a_map_is_of_now(shop: Path) -> None:
    """Each drawing looks anew; the digest says that something changed. A folder that went away is an error in words."""
    repo_map = RepoMap(shop)
    first = repo_map.draw(max_tokens=500)
    assert repo_map.draw(max_tokens=500) == first
    (shop / "shop/shelf.py").write_text("def newly_written(): pass\n", "utf-8")
    second = repo_map.draw(max_tokens=500)
    assert "newly_written" in second.text
    assert second.digest != first.digest
    shop.rename(shop.parent / "away")
    with pytest.raises(InvalidInput):
        repo_map.draw(max_tokens=500)


def test_threads_draw_the_same_map(shop: Path) -> None:
    """Several threads that draw at once get what one gets."""
    repo_map = RepoMap(shop)
    wanted = repo_map.draw(max_tokens=400).text
    fresh = RepoMap(shop)
    got: list[str] = []
    threads = [threading.Thread(target=lambda: got.append(fresh.draw(max_tokens=400).text)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [wanted] * 6


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    """At once, in words."""
    with pytest.raises(InvalidInput, match="no folder"):
        RepoMap(tmp_path / "none")
    with pytest.raises(InvalidInput, match="no folder"):
        policy({"type": "aider", "repo_map": str(tmp_path / "none")}, "gpt-4o")


@pytest.mark.parametrize(
    "words", [{"map_tokens": -1}, {"map_tokens": "many"}, {"map_mul_no_files": float("nan")}, {"repo_map": 5}]
)
def test_figures_that_are_none_are_refused(words: dict[str, object], shop: Path) -> None:
    """A configuration may say anything; what makes no sense is told when the preset is made."""
    with pytest.raises(InvalidInput, match=next(iter(words))):
        policy({"type": "aider", "repo_map": str(shop), **words}, "gpt-4o")
    assert policy({"type": "aider", "repo_map": str(shop), "map_tokens": 0, "map_mul_no_files": 0.5}, "gpt-4o")


@pytest.mark.parametrize("missing", ["tree_sitter_rust", "pathspec"])
def test_without_the_extra_it_is_named(missing: str, shop: Path) -> None:
    """Where a package is missing, whoever asks for a map is told the extra that brings it, at once; the preset without a map needs none."""
    script = (
        "import sys\nsys.modules[sys.argv[1]] = None\nfrom palaver import MissingExtra, RepoMap\nfrom palaver.context import policy\n"
        "policy('aider', 'gpt-4o')\n"
        "for make in (lambda: RepoMap(sys.argv[2]), lambda: policy({'type': 'aider', 'repo_map': sys.argv[2]}, 'gpt-4o')):\n"
        "    try:\n        make()\n    except MissingExtra as error:\n        print(error.extra, error.package, error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", script, missing, str(shop)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(said) == 2
    for line in said:
        assert line.startswith(f"repomap {missing.replace('_', '-')} ")
        assert "pip install 'palaver[repomap]'" in line
    assert MissingExtra("A", "repomap").extra == "repomap"


# --- in the preset ------------------------------------------------------------------------------------------------------------


def long(turns: int) -> Log:
    """Write a conversation down that reads and runs for so many turns."""
    log = Log()
    log.put(system("Be brief."), user("Mend shop/till.py."))
    for turn in range(turns):
        log.put(
            *read(f"r{turn}", "shop/till.py"), *run(f"b{turn}", f"pytest -q tests/test_{turn}.py", PAGE + str(turn))
        )
        log.put(model(f"did {turn}"), user(f"Go on with {turn}."))
    return log


def maps(view: View) -> Sequence[str]:
    """Give the maps in a view."""
    return [
        getattr(block.content, "content", "")
        for exchange in view.exchanges
        for block in exchange.blocks()
        if block.derived == LABEL
    ]


def test_the_preset_aider_begins_with_a_map(shop: Path) -> None:
    """Before anything is folded a map stands before the user's first words, drawn for them; longer than one beside a record, as nothing is read yet."""
    by = Aider("gpt-4o", repo_map=shop, map_tokens=40)
    log = Log()
    log.put(system("Be brief."), user("Mend `lonely`."))
    first = fitted(seen(log), by, 12_000)
    assert [exchange.derived for exchange in first.view.exchanges] == [True, False]
    (text,) = maps(first.view)
    assert "def lonely" in text
    assert 40 < COUNTER.text(text) <= 40 * 8
    assert maps(fitted(seen(log), Aider("gpt-4o", repo_map=shop, map_tokens=40, map_mul_no_files=1), 12_000).view) == []
    for turn in range(3):
        log.put(*read(f"r{turn}", "shop/till.py", "…"), model("Done."), user(f"Go on {turn}."))
        now = fitted(seen(log), by, 12_000)
        assert now.view.exchanges[: len(first.view.exchanges)] == first.view.exchanges


def test_a_map_is_recorded_with_its_figures(shop: Path) -> None:
    """The plan says in figures what was drawn and why; so does the note of one for which there was no room."""
    log = Log()
    log.put(user("Mend `lonely`."))
    composed = fitted(seen(log), Aider("gpt-4o", repo_map=shop), 12_000)
    (text,) = maps(composed.view)
    assert composed.plan.details is not None
    figures = composed.plan.details[LABEL]
    assert figures == {
        "why": FIRST,
        "tokens": COUNTER.text(text),
        "files": 6,
        "definitions": 9,
        "of_files": 6,
        "of_definitions": 9,
        "digest": RepoMap(shop).look().digest,
    }
    (said,) = sentences(composed.plan.details)
    assert said == f"repo map: drawn (first words), {figures['tokens']} tokens, 9 of 9 definitions, files: 6 of 6"
    folded = fitted(seen(long(12)), Aider("gpt-4o", repo_map=shop), 12_000).plan.details
    assert folded is not None
    assert folded[LABEL]["why"] == FOLDED


def test_a_map_is_never_why_something_does_not_fit(shop: Path) -> None:
    """With what must be sent alone in the budget, in tokens or in bytes, there is no map; nothing is left out to make room for one."""
    log = Log()
    log.put(user("Mend `lonely`. " * 30))
    view, by = seen(log), Aider("gpt-4o", repo_map=shop)
    whole = size(view)
    by_bytes = Bytes().view(view).total
    for budget in (Budget.of_input(whole), replace(Budget.of_input(12_000), max_bytes=by_bytes)):
        composed = compose(view, by, budget, COUNTER)
        assert composed.view is view
        assert composed.plan.details is None
    assert any(
        "want of room" in note
        for note in compose(view, by, replace(Budget.of_input(12_000), max_bytes=by_bytes), COUNTER).plan.notes
    )
    assert maps(compose(view, by, Budget.of_input(12_000), COUNTER).view)


def test_what_the_last_call_was_sent_goes_before_the_disk(shop: Path) -> None:
    """Another process, whose disk says something else by now, goes on with the map that was sent, until more is folded than that call was sent without."""
    log = Log()
    log.put(user("Mend `Money`."))
    sent = fitted(seen(log), Aider("gpt-4o", repo_map=RepoMap(shop), map_tokens=300), 12_000).view
    (shop / "shop/money.py").write_text("class Bullion:\n    pass\n", "utf-8")
    other = Aider("gpt-4o", repo_map=RepoMap(shop), map_tokens=300)
    books = Ledger(meter=Meter(COUNTER), calls=Calls(sent=sent))
    log.put(model("Yes."), user("Go on."))
    went_on = compose(seen(log), other, Budget.of_input(12_000), COUNTER, ledger=books)
    assert maps(went_on.view) == maps(sent)
    assert went_on.plan.details is None
    assert maps(fitted(seen(log), other, 12_000).view) != maps(sent)
    for turn in range(12):
        log.put(*run(f"b{turn}", f"pytest -q tests/test_{turn}.py", PAGE + str(turn)), model("did"), user("Go on."))
    (drawn,) = maps(compose(seen(log), other, Budget.of_input(12_000), COUNTER, ledger=books).view)
    assert "Bullion" in drawn


def test_what_was_said_after_a_map_is_not_outdated_by_it(shop: Path) -> None:
    """What a model says behind a map it was sent stands as it said it, in every later request; what it had said before the map came is outdated."""
    by = Aider("gpt-4o", repo_map=shop)
    log, sent = Log(), None
    log.put(user("Mend it."), model("Before."), user("Now with a map."))
    for turn in range(3):
        books = Ledger(meter=Meter(COUNTER), calls=Calls(sent=sent))
        sent = compose(seen(log), by, Budget.of_input(12_000), COUNTER, ledger=books).view
        assert [each.stale for each in sent.exchanges] == [False, True, True, True, *[False] * 2 * turn]
        log.put(model(f"Said {turn}."), user("And now?"))


def test_a_map_is_back_when_a_fold_is_undone(shop: Path) -> None:
    """After a commit that was undone the view begins with a map again."""
    dialog = Dialog(owner="agent")
    for turn in range(12):
        dialog.put_text(f"Ask {turn}: " + "a word of it " * 150)
    composed = dialog.compose(Aider("gpt-4o", repo_map=shop, map_tokens=300), 4_000)
    assert composed.plan.drops
    dialog.commit(composed)
    dialog.undo()
    again = dialog.compose(Aider("gpt-4o", repo_map=shop, map_tokens=300, history=20_000), 40_000)
    assert not again.plan.drops
    assert len(maps(again.view)) == 1


def test_a_folder_s_name_is_one_map(shop: Path) -> None:
    """Who names only the folder draws what others drew of it: a list that is fitted again and again keeps its map although files change."""
    messages = [{"role": "user", "content": "Mend `ShoppingBasket`."}]
    wanted: dict[str, object] = {"type": "aider", "repo_map": str(shop)}
    first = fit(messages, model="gpt-4o", policy=wanted, budget=8_000)
    assert "class ShoppingBasket" in str(first.messages[0]["content"])
    (shop / "shop/basket.py").write_text("class Bag: pass\n", "utf-8")
    messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Again."}]
    again = fit(messages, model="gpt-4o", policy=wanted, budget=8_000)
    assert again.messages[: len(first.messages)] == first.messages
    assert RepoMap.shared(shop) is RepoMap.shared(str(shop))


def test_a_repository_that_went_away_is_drawn_as_it_was(shop: Path) -> None:
    """A plan goes on without a disk: where the folder is gone, or empty now, a new question is answered from what was last seen."""
    repo_map = RepoMap(shop)
    repo_map.look()
    shop.rename(shop.parent / "away")
    first = repo_map.drawn(Interest(), 400, COUNTER.text, COUNTER).text
    assert "class Money" in first
    shop.mkdir()
    assert repo_map.drawn(Interest(words=frozenset({"x"})), 400, COUNTER.text, COUNTER).text == first
    assert "def new" not in first
    written(shop, {"new.py": "def new(): pass\n"})
    assert "def new" in repo_map.drawn(Interest(words=frozenset({"y"})), 400, COUNTER.text, COUNTER).text


def test_the_preset_aider_puts_a_map_beside_its_record(shop: Path) -> None:
    """Where what is done was folded, a map stands behind the record: for the files that were touched there, with the trust of what is outside."""
    view = fitted(seen(long(12)), Aider("gpt-4o", repo_map=shop, map_tokens=300), 12_000).view
    derived = [block for exchange in view.exchanges for block in exchange.blocks() if block.derived]
    assert [block.derived for block in derived] == ["record", LABEL]
    assert derived[1].trust is Trust.OUTSIDE
    assert derived[1].sources
    (text,) = maps(view)
    assert "class Money" in text
    assert COUNTER.text(text) <= 300
    assert maps(fitted(seen(long(12)), Aider("gpt-4o"), 12_000).view) == []


def test_a_map_in_a_view_stays_whatever_happens_to_the_disk(shop: Path) -> None:
    """The same plan again is the same to the byte, though files changed and were looked at since; a committed one needs no disk at all."""
    log, by = long(12), Aider("gpt-4o", repo_map=shop, map_tokens=300)
    first = fitted(seen(log), by, 12_000)
    (shop / "shop/money.py").write_text("def another(): pass\n", "utf-8")
    assert by.repo_map is not None
    by.repo_map.look()
    again = fitted(seen(log), by, 12_000)
    assert again.view == first.view
    log.put(model("more"))
    assert maps(fitted(seen(log), by, 12_000).view) == maps(first.view)
    commit(log, first)
    for path in sorted(shop.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert maps(seen(log)) == maps(first.view)


def test_each_counter_gets_a_map_of_its_own(shop: Path) -> None:
    """One question by two counters is two maps, each within its budget by its own; of the repository as it was when the question came first."""
    repo_map, asked = RepoMap(shop), Interest(words=frozenset({"pay"}))
    near, far = counter("gpt-4o"), counter("claude-sonnet-4-5")
    first = repo_map.drawn(asked, 120, near.text, near).text
    (shop / "shop/money.py").write_text("def another(): pass\n", "utf-8")
    repo_map.look()
    second = repo_map.drawn(asked, 120, far.text, far).text
    assert far.text(second) <= 120 < far.text(first)
    assert "another" not in second
    assert "another" in repo_map.drawn(Interest(), 300, near.text, near).text


def test_the_next_fold_draws_anew(shop: Path) -> None:
    """When more leaves the view, the old map leaves with it, and the new one is of the repository as it is by then."""
    log, by = long(12), Aider("gpt-4o", repo_map=shop, map_tokens=300)
    commit(log, fitted(seen(log), by, 12_000))
    (shop / "shop/money.py").write_text("class Bullion:\n    pass\n", "utf-8")
    for turn in range(12, 30):
        log.put(*run(f"b{turn}", f"pytest -q tests/test_{turn}.py", PAGE + str(turn)), model("did"), user("Go on."))
    (text,) = maps(fitted(seen(log), by, 12_000).view)
    assert "Bullion" in text
    assert "class Money" not in text


def test_fit_takes_a_map_by_a_folder_s_name(shop: Path) -> None:
    """In a configuration the folder's path is enough, also over a plain list of messages."""
    messages = [{"role": "user", "content": "Mend `ShoppingBasket`."}]
    for number in range(30):
        messages += [
            {"role": "assistant", "content": PAGE + str(number)},
            {"role": "user", "content": f"Go on {number}."},
        ]
    done = fit(messages, model="gpt-4o", policy={"type": "aider", "repo_map": str(shop)}, budget=8_000)
    assert any("class ShoppingBasket" in str(message["content"]) for message in done.messages)
    assert done.tokens <= 8_000


@cache
def small() -> RepoMap:
    """Give the map of a small folder, made once."""
    return RepoMap(HERE.parent / "tools")


def test_what_replaces_only_what_stands_for_others_is_not_done() -> None:
    """Where nothing but a record and its map could be folded, both stay: a view that was composed is composed already, whatever its parts have."""
    by = Aider(history=600, repo_map=small(), map_tokens=200)
    for letters in range(600, 1_500, 60):
        work = Step(kind="work", sizes=(0, letters), pinned=False)
        asks = [Step(kind="ask", sizes=(chars,), pinned=False) for chars in (900, 200)]
        view = seen(played([asks[0], work, work, asks[1]]))
        composed = hold(view, by, Budget.of_input(size(view) * 2 // 3), COUNTER)
        assert composed is not None
        assert compose(composed.view, by, Budget.of_input(12_000), COUNTER).view is composed.view


class TestAiderWithAMap(PolicyLaws):
    """The laws of policies hold with a map, too."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Aider(history=600, repo_map=small(), map_tokens=200)


class Restarted(Policy):
    """The preset as another process has it at every call, each time over a repository that was changed since."""

    name = "restarted"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.calls = 0

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Change a file, and plan."""
        self.calls += 1
        (self.folder / "new.py").write_text(f"def of_call_{self.calls}(): pass\n", "utf-8")
        fresh = Aider(history=600, repo_map=RepoMap(self.folder), map_tokens=120)
        return fresh.plan(view, ledger, budget, prices)


@settings(max_examples=max(settings().max_examples // 12, 8), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=conversations(least=6), tokens=st.sampled_from([900, 1_500, 4_000, 12_000]))
def test_between_edits_processes_go_on_from_each_other(shop: Path, steps: list[Step], tokens: int) -> None:
    """Law 7 with calls that are recorded: whatever the disk says by then, a map stays until more is left out, for several providers."""
    log = played(steps)
    views = (fold(log.store, log.dialog, at) for at in range(log.store.last(log.dialog).seq + 1))
    whole = (view for view in views if view.exchanges and not any(exchange.open for exchange in view.exchanges))
    targets = ("openai-chat", "openai-responses")
    stable(whole, Restarted(shop), Budget.of_input(tokens), COUNTER, targets=targets, media=lambda _: b"", told=True)


# --- the tool -------------------------------------------------------------------------------------------------------------------


def test_a_model_can_ask_for_a_map(shop: Path) -> None:
    """The tool gives the map for the conversation in which it is called, bounded, and says what it has when it has nothing."""
    (tool,) = repo_map_tools(RepoMap(shop), max_tokens=200)
    assert tool.name == "repo_map"
    assert set(tool.properties) == {"mentioned", "tokens"}
    assert tool.function is not None
    dialog = Dialog(owner="agent")
    dialog.put_text("Mend `pay`.")
    here = CallContext(dialog=dialog)
    text = tool.function(context=here, tokens=10_000)
    assert "class Money" in text
    assert COUNTER.text(text) <= 220
    assert "lonely" in tool.function(context=here, tokens=100, mentioned=["shelf.py"])
    assert tool.function(context=here, tokens=3) == "There is no room for anything in 3 tokens."
    (empty,) = repo_map_tools(RepoMap(shop, limits=Limits(entries=0)))
    assert empty.function is not None
    assert empty.function(context=here) == "There are no files."
