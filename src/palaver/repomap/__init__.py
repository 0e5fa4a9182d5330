"""The repo map: what a repository defines and which of it matters, as a text of so many tokens. Needs the extra `repomap`."""
