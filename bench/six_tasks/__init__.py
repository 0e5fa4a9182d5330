"""The same six tasks with palaver, pydantic-ai and openai-agents: a complete program each."""
