"""Evidence retention: of what a call refers to, how much the view before it still holds as content, and not as a word.

Future-reference recall (`references`) counts a name wherever it stands: a bare list of all names that were ever said has nearly all of it. Evidence
retention asks for the *evidence*: the words among which the log said the name. A reference counts as kept if the view holds

- a block that says it, as the log has it; or
- in any other text (a shortened output, a file that was brought back, a record, a summary) a *passage* of the log that says it: the name with
  what follows it or what precedes it, up to the eighth plain word, word for word and in order. White space does not count; a plain word is one that is
  no identifier.

Any place at which the log said it will do, as one of several turns that hold an answer does for `recall_any`.

Laws, each a property test (`tests/lab/test_evidence_of_calls.py`):

1. The view that leaves nothing out holds all of it.
2. A view of which nothing is left holds none of it.
3. A text of nothing but identifiers adds nothing, whatever stands between them: it has no plain word, and so no passage.
4. It is monotone: a view that shows more blocks, or more of the log's text, holds no less.
5. It is never more than future-reference recall: what counts here is in view.
6. A handle is no content. What a lookup brings back is counted beside it (`evidence_recall`), and is charged.

Source: evidence retention is what LoCoMo (task_eval/evaluation.py: the share of a question's `evidence` turns that are in the context) and LongMemEval
(arXiv 2410.10813: turns marked `has_answer`) measure for one question at the end; here a recorded call is the question, and what it refers to marks the turns.
That quoting, and not mentioning, is what shows that a text was kept: the retention gates of maf-compaction and dsh-compaction-fidelity demand distinctive
values word for word. The eight words are ours: about a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from palaver.lab.metrics.references import identifiers

__all__ = ["passages"]

_PLAIN = 8
"""Plain words of a passage."""

_PIECES = 120
"""Pieces of a passage at most: where they hold fewer plain words there is none."""

_BEHIND = 600
"""Characters in front of a name in which its passage begins."""

_PIECE = re.compile(r"\w+(?:[@./:#+-]+\w+)*|[^\w\s]")


def passages(text: str, start: int, end: int) -> Iterator[str]:
    """Return the passages of a text around a name: with what follows, and with what precedes, where there are plain words enough.

    Args:
        text: The text.
        start: Where the name begins.
        end: Where it ends.
    """
    following = _upto(piece[0] for piece in _PIECE.finditer(text, start))
    if following is not None:
        yield f">{following}"
    begin = max(start - _BEHIND, 0)
    pieces = [piece[0] for piece in _PIECE.finditer(text, begin, end)]
    preceding = _upto(reversed(pieces[1:] if begin else pieces))  # the first may have been cut in two
    if preceding is not None:
        yield f"<{preceding}"


def _upto(pieces: Iterable[str]) -> str | None:
    """Return pieces up to the last plain word that is needed; None where there are too few of them."""
    taken, plain = [], 0
    for piece in pieces:
        taken.append(piece)
        plain += _is_plain(piece)
        if plain == _PLAIN:
            return " ".join(taken)
        if len(taken) == _PIECES:
            return None
    return None


@lru_cache(maxsize=1 << 16)
def _is_plain(piece: str) -> bool:
    return (piece[0].isalnum() or piece[0] == "_") and not identifiers(piece)
