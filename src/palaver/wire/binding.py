"""The last pass: thinking goes back only where what it was bound to is still there.

From Claude Fable 5.1 on, Anthropic refuses a block of thinking after anything before it changed, and GPT-6.2 withholds it
(platform.claude.com/docs/en/build-with-claude/preserved-thinking; developers.openai.com/api/docs/guides/keep-prefix-unchanged). A block is bound to
the instructions, the tools and the messages before it, and to the thinking that its request had. Thinking may be left out from the
start, from the end or altogether; it may not be left out from the middle, nor come back once it was left out.

So each answer is recorded with two digests of its request (`BoundTo`), and a later request is compared with them. Cuts, forks, shortened results,
images that were left out, changed tools and instructions need no rule of their own: each changes the digest of what follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from palaver.log import BoundTo
from palaver.messages import canonical_json
from palaver.wire.script import ProviderPart, Speech, ThinkingPart
from palaver.wire.table import Profile


@dataclass(slots=True)
class ChainLink:
    """An exchange in the chain of a request.

    Attributes:
        plain: The digest of its items without bound content.
        own: The digest of its bound content; empty where it has none.
        bound: What its answer is recorded as bound to, or None.
        restarts: Whether the provider compacted what comes before it, and reads no further back.
    """

    plain: str
    own: str
    bound: BoundTo | None
    restarts: bool
    _known: tuple[str, str] | None = field(default=None, init=False, repr=False, compare=False)

    def after(self, before: str) -> str:
        """Return the digest of all up to it, after what has the digest `before`: in a conversation that goes on it is that of the last request."""
        if self._known is None or self._known[0] != before:
            self._known = before, digest((before.encode(), self.plain.encode()))
        return self._known[1]


_DIGITS = 32
"""Hexadecimal digits of a digest: 128 bits, so that equal ones mean equal requests."""


def digest(items: Iterable[bytes]) -> str:
    """Return a digest of items in order, each with its length: half of SHA-256, as one goes into the log with each answer."""
    made = sha256()
    for item in items:
        made.update(len(item).to_bytes(8, "big") + item)
    return made.hexdigest()[:_DIGITS]


def prefixes(head: str, links: Sequence[ChainLink], anew: str) -> Iterator[str]:
    """Yield the digest of what comes before each exchange, and of all; `anew` before one that the provider compacted all before."""
    so_far = head
    for link in links:
        so_far = anew if link.restarts else so_far
        yield so_far
        so_far = link.after(so_far)
    yield so_far


def kept(links: Sequence[ChainLink], before: Sequence[str]) -> frozenset[int]:
    """Return the indexes of the exchanges whose bound content a provider accepts, newest first where not all can stay together.

    Args:
        links: The exchanges.
        before: The digest of what comes before each.
    """
    chosen: set[int] = set()
    follower: BoundTo | None = None  # of the answer that was chosen last, which comes next in the request
    room = 0  # how many more may come before the chosen ones
    for index in range(len(links) - 1, -1, -1):
        bound = links[index].bound
        if bound is None or not links[index].own or bound.prefix != before[index]:
            continue
        if follower is not None and (follower.last != links[index].own or not room):
            continue
        room = bound.count if follower is None else min(room - 1, bound.count)
        follower = bound
        chosen.add(index)
    return frozenset(chosen)


def bound_after(own: Sequence[str], prefix: str) -> BoundTo:
    """Return what the answer to a request will be bound to.

    Args:
        own: The digest of the bound content of each answer that goes with it, in order.
        prefix: The digest of the request.
    """
    return BoundTo(prefix=prefix, last=own[-1] if own else "", count=len(own))


def head_digest(body: Mapping[str, Any], profile: Profile) -> str:
    """Return the digest of what a body says before the conversation, without cache marks and tools that nothing has shown to the model."""
    fields = {name: body[name] for name in profile.api.binding if name in body}
    if deferred(body, profile):
        fields["tools"] = [tool for tool in fields["tools"] if not tool.get(profile.api.blocks.deferred)]
    return digest((canonical_json(without(fields, profile.cache.field)),))


def deferred(body: Mapping[str, Any], profile: Profile) -> Mapping[str, bytes]:
    """Return the tools of a body that the model sees only where a block shows them, by name."""
    mark = profile.api.blocks.deferred
    return {tool["name"]: canonical_json(tool) for tool in body.get("tools") or () if mark and tool.get(mark)}


def shown(script: Sequence[Speech], profile: Profile) -> Iterator[str]:
    """Yield the names of the deferred tools that a script shows to the model."""
    reads = profile.api.blocks.shown
    parts = (part for speech in script for part in speech.parts if isinstance(part, ProviderPart))
    return (name for part in parts for name in (reads(part.fields) if reads is not None else ()))


def without(value: Any, mark: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value without a field, at every depth; the value itself where the field has no name."""
    if not mark:
        return value
    if isinstance(value, Mapping):
        return {key: without(item, mark) for key, item in value.items() if key != mark}
    return [without(item, mark) for item in value] if isinstance(value, list) else value


def bare(script: Sequence[Speech]) -> tuple[Speech, ...]:
    """Return a script without thinking, and without speeches of which nothing is left."""
    kept_parts = (
        Speech(
            speech.role,
            tuple(part for part in speech.parts if not isinstance(part, ThinkingPart)),
            speech.name,
            speech.provider,
            speech.model,
        )
        for speech in script
    )
    return tuple(speech for speech in kept_parts if speech.parts)


def thoughts(script: Sequence[Speech]) -> Iterator[ThinkingPart]:
    """Yield the thinking of a script."""
    return (part for speech in script for part in speech.parts if isinstance(part, ThinkingPart))


def own_digest(script: Sequence[Speech]) -> str:
    """Return the digest of the bound content of a script, or an empty text."""
    said = [part.content for part in thoughts(script)]
    return digest(canonical_json([it.content, it.signature, it.redacted, it.artefact]) for it in said) if said else ""


COMPACTION = "compaction"
"""The block or item in which Anthropic and OpenAI return a conversation that they compacted; neither reads what precedes the newest."""


def restarts(script: Sequence[Speech], field: str) -> bool:
    """Return whether a script has what the provider made of all before it, in this field; a compaction that failed has nothing there."""
    parts = (part for speech in script for part in speech.parts)
    return any(isinstance(part, ProviderPart) and part.kind == COMPACTION and part.fields.get(field) for part in parts)
