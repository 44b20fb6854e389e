"""A made-up history of an agent at work, as long as one likes, and the same again for the same seed.

Turns of user -> (assistant calls a tool, the tool answers) x 0 to 6 -> assistant; lengths spread as in real sessions
(lognormal: half of the messages are short, a few are very long); words by Zipf's law, with topics that last for 40 to
120 messages; tool results are logs, tracebacks, JSON, diffs and listings. Every 1,009th message holds a needle: a word
that stands nowhere else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, product
from random import Random

from conversations.types import NewMessage, NewPart, PartType, Role

NEEDLE_EVERY = 1009
BEGINNING = datetime(2026, 1, 5, 9, tzinfo=UTC)

MEDIAN_CHARACTERS = 232
# As where an assistant writes pages.
MEDIAN_OF_LONG = 2_000
SPREAD = 1.3
MOST_CHARACTERS = 16_000

# How often a turn takes so many tool calls: about 2.1 on average, so that 16 % of the messages are a user's.
CALLS = (20, 22, 22, 16, 10, 6, 4)

_COMMON = (
    "the to and of a in is it that for on with this be as are we was have not but from at by or an if so they what "
    "can will when there all which do how then now also should would one out up use only more into has after new here"
)
_PREFIXES = "re un pre over sub inter out mis co de trans up fore under super non multi semi anti counter"
_STEMS = (
    "act base bind block bound build cache call cast chain change channel check class clone code commit compute "
    "config connect copy count cover cycle data date debug deploy draft drive edge edit entry event export fail fetch "
    "field file filter flag flow form frame grant group guard hash head heap host index input join key label lane "
    "layer lease level line link list load lock log loop map mark match merge mesh mode model mount move name node "
    "note number order output pack page parse part patch path place plan point pool port process prove query queue "
    "range rank rate read record render report request reserve rest role root route rule run sample scale scan schema "
    "scope seed send serve set shape shard share shift sign size slot sort source"
)
COMMON = _COMMON.split()
COMPOUNDS = [prefix + stem for stem, prefix in product(_STEMS.split(), ("", *_PREFIXES.split()))]
WORDS = tuple(dict.fromkeys([*COMMON, *COMPOUNDS]))

# Zipf-Mandelbrot: the word of rank r comes up in proportion to 1 / (r + 2.7).
WEIGHTS = tuple(accumulate(1 / (rank + 2.7) for rank in range(1, len(WORDS) + 1)))
TOPIC_WORDS = 60
SHARE_OF_TOPIC = 0.25

TOOLS = ("read_file", "run_tests", "search", "list_directory", "query_logs", "apply_patch")


@dataclass(frozen=True)
class Corpus:
    """So many messages, made as they are asked for."""

    messages: int
    seed: int = 1
    median_characters: int = MEDIAN_CHARACTERS

    def __iter__(self) -> Iterator[NewMessage]:
        writer = _Writer(Random(self.seed), self.median_characters)
        said = chain.from_iterable(_turns(writer))
        for number in range(1, self.messages + 1):
            role, part = next(said)
            if number % NEEDLE_EVERY == 0:
                part = _with_needle(part, needle(self.seed, number))
            yield NewMessage(role, parts=(part,), created_at=BEGINNING + timedelta(seconds=20 * number))


def needle(seed: int, number: int) -> str:
    """The word that only this message of this corpus holds."""
    return f"marker-{Random(seed * 1_000_003 + number).getrandbits(48):012x}"


def _with_needle(part: NewPart, word: str) -> NewPart:
    if part.tool_input is not None:
        return NewPart(**{**part.__dict__, "tool_input": {**part.tool_input, "note": word}})
    field = "text_content" if part.tool_output is None else "tool_output"
    return NewPart(**{**part.__dict__, field: f"{getattr(part, field)} {word}"})


def _turns(writer: _Writer) -> Iterator[list[tuple[Role, NewPart]]]:
    random = writer.random
    calls = 0
    while True:
        turn = [(Role.USER, _text(writer.prose(writer.length())))]
        for _ in range(random.choices(range(7), CALLS)[0]):
            calls += 1
            tool = random.choice(TOOLS)
            asked = {"path": writer.path(), "reason": writer.prose(min(400, writer.length() // 2))}
            turn.append((Role.ASSISTANT, _call(f"call_{calls:06d}", tool, asked)))
            turn.append((Role.TOOL, _result(f"call_{calls:06d}", writer.tool_output(writer.length()))))
        turn.append((Role.ASSISTANT, _text(writer.prose(writer.length()))))
        yield turn
        writer.turn_over(len(turn))


def _text(text: str) -> NewPart:
    return NewPart(PartType.TEXT, text_content=text)


def _call(call_id: str, name: str, asked: dict[str, str]) -> NewPart:
    return NewPart(PartType.TOOL, tool_call_id=call_id, tool_name=name, tool_input=asked, tool_status="pending")


def _result(call_id: str, output: str) -> NewPart:
    return NewPart(PartType.TOOL, tool_call_id=call_id, tool_output=output, tool_status="completed")


class _Writer:
    """Writes in the words of the topic at hand, and changes the topic from time to time."""

    def __init__(self, random: Random, median_characters: int) -> None:
        self.random = random
        self.median = math.log(median_characters)
        self.kinds: tuple[Callable[[], str], ...] = (self._log, self._trace, self._json, self._diff, self._listing)
        self._new_topic()

    def _new_topic(self) -> None:
        self.topic = self.random.sample(WORDS[len(COMMON) :], TOPIC_WORDS)
        self.modules = self.random.sample(self.topic, 8)
        self.messages_left = self.random.randint(40, 120)

    def turn_over(self, messages: int) -> None:
        self.messages_left -= messages
        if self.messages_left <= 0:
            self._new_topic()

    def length(self) -> int:
        characters = self.random.lognormvariate(self.median, SPREAD)
        return max(4, min(MOST_CHARACTERS, int(characters)))

    def prose(self, characters: int) -> str:
        """Sentences of about so many characters; one in six names something of the code."""
        random = self.random
        count = max(1, round(characters / 6.3))
        of_topic = int(count * SHARE_OF_TOPIC)
        words = random.choices(WORDS, cum_weights=WEIGHTS, k=count - of_topic) + random.choices(self.topic, k=of_topic)
        random.shuffle(words)
        sentences = []
        start = 0
        while start < count:
            end = start + random.randint(6, 18)
            sentence = " ".join(words[start:end])
            if random.random() < 1 / 6:
                sentence += f" in `{self.identifier()}`"
            sentences.append(sentence[:1].upper() + sentence[1:] + ".")
            start = end
        return " ".join(sentences)

    def identifier(self) -> str:
        one, other = self.random.sample(self.topic, 2)
        return self.random.choice((f"{one}_{other}", f"{one}{other.capitalize()}", f"{one}.{other}()", self.path()))

    def path(self) -> str:
        return f"src/{self.random.choice(self.modules)}/{self.random.choice(self.topic)}.py"

    def tool_output(self, characters: int) -> str:
        """Lines of one kind, until there are enough."""
        line = self.random.choice(self.kinds)
        lines: list[str] = []
        while characters > 0:
            lines.append(line())
            characters -= len(lines[-1]) + 1
        return "\n".join(lines)

    def _words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, cum_weights=WEIGHTS, k=count))

    def _log(self) -> str:
        random = self.random
        level = random.choices(("INFO", "DEBUG", "WARNING", "ERROR"), (60, 25, 10, 5))[0]
        moment = f"{random.randint(0, 23):02d}:{random.randint(0, 59):02d}:{random.randint(0, 59):02d}"
        request = f"{random.getrandbits(32):08x}"
        return f"2026-01-05T{moment}Z {level} {random.choice(self.modules)}: {self._words(6)} request={request}"

    def _trace(self) -> str:
        random = self.random
        return f'  File "{self.path()}", line {random.randint(1, 900)}, in {self.identifier()}\n    {self._words(7)}'

    def _json(self) -> str:
        random = self.random
        row = {"id": random.randint(1, 10**6), random.choice(self.topic): self._words(4), "ok": random.random() < 0.9}
        return json.dumps(row)

    def _diff(self) -> str:
        return self.random.choice("+- ") + "    " + self._words(8)

    def _listing(self) -> str:
        return f"-rw-r--r-- 1 dev dev {self.random.randint(100, 99_999):6d} Jan  5 09:00 {self.path()}"
