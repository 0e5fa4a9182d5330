"""A sub-agent, with palaver."""

from palaver import Agent, subagent

digger = Agent("digger", "You dig.", "openai/gpt-5-mini")
lead = Agent("lead", "You lead.", "openai/gpt-5-mini", tools=[subagent(digger)])
print(lead.respond("Find the key.").content)
