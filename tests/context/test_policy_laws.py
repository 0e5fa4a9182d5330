"""Every policy against every law, over generated conversations: a few at every change, many in the soak (tests/context/test_recorded.py has recorded ones)."""

from __future__ import annotations

from palaver.context import POLICIES, ContextManager, policy
from palaver.testing.policy_laws import PolicyLaws


def _suite(name: str) -> type[PolicyLaws]:
    def made(self: PolicyLaws) -> ContextManager:  # noqa: ARG001 - a method
        found = policy(name)
        assert found is not None
        return found

    return type(f"Test_{name.replace('-', '_')}", (PolicyLaws,), {"policy": made})


for _name in POLICIES:
    globals()[f"Test_{_name.replace('-', '_')}"] = _suite(_name)
