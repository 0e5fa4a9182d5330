"""What a notebook shows of a value: a heading and a short table, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST = 12
"""The number of rows that are shown."""

_LONGEST = 160
"""The number of characters of a cell that are shown."""


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, earlier: int = 0) -> str:
    """Return a table as HTML.

    Args:
        title: The heading.
        columns: The titles of the columns.
        rows: The cells of the rows; those after the first `MOST` are only counted.
        earlier: How many rows are left out before these.
    """
    shown = list(rows)
    later = len(shown) - MOST
    head = "".join(f"<th style='text-align:left'>{_cell(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_left(cell) for cell in row)}</tr>" for row in shown[:MOST])
    parts = [f"… {earlier:,} earlier"] * bool(earlier > 0) + [f"… {later:,} more"] * bool(later > 0)
    return f"<div><b>{_cell(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{', '.join(parts)}</div>"


def _left(cell: object) -> str:
    return f"<td style='text-align:left'>{_cell(cell)}</td>"


def _cell(value: object) -> str:
    text = " ".join(str(value)[: 4 * _LONGEST].split())
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
