"""Conversations about work, for the tests of operators and presets: reading, writing, running, failing, fixing."""

from palaver.context import Meter
from palaver.context.ground import Ground, Layout, Room
from palaver.context.notice import NOTICE
from palaver.context.operators import Operator
from palaver.context.operators.forms import settled
from palaver.context.steps import plan_of
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from palaver.testing.logs import Log, user
from palaver.view import View, apply
from tests.context.helper import COUNTER, seen, size

PAGE = "\n".join(f"line {number} of some output" for number in range(200))


def did(
    call: str, name: str, args: dict[str, object], said: str = "done", *, failed: bool = False, words: str = ""
) -> list[Message]:
    """Give a call and its result."""
    contents: list[Content] = [TextContent(content=words)] if words else []
    contents.append(ToolCallContent(id=call, name=name, args=args))
    answer = ToolResultContent(id=call, content=said, name=name, is_error=failed)
    return [AssistantMessage(contents=tuple(contents)), ToolMessage.from_result(answer)]


def read(call: str, path: str, said: str = PAGE) -> list[Message]:
    """Read a file."""
    return did(call, "Read", {"file_path": path}, said)


def write(call: str, path: str, content: str = PAGE) -> list[Message]:
    """Write a file."""
    return did(call, "Write", {"file_path": path, "content": content}, f"wrote {path}")


def run(call: str, command: str, said: str = PAGE, *, failed: bool = False) -> list[Message]:
    """Run a command."""
    return did(call, "Bash", {"command": command}, said, failed=failed)


def worked(*parts: list[Message], ask: str = "Make the tests pass.") -> View:
    """Fold a conversation that begins with words of the user."""
    log = Log()
    log.put(user(ask), *(message for part in parts for message in part))
    return seen(log)


def ground_of(view: View, share: float = 0.5, *, keeps: tuple[object, ...] = ()) -> Ground:
    """Give the ground of a view with room for a share of it."""
    meter = Meter(COUNTER)
    high = int((size(view) - meter.view(view).fixed) * share)
    return Ground(view, meter, Room(high=high, low=high // 2), NOTICE, keeps)  # type: ignore[arg-type]


def whole(ground: Ground, upto: int | None = None) -> Layout:
    """Give the layout that shows everything."""
    last = len(ground.view.exchanges) - 1 if upto is None else upto
    return settled(ground, last, Layout())


def operated(view: View, operator: Operator, share: float = 0.5) -> tuple[View, Ground, Layout]:
    """Apply an operator to a whole view."""
    ground = ground_of(view, share)
    layout = operator(ground, len(view.exchanges) - 1, whole(ground))
    return apply(view, plan_of(ground, layout, "test")), ground, layout
