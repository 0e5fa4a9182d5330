"""A sub-agent, with pydantic-ai."""

from pydantic_ai import Agent, RunContext

digger = Agent("openai:gpt-5-mini", instructions="You dig.")
lead = Agent("openai:gpt-5-mini", instructions="You lead.")


@lead.tool
async def dig(context: RunContext[object], task: str) -> str:
    """Have the digger do a task."""
    return (await digger.run(task, usage=context.usage)).output


print(lead.run_sync("Find the key.").output)
