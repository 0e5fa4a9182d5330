"""A sub-agent, with openai-agents."""

from agents import Agent, Runner

digger = Agent(name="digger", instructions="You dig.", model="gpt-5-mini")
dig = digger.as_tool(tool_name="ask_digger", tool_description="Have the digger do a task.")
lead = Agent(name="lead", instructions="You lead.", model="gpt-5-mini", tools=[dig])
print(Runner.run_sync(lead, "Find the key.").final_output)
