"""Fields of a request to the Gemini API (POST /v1beta/models/MODEL:generateContent).

After ai.google.dev/api/generate-content and the types of the ``google-genai`` package 3.4, in the camel case of
JSON. The API reads the same names in snake case too; palaver writes camel case and reads nothing else. The model stands in
the address, and may stand in the body as well.
"""

from __future__ import annotations

from typing import Final

from palaver.wire.check.shape import ANY, FLAG, TEXT, Choice, Fields, Items, Kinds, Maybe, Number, Shape
from palaver.wire.violations import Rule

__all__ = ["DATA_FIELDS", "REQUEST"]

_OPEN = Fields(open=True)

_BLOB = Fields({"mimeType": TEXT, "data": TEXT}, {"displayName": TEXT})
_FILE = Fields({"fileUri": TEXT}, {"mimeType": TEXT, "displayName": TEXT})
_CALL = Fields({"name": TEXT}, {"id": TEXT, "args": ANY})  # that args are an object is a rule of its own
_RESPONSE_PART = Fields(optional={"inlineData": _BLOB, "fileData": _FILE})
_RESPONSE = Fields(
    {"name": TEXT, "response": _OPEN},
    {"id": TEXT, "parts": Items(_RESPONSE_PART), "willContinue": FLAG, "scheduling": TEXT},
)

# A part has exactly one of these.
DATA_FIELDS: Final[dict[str, Shape]] = {
    "text": TEXT,
    "inlineData": _BLOB,
    "fileData": _FILE,
    "functionCall": _CALL,
    "functionResponse": _RESPONSE,
    "executableCode": _OPEN,
    "codeExecutionResult": _OPEN,
    "toolCall": _OPEN,
    "toolResponse": _OPEN,
}
_PART = Fields(
    optional={
        **DATA_FIELDS,
        "thought": FLAG,
        "thoughtSignature": TEXT,
        "partMetadata": _OPEN,
        "videoMetadata": _OPEN,
        "mediaResolution": _OPEN,
        "mediaProcessing": ANY,
        "speechMetadata": _OPEN,
        "documentMetadata": _OPEN,
        "spreadsheetMetadata": _OPEN,
        "audioMetadata": _OPEN,
    }
)


def _content(role: str) -> Fields:
    return Fields({"parts": Items(_PART)}, {"role": Choice((role,))})


_CONTENT = Kinds(
    {"user": _content("user"), "model": _content("model")}, key="role", default="user", rule=Rule.ROLE_UNKNOWN
)

_DECLARATION = Fields(
    {"name": TEXT},
    {
        "description": TEXT,
        "parameters": _OPEN,
        "parametersJsonSchema": _OPEN,
        "response": _OPEN,
        "responseJsonSchema": _OPEN,
        "behavior": Choice(("UNSPECIFIED", "BLOCKING", "NON_BLOCKING")),
    },
)
_TOOL = Fields(
    optional={
        "functionDeclarations": Items(_DECLARATION),
        "codeExecution": _OPEN,
        "computerUse": _OPEN,
        "fileSearch": _OPEN,
        "googleMaps": _OPEN,
        "googleSearch": _OPEN,
        "googleSearchRetrieval": _OPEN,
        "mcpServers": ANY,
        "urlContext": _OPEN,
    }
)
_CALLING = Fields(
    optional={
        "mode": Choice(("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")),
        "allowedFunctionNames": Items(TEXT),
    }
)
_THINKING = Fields(
    optional={
        "includeThoughts": FLAG,
        "thinkingBudget": Number(-1, whole=True),
        "thinkingLevel": Choice(
            (
                "THINKING_LEVEL_UNSPECIFIED",
                *(level for word in ("minimal", "low", "medium", "high") for level in (word, word.upper())),
            )
        ),
    }
)
_GENERATION = Fields(
    optional={
        "audioTimestamp": FLAG,
        "candidateCount": Number(1, whole=True),
        "enableEnhancedCivicAnswers": FLAG,
        "frequencyPenalty": Number(),
        "imageConfig": _OPEN,
        "logprobs": Number(0, 20, whole=True),
        "maxOutputTokens": Number(1, whole=True),
        "mediaResolution": TEXT,
        "presencePenalty": Number(),
        "responseJsonSchema": _OPEN,
        "responseLogprobs": FLAG,
        "responseMimeType": TEXT,
        "responseModalities": Items(TEXT),
        "responseSchema": _OPEN,
        "seed": Number(whole=True),
        "speechConfig": _OPEN,
        "stopSequences": Items(TEXT, 0, 5),
        "temperature": Number(0, 2),
        "thinkingConfig": _THINKING,
        "topK": Number(),
        "topP": Number(),
    }
)

REQUEST: Final = Fields(
    {"contents": Items(_CONTENT, 1)},
    {
        "cachedContent": TEXT,
        "generationConfig": _GENERATION,
        "model": TEXT,
        "safetySettings": Items(_OPEN),
        "serviceTier": Maybe(TEXT),
        "store": FLAG,
        "systemInstruction": Fields({"parts": Items(_PART, 1)}, {"role": TEXT}),
        "toolConfig": Fields(
            optional={
                "functionCallingConfig": _CALLING,
                "retrievalConfig": _OPEN,
                "includeServerSideToolInvocations": FLAG,
            }
        ),
        "tools": Items(_TOOL),
    },
)
