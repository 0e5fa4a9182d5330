"""OpenAI: the Responses API, and chat completions of OpenAI and of other servers."""
