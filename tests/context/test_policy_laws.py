"""The shipped laws, over every policy that comes with palaver and over plain context managers."""

from palaver.context import ContextManager, policy
from palaver.testing.policy_laws import PolicyLaws


def made(name: str) -> ContextManager:
    """Make a policy by its name."""
    found = policy(name)
    assert found is not None
    return found


class TestDefault(PolicyLaws):
    """The policy `default`."""

    def policy(self) -> ContextManager:
        """Give it."""
        return made("default")


class TestOffload(PolicyLaws):
    """The policy `offload`."""

    def policy(self) -> ContextManager:
        """Give it."""
        return made("offload")


class TestFold(PolicyLaws):
    """The policy `fold`."""

    def policy(self) -> ContextManager:
        """Give it."""
        return made("fold")
