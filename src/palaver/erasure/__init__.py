"""Erasure: what goes with an entry, tombstones in its place, and receipts."""
