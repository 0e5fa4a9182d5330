"""Context: which part of a conversation the model is to see. Policies, the operators they are made of, and composing a view."""

from palaver.context.account import Account, Anchor, Estimate, account, estimate
from palaver.context.compose import Composed, compose
from palaver.context.fit import Fit, fit
from palaver.context.floor import floor
from palaver.context.ledger import Ledger
from palaver.context.limits import within_profile
from palaver.context.managed import Managed, Shown, planner
from palaver.context.manager import ContextManager, Policy, Viewed
from palaver.context.measure import Meter, Size
from palaver.context.policies.default import DefaultContextManager
from palaver.context.policies.fold import FoldContextManager
from palaver.context.policies.full import FullContext
from palaver.context.policies.offload import OffloadContextManager
from palaver.context.policies.scheduled import Scheduled
from palaver.context.record import Constraints, constraints
from palaver.context.registry import DEFAULT_POLICY, POLICIES, policy
from palaver.context.repo_map import RepoMap, repo_map_tools
from palaver.context.schedule.calls import Called, Calls
from palaver.context.schedule.prices import PriceSheet
from palaver.context.schedule.replay import Scheduling
from palaver.context.summary import Summarized, Summarizer, SummaryAnswer, SummaryRequest, summarized

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "Account",
    "Anchor",
    "Called",
    "Calls",
    "Composed",
    "Constraints",
    "ContextManager",
    "DefaultContextManager",
    "Estimate",
    "Fit",
    "FoldContextManager",
    "FullContext",
    "Ledger",
    "Managed",
    "Meter",
    "OffloadContextManager",
    "Policy",
    "PriceSheet",
    "RepoMap",
    "Scheduled",
    "Scheduling",
    "Shown",
    "Size",
    "Summarized",
    "Summarizer",
    "SummaryAnswer",
    "SummaryRequest",
    "Viewed",
    "account",
    "compose",
    "constraints",
    "estimate",
    "fit",
    "floor",
    "planner",
    "policy",
    "repo_map_tools",
    "summarized",
    "within_profile",
]
