"""The laws of a context policy as a test suite, for any policy.

Subclass it to check a policy or a plain context manager::

    class TestMine(PolicyLaws):
        def policy(self) -> ContextManager:
            return MyPolicy("gpt-4o")

`palaver.testing.policy_checks` has the same laws for one view and one budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.context import ContextManager, Policy
from palaver.context.meter import Meter
from palaver.messages import Message, TextContent, ToolResultContent
from palaver.testing.conversations import EVALUATED, ConversationStep, played, playing
from palaver.testing.logs import Log
from palaver.testing.policy_checks import check_commits, check_policy, check_same_plan, check_stable, other_letters
from palaver.testing.strategies import conversations, sayings
from palaver.tokens import Budget, counter
from palaver.view import View, fold

_LAW = settings(
    max_examples=max(settings().max_examples // 16, 6),
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)


_COMPACTIONS = 3


class PolicyLaws:
    """All the laws of a policy. Subclass it and define `policy`; pytest finds the tests.

    Attributes:
        model: The model whose tokens count.
    """

    model = "gpt-4o"

    def policy(self) -> ContextManager:
        """Return the policy, or the plain context manager, to check."""
        raise NotImplementedError

    def _budget(self, view: View, percent: int) -> Budget:
        return Budget.of_input(max(Meter(counter(self.model)).view(view).total * percent // 100, 1))

    @_LAW
    @given(steps=conversations(), percent=st.integers(5, 100))
    def test_laws_over_conversations(self, steps: list[ConversationStep], percent: int) -> None:
        """Laws 1, 3, 8, 9, 10: views are valid, within the budget or truly infeasible, deterministic, and list every omission; log and view do not change."""
        log = played(steps)
        bodies = list(log.store.bodies(log.dialog))
        view = fold(log.store, log.dialog)
        before = view.exchanges, view.omissions
        check_policy(view, self.policy(), self._budget(view, percent), counter(self.model))
        assert list(log.store.bodies(log.dialog)) == bodies, "the log was changed"
        assert (view.exchanges, view.omissions) == before, "the view that went in was changed"

    @_LAW
    @given(said=sayings(), percent=st.integers(5, 150))
    def test_laws_over_senseless_messages(self, said: list[Message], percent: int) -> None:
        """Laws 1, 8, 9, 10: the laws also hold for results without calls, calls without results, duplicate ids and empty texts."""
        log = Log()
        log.put(*said)
        view = fold(log.store, log.dialog)
        check_policy(view, self.policy(), self._budget(view, percent), counter(self.model))

    @_LAW
    @given(
        steps=conversations(least=4),
        percent=st.integers(20, 150),
        max_bytes=st.sampled_from([4_000, 20_000, 80_000]),
        max_media=st.integers(0, 4),
    )
    def test_laws_with_limits_of_bytes_and_media(
        self, steps: list[ConversationStep], percent: int, max_bytes: int, max_media: int
    ) -> None:
        """Law 8: limits on bytes and media are respected like tokens, or the error names the unit."""
        view = fold((log := played(steps)).store, log.dialog)
        budget = replace(self._budget(view, percent), max_bytes=max_bytes, max_media=max_media)
        check_policy(view, self.policy(), budget, counter(self.model))

    @_LAW
    @given(steps=conversations(least=6), tokens=st.sampled_from([400, 1_500, 4_000]))
    def test_law_7_between_steps_views_are_prefixes(self, steps: list[ConversationStep], tokens: int) -> None:
        """Messages are appended one by one; a view is composed at each possible model call."""
        if isinstance(self.policy(), Policy):
            check_stable(_growing(steps), self.policy(), Budget.of_input(tokens), counter(self.model))

    @_LAW
    @given(steps=conversations(least=12, most=32), tokens=st.sampled_from([1_500, 4_000]))
    def test_laws_7_and_8_with_committed_plans(self, steps: list[ConversationStep], tokens: int) -> None:
        """Plans are committed as the conversation grows: each makes the view smaller, and a later one leaves what one of the whole log would."""
        if isinstance(manager := self.policy(), Policy):
            check_commits(log := Log(), playing(log, steps), manager, Budget.of_input(tokens), counter(self.model))

    def test_law_8_at_every_compaction(self) -> None:
        """The second, the third and each later compaction of a long even conversation leaves what the first one left."""
        manager, steps = self.policy(), [ConversationStep("ask", (200,)), *[ConversationStep("work", (200,))] * 79] * 2
        if isinstance(manager, Policy) and not manager.complete:
            commits = check_commits(
                log := Log(), playing(log, steps), manager, Budget.of_input(3_000), counter(self.model)
            )
            assert commits >= _COMPACTIONS

    @_LAW
    @given(steps=conversations(least=4), percent=st.integers(10, 90))
    def test_law_12_no_text_is_a_template(self, steps: list[ConversationStep], percent: int) -> None:
        """No template in the log is evaluated, and no cut leaves half of a character."""
        view = fold((log := played(steps)).store, log.dialog)
        composed = check_policy(view, self.policy(), self._budget(view, percent), counter(self.model))
        for text in _texts(composed.view if composed else view):
            assert EVALUATED not in text
            assert text.encode("utf-8").decode("utf-8") == text

    @_LAW
    @given(steps=conversations(least=4), percent=st.integers(10, 90))
    def test_law_13_no_plan_depends_on_words(self, steps: list[ConversationStep], percent: int) -> None:
        """With every letter replaced by another of its script and case, the same exchanges are dropped and the same blocks change."""
        plain, other = (fold((log := played(steps, spelled)).store, log.dialog) for spelled in (str, other_letters))
        check_same_plan(plain, other, self.policy(), percent)


def _growing(steps: list[ConversationStep]) -> Iterator[View]:
    log = played(steps)
    last = log.store.last(log.dialog).seq
    for at in range(last + 1):
        view = fold(log.store, log.dialog, at)
        if view.exchanges and not any(exchange.open for exchange in view.exchanges):
            yield view


def _texts(view: View) -> Iterator[str]:
    for exchange in view.exchanges:
        for block in exchange.blocks():
            content = block.content
            if isinstance(content, TextContent | ToolResultContent):
                yield content.content if isinstance(content, TextContent) else content.text()
