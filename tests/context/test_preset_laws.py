"""The shipped laws, over every preset."""

from palaver.context import ContextManager
from palaver.context.presets import (
    CAT,
    LLLM,
    PRESETS,
    Aider,
    ClaudeCode,
    Dynamiq,
    Letta,
    Manus,
    OpenCode,
    OpenCodeDCP,
    OpenHands,
    Palaver,
    Pi,
    SWEAgent,
)
from palaver.testing.policy_laws import PolicyLaws


class TestPalaver(PolicyLaws):
    """Ours."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Palaver()


class TestOpenHands(PolicyLaws):
    """With a size that short conversations reach."""

    def policy(self) -> ContextManager:
        """Give it."""
        return OpenHands(max_size=12)


class TestClaudeCode(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return ClaudeCode()


class TestManus(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Manus()


class TestOpenCode(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return OpenCode()


class TestOpenCodeDCP(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return OpenCodeDCP()


class TestAider(PolicyLaws):
    """With a history that short conversations reach."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Aider(history=600)


class TestSWEAgent(PolicyLaws):
    """With outputs that short conversations have."""

    def policy(self) -> ContextManager:
        """Give it."""
        return SWEAgent(n=2, polling=2, largest=10_000)


class TestCAT(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return CAT()


class TestLetta(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Letta()


class TestDynamiq(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Dynamiq()


class TestLLLM(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return LLLM()


class TestPi(PolicyLaws):
    """With its own constants."""

    def policy(self) -> ContextManager:
        """Give it."""
        return Pi()


def test_no_preset_is_forgotten() -> None:
    """Every preset has its laws here."""
    held = {type(case().policy()) for case in PolicyLaws.__subclasses__() if case.__module__ == __name__}
    assert held == set(PRESETS)
