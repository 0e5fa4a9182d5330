"""The dialogs of an agent by name, one of them active."""

from __future__ import annotations

from difflib import get_close_matches

from palaver.errors import InvalidInput, NotFound
from palaver.session import Dialog

__all__ = ["NamedDialogs"]


class NamedDialogs:
    """Dialogs by alias.

    Attributes:
        active: The alias of the active dialog, or None.
    """

    def __init__(self, owner: str) -> None:
        self.active: str | None = None
        self._owner = owner
        self._dialogs: dict[str, Dialog] = {}

    @property
    def dialogs(self) -> dict[str, Dialog]:
        """The dialogs by alias, a copy."""
        return dict(self._dialogs)

    def __getitem__(self, alias: str | None) -> Dialog:
        """Return a dialog; the active one for None.

        Raises:
            InvalidInput: None is active.
            NotFound: There is none of this alias; the error lists the others.
        """
        if alias is None:
            if self.active is None:
                hint = "Open one, or switch to one."
                raise InvalidInput(f"The agent {self._owner!r} has no active dialog.", hint=hint)
            alias = self.active
        if alias not in self._dialogs:
            known = ", ".join(self._dialogs) or "none"
            near = get_close_matches(alias, self._dialogs)
            raise NotFound(alias, what="dialog of this agent", close=near, hint=f"It has: {known}.")
        return self._dialogs[alias]

    def require_free(self, alias: str) -> None:
        """Raise InvalidInput if an alias is in use."""
        if alias in self._dialogs:
            hint = "Switch to it, or close it."
            raise InvalidInput(f"The agent {self._owner!r} already has a dialog {alias!r}.", hint=hint)

    def add(self, alias: str, dialog: Dialog, *, switch: bool) -> None:
        """Add a dialog, and activate it where that is asked for."""
        self.require_free(alias)
        self._dialogs[alias] = dialog
        if switch:
            self.active = alias

    def activate(self, alias: str) -> None:
        """Make a dialog the active one; raises NotFound."""
        self[alias]
        self.active = alias

    def remove(self, alias: str) -> Dialog:
        """Remove an alias and return its dialog; raises NotFound."""
        dialog = self[alias]
        del self._dialogs[alias]
        self.active = None if self.active == alias else self.active
        return dialog
