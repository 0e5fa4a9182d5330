"""The view of a dialog after a compaction was committed, without a store.

A session commits a smaller view as one entry, and later views start from it. The lab does the same in memory: one fold of the recorded log
serves every policy, and each policy's committed view takes the place of the beginning. A test compares these views with those of a session that
commits.
"""

from __future__ import annotations

from dataclasses import replace

from palaver.view import Exchange, View

__all__ = ["CommittedView"]


class CommittedView:
    """What a policy committed of a dialog, and the views that follow from it."""

    def __init__(self) -> None:
        """Start with nothing committed."""
        self._shown: View | None = None
        self._log: View | None = None

    def view(self, log: View) -> View:
        """Return the view that a session would have.

        Args:
            log: The view of everything said so far, at the place of the commit or later.
        """
        shown, then = self._shown, self._log
        if shown is None or then is None:
            return log
        both = zip(then.exchanges, log.exchanges, strict=False)
        now = {one.first: other for one, other in both if one is not other}  # grown, answered or pinned since
        exchanges = (
            shown.exchanges if not now else tuple(_updated(each, now.get(each.first)) for each in shown.exchanges)
        )
        known = frozenset(then.omissions)
        return replace(
            log,
            exchanges=(*exchanges, *log.exchanges[len(then.exchanges) :]),
            omissions=(*shown.omissions, *(gone for gone in log.omissions if gone not in known)),
            policies=shown.policies,
            edited=max(len(shown.exchanges), log.edited),
        )

    def commit(self, view: View, log: View) -> None:
        """Commit a view.

        Args:
            view: The view, made of what `view` returned for this log.
            log: The view of everything said so far.
        """
        self._shown, self._log = view, log


def _updated(committed: Exchange, now: Exchange | None) -> Exchange:
    """Return a committed exchange as it is now: it may have grown, and keeps the form in which its blocks were committed."""
    if now is None or committed.first is None:
        return committed
    return replace(now, changes={**now.changes, **committed.changes}) if committed.changes else now
