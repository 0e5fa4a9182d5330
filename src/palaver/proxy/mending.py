"""Mending: a request that its vendor would refuse is repaired, or made to fit a budget. Off unless the user asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from palaver.context.fit import fit
from palaver.errors import PalaverError
from palaver.log import BoundTo
from palaver.messages import Message, ThinkingContent, canonical_json
from palaver.providers import APIS
from palaver.proxy.requests import fields_of
from palaver.wire import Breach, Profile, validate
from palaver.wire.binding import COMPACTION, ChainLink, bound_after, digest, head_digest, kept, prefixes, without

_MENDED = frozenset(
    {
        Breach.CALL_DUPLICATE, Breach.CALL_ID, Breach.CALL_PLACE, Breach.CALL_UNANSWERED, Breach.ITEM_DUPLICATE, Breach.ITEM_ID,
        Breach.REASONING_FOLLOW, Breach.RESULT_DUPLICATE, Breach.RESULT_NAME, Breach.RESULT_ORPHAN, Breach.RESULT_PLACE,
    }
)  # fmt: skip
"""The rules whose breaches are mended: calls and results that are no pairs, and their ids."""

_THINKING = frozenset({"thinking", "redacted_thinking"})
_KNOWN = 100_000
"""The most answers whose thinking is known: some 30 MB."""

_ANEW = digest((b"compaction",))


@dataclass(frozen=True, slots=True)
class Mended:
    """A request as it is sent.

    Attributes:
        body: Its body; None where nothing was changed, so that the client's bytes are sent.
        changes: What was changed, or why it was not; one sentence each.
    """

    body: bytes | None = None
    changes: tuple[str, ...] = ()


@dataclass(slots=True)
class RequestMender:
    """Mends requests.

    It knows what the thinking of the answers that passed was bound to, and so which thinking a vendor that checks refuses. Of thinking that it did not see, it
    assumes nothing and leaves it.

    Attributes:
        mend: Whether requests that would be refused are repaired.
        budget: The tokens that a request may occupy, or None.
    """

    mend: bool = False
    budget: int | None = None
    _bound: dict[str, BoundTo] = field(default_factory=dict)

    def mended(self, api: str, body: bytes, model: str = "") -> Mended:
        """Return a request as it is sent; one that cannot be mended is sent as it is.

        Args:
            api: Its API.
            body: The client's body.
            model: The model that the path names, or empty.

        Raises:
            InvalidMessage: It is not a JSON object.
        """
        given = fields_of(body)
        name = model or str(given.get("model") or "")
        profile = APIS[api].profile(name)
        changes: list[str] = []
        fields = self._fitted(api, given, name, profile, changes)
        if _binds(profile):
            fields = self._rid(fields, profile, changes)
        written = None if fields is given else json.dumps(fields, separators=(",", ":")).encode()
        return Mended(written, tuple(changes))

    def learn(self, api: str, fields: Mapping[str, Any], model: str, answer: Message) -> None:
        """Note what the thinking of an answer is bound to: what its request had before it."""
        profile = APIS[api].profile(model)
        own = _digest(
            [block.signature or block.redacted for block in answer.contents if isinstance(block, ThinkingContent)]
        )
        if not own or not _binds(profile):
            return
        links = [_link(message) for message in _listed(fields)]
        *_, prefix = prefixes(head_digest(fields, profile), links, _ANEW)
        self._bound[own] = bound_after([link.own for link in links if link.own], prefix)
        while len(self._bound) > _KNOWN:
            self._bound.pop(next(iter(self._bound)))

    def _fitted(
        self, api: str, fields: dict[str, Any], model: str, profile: Profile, changes: list[str]
    ) -> dict[str, Any]:
        """Return the fields of a body with a list that has pairs and ids, and fits the budget."""
        dialect = APIS[api].dialect
        items = fields.get(dialect.items)
        broken = self.mend and any(violation.rule in _MENDED for violation in validate(fields, profile))
        if not isinstance(items, list) or not (broken or self.budget):
            return fields
        policy = "palaver" if self.budget else "full"
        try:
            made = fit(
                items,
                model=model,
                budget=self.budget,
                policy=policy,
                system=fields.get(dialect.system) if dialect.system else None,
                tools=fields.get("tools"),
                dialect=api,
            )
        except PalaverError as error:
            changes.append(f"nothing: {error.message}")
            return fields
        if made.messages == items:
            return fields
        if self.budget and made.omitted:
            changes.append(f"{made.tokens_before:,} tokens fitted to {made.tokens:,}")
        changes += map(str, made.report)
        system = {dialect.system: made.system} if dialect.system and made.system else {}
        return {**fields, dialect.items: made.messages, **system}

    def _rid(self, fields: dict[str, Any], profile: Profile, changes: list[str]) -> dict[str, Any]:
        """Return the fields of a body without the thinking that its vendor refuses, because something before it was changed."""
        messages = _listed(fields)
        links = [_link(message) for message in messages]
        before = list(prefixes(head_digest(fields, profile), links, _ANEW))
        count, last = 0, ""
        for link, prefix in zip(links, before, strict=False):
            if link.own:
                link.bound = self._bound.get(link.own) or BoundTo(prefix=prefix, last=last, count=count)
                count, last = count + 1, link.own
        fine = kept(links, before)
        gone = {index for index, link in enumerate(links) if link.own and index not in fine}
        if not gone:
            return fields
        changes += [
            f"messages[{index}]: its thinking was removed: what precedes it was changed" for index in sorted(gone)
        ]
        left = [_bare(message) if index in gone else message for index, message in enumerate(messages)]
        return {**fields, "messages": [message for message in left if message.get("content")]}


def _binds(profile: Profile) -> bool:
    """Return whether a vendor refuses thinking after anything before it was changed; one that only withholds it refuses nothing."""
    return profile.reasoning.bound and profile.reasoning.form == "blocks"


def _listed(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = fields.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _link(message: Mapping[str, Any]) -> ChainLink:
    """Return a message in the chain of a request. A text is the same as a list with one."""
    content = message.get("content")
    blocks: Sequence[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    plain = [block for block in blocks if _kind(block) not in _THINKING]
    thoughts = [block.get("signature") or block.get("data") for block in blocks if _kind(block) in _THINKING]
    said = without({**message, "content": plain}, "cache_control")
    return ChainLink(
        digest((canonical_json(said),)), _digest(thoughts), None, any(_kind(block) == COMPACTION for block in blocks)
    )


def _bare(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "content": [block for block in message["content"] if _kind(block) not in _THINKING]}


def _kind(block: object) -> str:
    return str(block.get("type")) if isinstance(block, Mapping) else ""


def _digest(seals: Sequence[object]) -> str:
    return digest(str(seal).encode() for seal in seals) if seals else ""
