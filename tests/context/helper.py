"""What the tests of policies share: a log composed, committed, and written out."""

from palaver import wire
from palaver.context import Composed, ContextManager, Meter, compose, planner, policy
from palaver.errors import MissingBlob
from palaver.messages import TextContent, ToolResultContent
from palaver.testing.logs import Log
from palaver.tokens import Budget, counter
from palaver.view import View, checkpoint, fold, held
from palaver.wire import PROFILES, Call

COUNTER = counter("gpt-4o")


def manager(name: str) -> ContextManager:
    """Make a policy by its name."""
    made = policy(name, "gpt-4o")
    assert made is not None
    return made


def seen(log: Log) -> View:
    """Fold a log."""
    return fold(log.store, log.dialog)


def size(view: View) -> int:
    """Measure a view."""
    return Meter(COUNTER).view(view).total


def fitted(view: View, by: ContextManager | str, tokens: int) -> Composed:
    """Compose a view within so many tokens of input."""
    by = manager(by) if isinstance(by, str) else by
    return compose(view, planner(by), Budget.of_input(tokens), COUNTER)


def commit(log: Log, composed: Composed) -> None:
    """Write a composed view down in its log."""
    spans = held(log.store, log.dialog, composed.view.at)
    log.put(
        checkpoint(
            composed.view,
            spans,
            policy=composed.plan.policy,
            tokens_before=composed.tokens_before,
            tokens_after=composed.tokens_after,
        )
    )


def texts(view: View) -> list[str]:
    """Give all texts and results of a view, in order."""
    contents = [block.content for exchange in view.exchanges for block in exchange.blocks()]
    return [
        each.text() if isinstance(each, ToolResultContent) else each.content
        for each in contents
        if isinstance(each, TextContent | ToolResultContent)
    ]


def record(view: View) -> str:
    """Give the text of the record in a view, or an empty one."""
    found = [x.turns[0].blocks[0] for x in view.exchanges if x.derived and x.turns[0].blocks[0].derived == "record"]
    assert len(found) <= 1, "one record stands for all that was folded"
    content = found[0].content if found else None
    return content.content if isinstance(content, TextContent) else ""


def no_media(digest: str) -> bytes:
    """Have no payloads."""
    raise MissingBlob(digest)


def faults(view: View) -> list[str]:
    """Give what any of the four providers would refuse."""
    found = []
    for name in PROFILES:
        request = wire.compile(view, wire.profile(name), Call(model="any"), no_media)
        found += [
            f"{name}: {each}" for each in wire.validate(request.body, request.profile, as_history=request.history)
        ]
    return found
