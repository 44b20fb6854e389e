"""Several ways to look something up as one statement, each of them taken only if those before it gave too little."""

from __future__ import annotations

from collections.abc import Sequence

# What is not needed is planned, and not run: its condition is known before its first row is asked for.
_STEP = "tried_{number} AS MATERIALIZED (SELECT * FROM ({asked}) AS asked WHERE {in_vain})"
_IN_VAIN = "(SELECT count(*) FROM tried_{number}) < {enough}"


def one_after_the_other(asked: Sequence[str], enough: Sequence[int]) -> str:
    """The rows of these statements up to the first that gives `enough` of them; all have the same columns."""
    if len(asked) == 1:
        return asked[0]
    in_vain = [_IN_VAIN.format(number=number, enough=each) for number, each in enumerate(enough)]
    steps = [
        _STEP.format(number=number, asked=each, in_vain=" AND ".join(in_vain[:number]) or "true")
        for number, each in enumerate(asked)
    ]
    answers = [f"TABLE tried_{number}" for number in range(len(asked))]
    return f"WITH {', '.join(steps)} {' UNION ALL '.join(answers)}"
