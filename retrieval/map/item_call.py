"""Call a language model for one item, outside of any database transaction."""

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
    """All values for one call, so that the calling thread reads no database rows."""

    model: str
    prompt: Prompt
    timeout_seconds: int
    # A repeated call has the same key, so a vendor that supports such keys need not process the call twice.
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

    def call(self) -> Reply | ModelFailed:
        """Call the model once, without retries; return the reply or the failure."""
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


def chosen_model(name: str) -> str:
    """Return the model of this name or, if it is empty, the first configured model.

    Models in the chain of summarizers come first. Raises Invalid if the model is unknown, or none is configured.
    """
    policy = ModelsPolicy.from_settings()
    if name and name not in MODELS:
        raise Invalid(f"model: {name[:80]!r} is unknown; the models are {', '.join(MODELS)}.")
    chain = [each for each in chain_of(CompactionPolicy.from_settings().summarizer) if each in MODELS]
    ready = [each for each in ([name] if name else dict.fromkeys([*chain, *MODELS])) if not policy.missing(each)]
    if not ready:
        missing = ", ".join(policy.missing(name or MODELS[0]))
        raise Invalid(f"No language model is configured for this: set {missing}.", code="no_model")
    return ready[0]


def _and_disconnect(hook: Callable[P, T]) -> Callable[P, T]:
    """Wrap a hook, and close the database connection of its thread afterwards."""

    @wraps(hook)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return hook(*args, **kwargs)
        finally:
            connection.close()

    return run
