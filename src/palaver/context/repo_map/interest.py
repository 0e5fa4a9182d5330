"""What a conversation is at: the files that its calls touched, and the names that its user mentioned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from palaver.context.ground import asks
from palaver.context.record.facts import Facts
from palaver.context.work import Act
from palaver.messages import TextContent
from palaver.view import Exchange

__all__ = ["Interest", "Places", "interest_of", "words_in"]

_MANY = 20_000
"""Characters of what was said in which names are looked for."""

_WORD = re.compile(r"[^\W\d]\w{2,99}")
"""A name of three characters or more; shorter ones are words of any language."""

_PATH = re.compile(r"[\w./\\+@-]{3,300}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """What somebody is at.

    Attributes:
        whole: The files whose text is before the model's eyes as a whole, as they were named.
        touched: The other files that were read or changed, or mentioned by their paths, as they were named.
        words: The names that were mentioned.
    """

    whole: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()

    def mentioning(self, texts: Iterable[str]) -> Interest:
        """Give the same with what further texts mention."""
        words, paths = words_in(texts)
        return Interest(whole=self.whole, touched=self.touched | paths, words=self.words | words)


def interest_of(exchanges: Sequence[Exchange], acts: Iterable[Act], *, shown: bool = True) -> Interest:
    """Tell what exchanges are at. Of the words of the user the first and the newest count: his goal, and what he wants now.

    Args:
        exchanges: The exchanges. Of what was folded into records before, they know the files and words.
        acts: The calls in them.
        shown: Whether the model sees these exchanges; False where something is to stand in their place.
    """
    past = [
        Facts.from_json(block.facts) for each in exchanges if each.derived for block in each.blocks() if block.facts
    ]
    touched = {file.path for facts in past for file in facts.files}
    whole: set[str] = set()
    for act in acts:
        if not act.failed:
            touched.update((*act.deed.read, *act.deed.wrote))
            whole -= set(act.deed.wrote)
            if shown and act.shows and act.answer.reason is None and act.call.reason is None:
                whole.add(act.shows)
    said = [ask.text for facts in past for ask in (facts.goal, *facts.asks) if ask is not None]
    said += [text for each in exchanges if asks(each) for text in _texts(each)]
    return Interest(whole=frozenset(whole), touched=frozenset(touched - whole)).mentioning([*said[:1], *said[-1:]])


def _texts(exchange: Exchange) -> Iterator[str]:
    yield "\n".join(block.content.content for block in exchange.blocks() if isinstance(block.content, TextContent))


def words_in(texts: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Give the names in texts, and what may be paths in them."""
    words: set[str] = set()
    paths: set[str] = set()
    for text in texts:
        words.update(_WORD.findall(text[:_MANY]))
        paths.update(path.strip(".") for path in _PATH.findall(text[:_MANY]) if "/" in path or "." in path)
    return frozenset(words), frozenset(paths)


class Places:
    """Finds the files of a repository by what others call them: the machine may be another one, and the folder they work in."""

    def __init__(self, folder: str, paths: Iterable[str]) -> None:
        """Know the files of a folder.

        Args:
            folder: Where it is.
            paths: Its files.
        """
        self._folder = folder.rstrip("/") + "/"
        self._paths = frozenset(paths)
        self._named: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            self._named.setdefault(path.rsplit("/", 1)[-1], []).append(path)

    def of(self, named: Iterable[str]) -> frozenset[str]:
        """Give the files that are meant; what is not here is passed over."""
        return frozenset(found for name in named if (found := self._one(name)) is not None)

    def _one(self, name: str) -> str | None:
        plain = name.replace("\\", "/").removeprefix(self._folder)
        parts = [part for part in plain.split("/") if part not in {"", "."}]
        for first in range(len(parts)):
            path = "/".join(parts[first:])
            if path in self._paths:
                return path
        below = "/".join(parts)
        same = [path for path in self._named.get(parts[-1], ()) if path.endswith(f"/{below}")] if parts else []
        return same[0] if len(same) == 1 else None
