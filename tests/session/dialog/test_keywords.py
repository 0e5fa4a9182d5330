"""A method that takes a value's fields as keywords is, to its callers, a method with those keywords."""

import inspect
from dataclasses import dataclass, fields
from functools import partial

import anyio
import pytest

from palaver.session import Dialog
from palaver.session.compaction.proposing import CompactionWish
from palaver.session.dialog.keywords import keywords_of


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is wanted.

    Attributes:
        name: Of what.
        number: How many.
    """

    name: str
    number: int = 1


class Shop:
    """Takes orders."""

    @keywords_of(Order)
    def take(self, order: Order) -> str:
        """Take an order.

        Raises:
            KeyError: It is sold out.
        """
        return f"{order.number} {order.name}"

    @keywords_of(Order)
    async def bring(self, order: Order) -> str:
        """Bring it."""
        return f"{order.number} {order.name}"


def test_the_fields_are_the_keywords() -> None:
    """Fields are given by name, defaults are the value's, and an asynchronous method stays one."""
    assert Shop().take(name="tea") == "1 tea"
    assert anyio.run(partial(Shop().bring, name="tea", number=2)) == "2 tea"


def test_other_words_are_refused() -> None:
    """A keyword that is no field, one that is missing, and what is given by position, are TypeErrors that name the value."""
    shop: object = Shop()
    for words in ({"name": "tea", "nubmer": 2}, {}):
        with pytest.raises(TypeError, match="Order"):
            getattr(shop, "take")(**words)  # noqa: B009 - the wrong words are the point
    with pytest.raises(TypeError, match="Order"):
        getattr(shop, "take")("tea")  # noqa: B009 - as above


def test_help_tells_the_fields() -> None:
    """Signature and documentation are those of the fields; what is raised stands last, as everywhere."""
    assert str(inspect.signature(Shop.take)) == "(self, *, name: str, number: int = 1) -> str"
    said = inspect.getdoc(Shop.take) or ""
    assert said.split("\n\n") == [
        "Take an order.",
        "Args:\n    name: Of what.\n    number: How many.",
        "Raises:\n    KeyError: It is sold out.",
    ]


def test_both_ways_to_compact_take_the_same() -> None:
    """What is written down once is the signature of both, each keyword described."""
    names = [each.name for each in fields(CompactionWish)]
    for method in (Dialog.compact, Dialog.acompact):
        assert list(inspect.signature(method).parameters) == ["self", *names]
        assert inspect.iscoroutinefunction(method) == (method is Dialog.acompact)
        assert all(f"    {name}: " in (method.__doc__ or "") for name in names)
