"""What providers share that have their answers already: a name, a profile, and nothing to connect to."""

from __future__ import annotations

from palaver.wire import Profile, ProfileName, Request, profile

__all__ = ["Offline"]


class Offline:
    """A provider, but for its answers.

    Attributes:
        requests: The requests it got, oldest first.
    """

    def __init__(self, name: str, profile: ProfileName | Profile) -> None:
        """Take its name, and the profile that its requests are compiled with, or the profile's name."""
        self.requests: list[Request] = []
        self._name = name
        self._profile = profile

    @property
    def name(self) -> str:
        """Who it says it is."""
        return self._name

    def profile_for(self, model: str) -> Profile:
        """Give the profile that requests for a model are compiled with."""
        return profile(self._profile, model) if isinstance(self._profile, str) else self._profile

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""
