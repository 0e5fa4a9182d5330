"""Results as JSON."""

from __future__ import annotations

from palaver.cli.surroundings import write_line
from palaver.messages import canonical_json

__all__ = ["print_json"]


def print_json(value: object, *, aside: bool = False) -> None:
    """Print a value as one line of canonical JSON: to standard output, or, `aside`, to standard error."""
    write_line(canonical_json(value), aside=aside)
