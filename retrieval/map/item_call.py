"""One call of a language model for one item, outside of any transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import connection

from compaction.llm.configuration import MODELS, ModelsPolicy, chain_of
from compaction.llm.guards import guarded_client
from compaction.llm.types import ModelFailed, Prompt, Reply
from compaction.policy import CompactionPolicy
from conversations.errors import Invalid
from retrieval.map.item_prompt import item_prompt
from retrieval.map.item_queue import ItemLease

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ItemCall:
    """What a thread needs for the call; it reads no row."""

    model: str
    prompt: Prompt
    timeout_seconds: int
    # The same for the same request: a vendor that knows it may answer a repeated call without a second run.
    idempotency_key: str
    policy: ModelsPolicy

    @classmethod
    def of(cls, lease: ItemLease, policy: ModelsPolicy) -> ItemCall:
        item, run = lease.row, lease.row.run
        return cls(
            model=run.model,
            prompt=item_prompt(
                prompt=run.prompt,
                schema=run.output_schema,
                item=item.input,
                refusal=item.validation_errors,
                temperature=run.temperature,
            ),
            timeout_seconds=run.timeout_s,
            idempotency_key=f"{run.pk}:{item.position}:{item.refused_answers + 1}",
            policy=policy,
        )

    def carry_out(self) -> Reply | ModelFailed:
        """The reply, or why there is none. One call: the item's row decides on others."""
        try:
            client = guarded_client(self.model, policy=self.policy, headers={"idempotency-key": self.idempotency_key})
            endpoint = replace(client.endpoint, attempts=1, timeout_seconds=self.timeout_seconds)
            client = replace(
                client,
                endpoint=endpoint,
                before_call=_and_disconnect(client.before_call),
                after_call=_and_disconnect(client.after_call),
            )
            return client.complete(self.prompt)
        except ModelFailed as failed:
            return failed


def chosen_model(name: str, policy: ModelsPolicy | None = None) -> str:
    """The model of this name, or without one the first of the summarizers' chain.

    Invalid if it is not configured.
    """
    policy = policy or ModelsPolicy.from_settings()
    if name and name not in MODELS:
        raise Invalid(f"model: {name[:80]!r} is not one; they are {', '.join(MODELS)}.")
    chain = [each for each in chain_of(CompactionPolicy.from_settings().summarizer) if each in MODELS]
    ready = [each for each in ([name] if name else dict.fromkeys([*chain, *MODELS])) if not policy.missing(each)]
    if not ready:
        missing = ", ".join(policy.missing(name or MODELS[0]))
        raise Invalid(f"No language model is configured for this: set {missing}.", code="no_model")
    return ready[0]


def _and_disconnect(hook: Callable[P, T]) -> Callable[P, T]:
    """The hook of a thread that keeps no connection while a model answers."""

    @wraps(hook)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return hook(*args, **kwargs)
        finally:
            connection.close()

    return run
