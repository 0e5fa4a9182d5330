"""A session that its provider refuses for good: the block is found by the refusal, set aside, and the turn is answered."""

import pytest

from palaver.errors import ModelCallFailed, RequestRefused
from palaver.messages import AssistantMessage
from palaver.wire import Request
from tests.agent.helper import scripted

POISON = "poison-in-here"


def test_a_session_that_is_refused_for_good_goes_on_when_the_block_is_set_aside() -> None:
    """A provider answers 400 to every request with the block: the turn fails typed, the block is found and set aside, the turn is answered."""

    def refuses(request: Request) -> object:
        for index, message in enumerate(request.body["messages"]):
            if POISON in str(message):
                said = f"Error code: 400 - messages.[{index}].content: Invalid value"
                return RequestRefused(said.replace(".[", "["), status=400)
        return "Fine."

    agent, provider = scripted(refuses)
    agent.current_dialog.put_text(f"Read this: {POISON}")
    agent.current_dialog.append(AssistantMessage(content="I have."))
    errors: list[str] = []
    for _ in range(2):  # it stays refused
        agent.receive("And now?")
        with pytest.raises(ModelCallFailed) as refused:
            agent.respond()
        errors.append(str(refused.value.error))
    dialog = agent.current_dialog
    place = dialog.blamed(provider.requests[-1], errors[-1])
    assert place is not None
    dialog.quarantine(place, errors[-1])
    assert agent.respond().content == "Fine."
    assert POISON in str(dialog.recall(place))
