"""Context: which part of a conversation the model sees. Policies, the operators they are made of, and `compose`, which applies them."""

from palaver.context.compose import Composed, Policy, compose
from palaver.context.manager import ContextManager, WorkingDialog
from palaver.context.meter import Meter, Size
from palaver.context.policy import DEFAULT_POLICY, POLICIES, policy, require_policy

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "Composed",
    "ContextManager",
    "Meter",
    "Policy",
    "Size",
    "WorkingDialog",
    "compose",
    "policy",
    "require_policy",
]
