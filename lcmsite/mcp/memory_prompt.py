"""The prompt that teaches an agent how to remember: find, understand, open."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mcp_types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

LOOKUP = "lcm_lookup"
TEMPLATES = Path(__file__).resolve().parents[2] / "templates" / "mcp"

PROMPTS = (
    Prompt(
        name=LOOKUP,
        title="Look it up",
        description="How to find what was said: grep, then describe, then expand.",
        arguments=[
            PromptArgument(name="question", description="What is to be found out."),
            PromptArgument(name="conversation", description="Where to look: a conversation's number, or its session."),
        ],
    ),
)


def lookup(*, question: str = "", conversation: str = "") -> GetPromptResult:
    """The lesson, and, when it is said, what to apply it to."""
    wanted = [f"The question: {question}"] if question else []
    wanted += [f"The conversation: {conversation}"] if conversation else []
    text = "\n\n".join([_lesson(), *wanted])
    return GetPromptResult(
        description=PROMPTS[0].description,
        messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))],
    )


@cache
def _lesson() -> str:
    return (TEMPLATES / "lookup.txt").read_text().strip()
