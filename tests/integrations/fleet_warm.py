"""Load what a worker of a fleet needs, once, in the process that workers are forked from: they are killed before they could load it themselves."""

import asyncio

from palaver import Agent
from palaver.providers.scripted import ScriptedProvider
from tests.integrations.fleets import charges_everything, charging_slowly  # noqa: F401 - what workers use

asyncio.run(Agent("clerk", "Answer.", "gpt-4o", ScriptedProvider(["Done"])).arespond("Warm up."))
