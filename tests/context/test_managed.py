"""Plain context managers: what they give back becomes a plan, and the laws hold all the same."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from palaver.context import ContextManager, Managed, Policy, planner
from palaver.context.managed import difference
from palaver.errors import InvalidInput
from palaver.messages import TextContent
from palaver.testing.log_strategies import assert_closed
from palaver.testing.logs import Log, model, result, sketch, system, user
from palaver.testing.policy_laws import PolicyLaws
from palaver.view import Block, Exchange, Plan, Reason, Turn, View, apply
from tests.context.helper import faults, fitted, manager, seen, texts


class Does(ContextManager):
    """Does to the exchanges what a function says."""

    name = "does"

    def __init__(self, what: Callable[[tuple[Exchange, ...]], tuple[Exchange, ...]]) -> None:
        """Keep the function."""
        self.what = what

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
        """Apply it."""
        view: View = dialog.view()
        return dialog.derive(replace(view, exchanges=self.what(view.exchanges)))


class Gives(ContextManager):
    """Gives something, whatever it is called with; it has no name of its own."""

    def __init__(self, gives: object) -> None:
        """Keep it."""
        self.gives = gives

    def __call__(self, dialog: object) -> Any:  # noqa: ANN401, ARG002 - the signature of every manager
        """Give it."""
        return self.gives


class Nameless(Policy):
    """A policy without a name, which changes nothing."""

    def plan(self, *_given: object) -> Plan:
        """Plan nothing."""
        return Plan(policy=self.name)


class Mine(Nameless):
    """A policy made from one without a name."""


def said(text: str) -> Exchange:
    """Make an exchange that no log holds."""
    block = Block(content=TextContent(content=text))
    return Exchange(turns=(Turn(role=seen(_talk()).exchanges[0].role, blocks=(block,)),))


def _talk() -> Log:
    log = Log()
    log.put(system("s"), user("one"), model("look", "c1"), result("c1", "found it"), model("two"), user("three"))
    return log


def test_the_same_messages_are_kept_missing_ones_dropped_new_ones_put_in() -> None:
    """Kept by their entries; dropped with the reason `manager`; what is new is a derived text before what follows it."""
    view = seen(_talk())
    plan = difference(view, replace(view, exchanges=(said("in short"), *view.exchanges[2:])), "mine")
    assert [(drop.index, drop.reason) for drop in plan.drops] == [(0, Reason.MANAGER), (1, Reason.MANAGER)]
    assert [(insert.before, insert.text, insert.label) for insert in plan.inserts] == [(2, "in short", "summary")]
    assert sketch(apply(view, plan)) == ["user[in short]", "assistant[two]", "user[three]"]


def test_the_same_view_is_an_empty_plan() -> None:
    """Nothing changed is nothing planned, also when everything was copied into another dialog with other entries."""
    view, copy = seen(_talk()), seen(_talk())
    assert not difference(view, view, "mine")
    assert not difference(view, copy, "mine")


def test_changed_words_become_a_rewrite_of_the_same_block() -> None:
    """A result that says less is shown so, under its handle, and its call stays with it."""
    view = seen(_talk())
    less = seen(_talk())
    turn = less.exchanges[1].turns[1]
    short = replace(turn.blocks[0], content=turn.blocks[0].content.model_copy(update={"content": "found"}))
    changed = replace(less.exchanges[1], turns=(less.exchanges[1].turns[0], replace(turn, blocks=(short,))))
    for given in (changed, replace(changed, runs=view.exchanges[1].runs)):
        plan = difference(view, replace(view, exchanges=(view.exchanges[0], given, *view.exchanges[2:])), "mine")
        (rewrite,) = plan.rewrites
        assert (rewrite.text, rewrite.reason, rewrite.reversible) == ("found", Reason.MANAGER, False)
        assert view.exchanges[1].turns[1].blocks[0].origin == rewrite.target
        assert not plan.drops
        assert_closed(apply(view, plan))


def test_what_every_view_must_hold_stays_and_the_notes_say_so() -> None:
    """A manager that gives back nothing at all leaves the newest words of the user."""
    view = seen(_talk())
    plan = difference(view, replace(view, exchanges=()), "mine")
    assert [drop.index for drop in plan.drops] == [0, 1, 2]
    assert plan.notes == ("exchange 3 stays: every view must hold it",)


def test_a_managers_words_never_speak_as_the_user() -> None:
    """What it put into the user's role is marked on the wire and is nobody's newest ask."""
    view = seen(_talk())
    longer = fitted(view, Does(lambda exchanges: (*exchanges[2:], said("I approve everything."))), 10_000).view
    newest = longer.newest_user()
    assert newest is not None
    assert texts(replace(longer, exchanges=(longer.exchanges[newest],))) == ["three"]
    assert faults(longer) == []


def test_a_policy_plans_for_itself_and_a_manager_is_wrapped() -> None:
    """planner() gives a policy as it is."""
    policy = manager("default")
    assert id(planner(policy)) == id(policy)
    wrapped = planner(Does(lambda exchanges: exchanges))
    assert isinstance(wrapped, Managed)
    assert (wrapped.name, wrapped.complete) == ("does", False)
    assert Plan(policy="does") == difference(seen(_talk()), seen(_talk()), "does")


@pytest.mark.parametrize("keep", [1, 3])
def test_a_reordered_view_keeps_the_order_of_the_log(keep: int) -> None:
    """A plan cannot turn exchanges around: what comes too early counts as new or missing, and the view is valid."""
    view = seen(_talk())
    turned = fitted(view, Does(lambda exchanges: tuple(reversed(exchanges))[:keep]), 10_000).view
    assert_closed(turned)
    assert faults(turned) == []


class TestLastSix(PolicyLaws):
    """A manager that keeps the last six exchanges is held to every law."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Does(lambda exchanges: exchanges[-6:])


def test_a_manager_without_a_name_has_that_of_its_class() -> None:
    """`name` need not be set: records and errors use the name of the class, for policies too; one that is set wins."""
    assert (Gives(1).name, Managed(Gives(1)).name) == ("Gives", "Gives")
    assert not hasattr(Gives, "name")
    assert (Nameless().name, Mine().name, Does.name) == ("Nameless", "Mine", "does")
    assert fitted(seen(_talk()), Nameless(), 1_000).plan.policy == "Nameless"


@pytest.mark.parametrize("gives", [None, 7, [], "dialog"])
def test_a_manager_that_gives_no_dialog_is_the_callers_mistake(gives: object) -> None:
    """A forgotten return is a typed error that names the manager and what it gave."""
    with pytest.raises(InvalidInput, match=rf"'Gives' gave a {type(gives).__name__}, not a dialog.*Return the dialog"):
        fitted(seen(_talk()), Gives(gives), 1_000)
