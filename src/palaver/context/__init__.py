"""Context: which part of a conversation the model sees. Policies, the operators they are made of, and `compose`, which applies them."""

from palaver.context.compose import Composed, compose
from palaver.context.meter import Meter, Size
from palaver.context.policy import DEFAULT_POLICY, POLICIES, ContextManager, Policy, policy

__all__ = ["DEFAULT_POLICY", "POLICIES", "Composed", "ContextManager", "Meter", "Policy", "Size", "compose", "policy"]
