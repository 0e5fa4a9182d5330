"""The Messages API of Anthropic: its models, its rules and its answers."""
