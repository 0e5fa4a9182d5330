"""The repo map in a conversation: drawn for what its user and model are at. Needs the extra `repomap`."""

from palaver.context.repo_map.interest import Interest, interest_of
from palaver.context.repo_map.mapped import LABEL, Mapped, Maps
from palaver.context.repo_map.repo_map import RepoMap
from palaver.context.repo_map.tool import repo_map_tools

__all__ = ["LABEL", "Interest", "Mapped", "Maps", "RepoMap", "interest_of", "repo_map_tools"]
