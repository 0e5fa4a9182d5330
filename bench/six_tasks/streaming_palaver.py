"""A streamed answer, with palaver."""

from palaver import Agent, TextDelta

teller = Agent("teller", "You tell stories.", "openai/gpt-5-mini")
for event in teller.stream("Begin."):
    if isinstance(event, TextDelta):
        print(event.text, flush=True)
