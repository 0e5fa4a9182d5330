"""The work in a conversation: what calls did, how they ended, and which of them later ones made pointless."""

from palaver.context.work.acts import Act, Acts, acts_of
from palaver.context.work.deeds import Deed, deed
from palaver.context.work.outcomes import Outcome, error_line, outcome

__all__ = ["Act", "Acts", "Deed", "Outcome", "acts_of", "deed", "error_line", "outcome"]
