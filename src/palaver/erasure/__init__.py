"""Erasure: what goes with an entry, tombstones in its place, and receipts."""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.erasure.erase import erase, finish_erasures
    from palaver.erasure.plan import ErasurePreview, ErasureScope, preview_erasure
    from palaver.erasure.receipts import Receipt, erasing_store, verify_receipt

__all__ = [
    "ErasurePreview",
    "ErasureScope",
    "Receipt",
    "erase",
    "erasing_store",
    "finish_erasures",
    "preview_erasure",
    "verify_receipt",
]

open_door(
    __name__,
    {
        ".erase": "erase finish_erasures",
        ".plan": "ErasurePreview ErasureScope preview_erasure",
        ".receipts": "Receipt erasing_store verify_receipt",
    },
)
