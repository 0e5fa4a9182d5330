"""The tools of a server that others wrote, over both transports: listed, called, cancelled, killed."""

from collections.abc import Iterator

import anyio
import pytest

from palaver.messages import ToolCallContent
from palaver.tools import MCP, CallContext, Progress, Toolbox, execute
from palaver.tools.mcp import McpSession
from tests.tools import everything
from tests.tools.calling import ask, with_server

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(everything.why_missing() is not None, reason=str(everything.why_missing())),
]


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Run the server over HTTP, once for this file."""
    with everything.over_http() as url:
        yield url


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> MCP:
    """Declare the server, over each transport."""
    if request.param == "stdio":
        return everything.over_stdio()
    return MCP("everything", request.getfixturevalue("served"))


def test_the_tools_are_listed_and_called(server: MCP) -> None:
    """R113: every tool of the server is a function with the server's schema, and a call brings its answer."""

    async def work(session: McpSession) -> None:
        names = [each.name for each in session.functions]
        assert {"echo", "get-sum", "get-tiny-image"} <= set(names)
        echo = next(each for each in session.functions if each.name == "echo")
        assert echo.properties["message"]["type"] == "string"
        assert echo.metadata["mcp"]["hints"]["read_only_hint"] is True
        assert (await ask(session, "echo", message="hi")).result.text() == "Echo: hi"
        assert (await ask(session, "get-sum", a=1, b=2)).result.text() == "The sum of 1 and 2 is 3."

    with_server(server, work)


def test_images_resources_and_structured_content_are_kept(server: MCP) -> None:
    """An image comes as an image, a resource as its text, structured content beside the text."""

    async def work(session: McpSession) -> None:
        image = (await ask(session, "get-tiny-image")).result
        assert [type(part).__name__ for part in image.content] == ["TextContent", "ImageContent", "TextContent"]
        resource = (await ask(session, "get-resource-reference", resourceType="Text", resourceId=1)).result
        assert "demo://resource/dynamic/text/1" in resource.text()
        blob = (await ask(session, "get-resource-reference", resourceType="Blob", resourceId=1)).result
        assert "This is a base64 blob" in blob.text()
        links = (await ask(session, "get-resource-links", count=2)).result
        assert "[resource 'Text Resource 2' at demo://resource/dynamic/text/2" in links.text()
        weather = (await ask(session, "get-structured-content", location="Chicago")).result
        assert weather.metadata["structured"]["humidity"] == 82

    with_server(server, work)


def test_progress_reaches_the_listener(server: MCP) -> None:
    """A long operation's steps reach whoever listens."""
    heard: list[Progress] = []

    async def work(session: McpSession) -> None:
        context = CallContext(on_progress=heard.append)
        done = await ask(session, "trigger-long-running-operation", context, duration=0.2, steps=2)
        assert done.ending == "done"

    with_server(server, work)
    assert [(each.call_id, each.done, each.total) for each in heard] == [("c1", 1, 2), ("c1", 2, 2)]


def test_a_cancelled_call_leaves_the_connection(server: MCP) -> None:
    """After a call was cancelled, or timed out, the next one is answered over the same connection."""

    async def work(session: McpSession) -> None:
        connection = session._connection
        with anyio.move_on_after(0.2) as scope:
            await ask(session, "trigger-long-running-operation", duration=60, steps=2)
        assert scope.cancelled_caught
        slow = next(each for each in session.functions if each.name == "trigger-long-running-operation")
        call = ToolCallContent("c2", slow.name, args={"duration": 60, "steps": 2})
        late = await execute(Toolbox([slow.extend(timeout=0.2)]), call)
        assert late.ending == "timeout"
        assert (await ask(session, "echo", message="still there")).result.text() == "Echo: still there"
        assert session._connection is connection

    with_server(server, work)


def test_the_environment_reaches_the_program() -> None:
    """What is declared in `env` is there; this process's own variables are not, but for PATH and the like."""

    async def work(session: McpSession) -> None:
        said = (await ask(session, "get-env")).result.text()
        assert '"PALAVER_GIVEN": "yes"' in said
        assert "PYTEST_CURRENT_TEST" not in said

    with_server(everything.over_stdio(env={"PALAVER_GIVEN": "yes"}), work)
