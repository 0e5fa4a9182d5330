"""Erasing what was written, for good and with a receipt; checking the receipt; and letting go of what is too old."""

from palaver.session.erasure.doing import ERASED_MARK, ErasurePreview, erase, finish_erasures, preview_erasure
from palaver.session.erasure.receipts import Receipt, Remaining
from palaver.session.erasure.verifying import Verdict, verify_receipt

__all__ = [
    "ERASED_MARK",
    "ErasurePreview",
    "Receipt",
    "Remaining",
    "Verdict",
    "erase",
    "finish_erasures",
    "preview_erasure",
    "verify_receipt",
]
