"""Small repositories, made up: one of each language, and of any shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from palaver.tokens import counter

COUNT = counter("gpt-4o").text


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder."""
    for path, said in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(said.encode() if isinstance(said, str) else said)
    return folder


SHOP: Mapping[str, str] = {
    "README.md": "# Shop\n",
    "shop/__init__.py": "",
    "shop/money.py": 'class Money:\n    """An amount."""\n\n    def __init__(self, cents: int) -> None:\n        self.cents = cents\n\n'
    "    def plus(self, other: 'Money') -> 'Money':\n        return Money(self.cents + other.cents)\n\n\nLIMIT = Money(10)\n",
    "shop/basket.py": "from shop.money import LIMIT, Money\n\n\nclass ShoppingBasket:\n    def total_of_items(\n        self,\n        rate: int,\n"
    "    ) -> Money:\n        def inner():\n            return 1\n        return Money(inner()).plus(LIMIT)\n\n\ndef _unused():\n    pass\n",
    "shop/till.py": "from pathlib import Path\nfrom shop.basket import ShoppingBasket\nfrom shop.money import Money\n\n\n"
    "def pay(basket: ShoppingBasket) -> Money:\n    Path('x')\n    return basket.total_of_items(1).plus(Money(2))\n",
    "shop/shelf.py": "def lonely():\n    return 1\n",
}
"""A repository in Python: everything uses `Money`, `ShoppingBasket` is used once, `lonely` never."""
