"""palaver keeps the conversation state of LLM agents: the log only grows; what the model sees is computed from it."""
