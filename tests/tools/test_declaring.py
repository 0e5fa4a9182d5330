"""What a model is told of a Python function."""

from palaver.tools import Function, tool


@tool(prop_desc={"city": "The city's name."})
def weather(city: str, days: int = 3) -> str:
    """Tell the weather."""
    return f"{city}: sun for {days} days"


def test_a_function_is_declared_by_its_signature() -> None:
    """Name, docstring, types and defaults are what the model reads."""
    assert weather.to_tool() == {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tell the weather.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city's name."},
                    "days": {"type": "integer", "default": 3, "description": "(default: 3)"},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
            "strict": False,
        },
    }


def test_a_tool_is_still_the_function() -> None:
    """Calling it runs it, and it is a Function."""
    assert weather("Oslo", days=1) == "Oslo: sun for 1 days"
    assert isinstance(weather, Function)
