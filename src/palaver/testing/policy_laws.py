"""The laws of a context policy, to run over any: ours, and yours.

A policy, or a plain context manager, gets every law by subclassing::

    class TestMine(PolicyLaws):
        def policy(self) -> ContextManager:
            return MyPolicy("gpt-4o")

`hold` is the same for one view and one budget, for logs of your own (`palaver.testing.holding`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.context import ContextManager, Meter
from palaver.messages import Message, TextContent, ToolResultContent
from palaver.testing.holding import MODELS, hold, shown_and_left_out, stable
from palaver.testing.log_strategies import sayings
from palaver.testing.logs import Log
from palaver.testing.policy_strategies import EVALUATED, Step, conversations, played
from palaver.tokens import Budget, counter
from palaver.view import View, fold

__all__ = ["MODELS", "PolicyLaws", "hold", "shown_and_left_out", "stable"]

_LAW = settings(
    max_examples=max(settings().max_examples // 8, 10),
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)


# --- the suite --------------------------------------------------------------------------------------------------------------


class PolicyLaws:
    """All the laws of a policy. Subclass it and give `policy`; pytest finds the rest.

    Attributes:
        model: The model whose tokens count.
    """

    model = "gpt-4o"

    def policy(self) -> ContextManager:
        """Give the policy, or the plain context manager, that is held to the laws."""
        raise NotImplementedError

    def _budget(self, view: View, percent: int) -> Budget:
        return Budget.of_input(max(Meter(counter(self.model)).view(view).total * percent // 100, 1))

    @_LAW
    @given(steps=conversations(), percent=st.integers(5, 100))
    def test_every_law_holds_for_any_conversation_and_budget(self, steps: list[Step], percent: int) -> None:
        """Closed, valid, within budget or truly infeasible, nothing missing without a handle, deterministic, smaller, idempotent."""
        log = played(steps)
        bodies = list(log.store.bodies(log.dialog))
        view = fold(log.store, log.dialog)
        before = repr(view)
        hold(view, self.policy(), self._budget(view, percent), counter(self.model))
        assert list(log.store.bodies(log.dialog)) == bodies, "the log was changed"
        assert repr(view) == before, "the view that went in was changed"

    @_LAW
    @given(said=sayings(), percent=st.integers(5, 150))
    def test_every_law_holds_for_any_messages_sensible_or_not(self, said: list[Message], percent: int) -> None:
        """Results without calls, calls without results, ids used twice, empty words: the laws hold all the same."""
        log = Log()
        log.put(*said)
        view = fold(log.store, log.dialog)
        hold(view, self.policy(), self._budget(view, percent), counter(self.model))

    @_LAW
    @given(
        steps=conversations(least=4),
        percent=st.integers(20, 150),
        max_bytes=st.sampled_from([4_000, 20_000, 80_000]),
        max_media=st.integers(0, 4),
    )
    def test_every_law_holds_when_bytes_and_media_are_limited_too(
        self, steps: list[Step], percent: int, max_bytes: int, max_media: int
    ) -> None:
        """A budget's bytes and media are kept to like its tokens, or the error says which of them cannot be."""
        view = fold((log := played(steps)).store, log.dialog)
        budget = replace(self._budget(view, percent), max_bytes=max_bytes, max_media=max_media)
        hold(view, self.policy(), budget, counter(self.model))

    @_LAW
    @given(steps=conversations(least=6), tokens=st.sampled_from([400, 1_500, 4_000]))
    def test_between_edits_requests_go_on_from_each_other(self, steps: list[Step], tokens: int) -> None:
        """Law 7, with messages appended one turn at a time, wherever a model would be called."""
        stable(_growing(steps), self.policy(), Budget.of_input(tokens), counter(self.model))

    @_LAW
    @given(steps=conversations(least=4), percent=st.integers(10, 90))
    def test_no_text_is_ever_read_as_a_template(self, steps: list[Step], percent: int) -> None:
        """What a template in the log would come to is nowhere in the view, and no cut leaves half of a character."""
        view = fold((log := played(steps)).store, log.dialog)
        composed = hold(view, self.policy(), self._budget(view, percent), counter(self.model))
        for text in _texts(composed.view if composed else view):
            assert EVALUATED not in text
            assert text.encode("utf-8").decode("utf-8") == text


def _growing(steps: list[Step]) -> Iterator[View]:
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
