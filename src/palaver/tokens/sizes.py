"""How large a context is: what the provider reported of the last request, and an estimate of what came since.

The size of a context is a quantity of one request. Usage figures are there to be billed: added up over calls, or with the
cached tokens of each call counted again, they say nothing about it. So a reported figure counts only if it is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from palaver.messages import AssistantMessage, Message, StopReason
from palaver.tokens.counting import ModelCounter, count_message, count_request
from palaver.tokens.names import read_name

__all__ = ["ContextSize", "context_size"]

_BROKEN = frozenset({StopReason.ABORT, StopReason.ERROR})


@dataclass(frozen=True, slots=True)
class ContextSize:
    """What a request occupies, in tokens, with its error bar.

    Attributes:
        tokens: The size.
        low: The least it may be, within the counter's error bound.
        high: The most it may be.
        basis: ``reported`` if a provider's figure carries it, so that only what came since is an estimate; else ``estimated``.
    """

    tokens: int
    low: int
    high: int
    basis: Literal["reported", "estimated"]


def context_size(
    messages: Sequence[Message],
    counter: ModelCounter,
    *,
    system: str = "",
    tools: Iterable[Mapping[str, object]] = (),
) -> ContextSize:
    """Tell how large the next request is.

    The newest usable figure is taken as far as it reaches: of an answer by the same model that was neither broken off nor
    failed. It must lie within the error bound of the estimate for the same part of the request; a figure that does not is of
    another request (before a compaction, or summed over calls), and the estimate stands.

    Args:
        messages: What would be sent, in order.
        counter: The model's counter.
        system: Instructions that are not among the messages.
        tools: Tool schemas.
    """
    estimate = count_request(messages, counter, system=system, tools=tools)
    newest = _newest_report(messages, counter)
    if newest is not None:
        reported = messages[newest].usage.context_tokens
        since = sum(count_message(message, counter) for message in messages[newest + 1 :])
        low, high = counter.range(estimate - since)
        if low <= reported <= high:
            least, most = counter.range(since)
            return ContextSize(reported + since, reported + least, reported + most, "reported")
    return ContextSize(estimate, *counter.range(estimate), "estimated")


def _newest_report(messages: Sequence[Message], counter: ModelCounter) -> int | None:
    """Give the place of the newest answer whose usage can be used."""
    model = read_name(counter.model).bare
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if (
            isinstance(message, AssistantMessage)
            and message.usage.context_tokens
            and message.stop_reason not in _BROKEN
            and (message.model is None or read_name(message.model).bare == model)
        ):
            return place
    return None
