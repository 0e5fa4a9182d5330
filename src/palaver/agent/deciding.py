"""Decisions as an agent's user makes them: by alias and call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.agent.approvals import Decision, decide, open_calls
from palaver.agent.named import NamedDialogs
from palaver.log import Handle
from palaver.messages import ToolCallContent

__all__ = ["Deciding"]


class Deciding(NamedDialogs):
    """Named dialogs in which calls may wait for a decision. Whoever decides writes beside the turn, from any thread."""

    def waiting(self, alias: str | None = None) -> tuple[ToolCallContent, ...]:
        """Give the calls that have neither a result nor a decision, and have not begun."""
        return open_calls(self._named(alias))

    def approve(self, call_id: str, alias: str | None = None, *, by: str = "") -> Handle:
        """Let a call run; the next `respond()` runs it.

        Raises:
            NotFound: No such call is open.
        """
        return decide(self._named(alias), call_id, Decision(decision="approve", by=by))

    def deny(self, call_id: str, reason: str = "", alias: str | None = None, *, by: str = "") -> Handle:
        """Refuse a call; the model is told so, with the reason.

        Raises:
            NotFound: No such call is open.
        """
        return decide(self._named(alias), call_id, Decision(decision="deny", reason=reason, by=by))

    def edit(self, call_id: str, arguments: Mapping[str, Any], alias: str | None = None, *, by: str = "") -> Handle:
        """Let a call run with other arguments; the model is told so.

        Raises:
            NotFound: No such call is open.
        """
        return decide(self._named(alias), call_id, Decision(decision="edit", arguments=arguments, by=by))
