"""Generated sources with questions about facts in them, for the compression benchmark.

A source is a village chronicle: paragraphs of filler sentences without names and numbers, and facts between them. The
model gets the source, a question, and the beginning of its answer; the next token is the first of the answer proper.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

PEOPLE = (
    "Anna", "Ida", "Henrik", "Marta", "Oskar", "Lydia", "Jonas", "Clara", "Emil", "Rosa", "Viktor", "Elsa", "Peter",
    "Greta", "Simon", "Nora", "Felix", "Alma", "Hugo", "Vera",
)  # fmt: skip
SURNAMES = (
    "Vold", "Berg", "Lund", "Falk", "Holm", "Strand", "Moen", "Dahl", "Krog", "Sande", "Brandt", "Winter", "Thorne",
    "Marsh", "Fisher", "Hale", "Stone", "Brook", "Carver", "Reed",
)  # fmt: skip
TOWNS = (
    "Bergen", "Oslo", "Hamburg", "Lisbon", "Dublin", "Boston", "Geneva", "Naples", "Vienna", "Prague", "Cairo",
    "Madrid", "Athens", "Warsaw", "Zurich", "Lima",
)  # fmt: skip
SHIPS = (
    "Marigold", "Albatross", "Comet", "Dolphin", "Fortune", "Heron", "Juniper", "Lantern", "Meteor", "Pelican",
    "Raven", "Swallow", "Thistle", "Willow",
)  # fmt: skip
JOBS = ("baker", "teacher", "carpenter", "nurse", "sailor", "farmer", "painter", "doctor", "tailor", "miller")
ANIMALS = ("goats", "horses", "sheep", "cows", "hens", "ducks", "geese", "pigs")
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "grey")
SUBJECTS = (
    "the harbour", "the market", "the old road", "the church", "the school", "the river", "the mill", "the square",
    "the meadow", "the forest", "the bridge", "the inn",
)  # fmt: skip
STATES = ("quiet", "busy", "empty", "wet", "bright", "cold", "pleasant", "crowded", "calm", "muddy", "dusty", "warm")
TIMES = (
    "in the morning", "after the rain", "at the end of the day", "in those years", "before the winter came",
    "as it had always been", "when the wind came from the sea", "for most of the week",
)  # fmt: skip
COMMENTS = (
    "and people did not talk about it much", "and nobody was surprised by that", "as everybody could see",
    "so the children stayed inside", "and there was nothing more to say about it", "which was good for everyone",
    "because the season was long", "and that is how things were done there", "and the evening went by slowly",
)  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """A sentence of a source, and the question about it."""

    kind: str
    """The kind of the answer: town, person, number, job or colour."""
    sentence: str
    question: str
    beginning: str
    """The words that the model's answer is made to begin with, before `answer`."""
    answer: str
    """The answer proper, with a space before it unless `beginning` ends in one."""


@dataclass(frozen=True)
class QuestionSource:
    """A source and the questions about it."""

    text: str
    facts: tuple[Fact, ...]
    spans: tuple[tuple[int, int], ...]
    """For each fact, the characters [start, end) of its answer in the text, without white space."""


def sources(seed: int = 0, facts: int = 5, filler: int = 45) -> Iterator[QuestionSource]:
    """Yield sources without end, each with `facts` facts, at most 10, and `filler` filler sentences.

    The same seed gives the same sources.
    """
    number = 0
    while True:
        yield _source(random.Random(f"{seed} {number}"), facts, filler)
        number += 1


def _source(dice: random.Random, facts: int, filler: int) -> QuestionSource:
    stated = _facts(dice, facts)
    sentences = [_filler(dice) for _ in range(filler)]
    for fact in stated:
        sentences.insert(dice.randrange(len(sentences) + 1), fact.sentence)
    paragraphs = [" ".join(sentences[first : first + 8]) for first in range(0, len(sentences), 8)]
    text = "\n\n".join(paragraphs)
    return QuestionSource(text, tuple(stated), tuple(_answer_span(text, fact) for fact in stated))


def _answer_span(text: str, fact: Fact) -> tuple[int, int]:
    answer = fact.answer.strip()
    start = text.index(fact.sentence) + fact.sentence.rindex(answer)
    return start, start + len(answer)


def _filler(dice: random.Random) -> str:
    subject = dice.choice(SUBJECTS)
    sentence = f"{subject} was {dice.choice(STATES)} {dice.choice(TIMES)}, {dice.choice(COMMENTS)}."
    return sentence[0].upper() + sentence[1:]


def _facts(dice: random.Random, count: int) -> list[Fact]:
    """Return `count` facts, of the five kinds in turn; no two have the same name."""
    people = [f"{first} {last}" for first, last in zip(_shuffled(dice, PEOPLE), _shuffled(dice, SURNAMES), strict=True)]
    towns, ships = _shuffled(dice, TOWNS), _shuffled(dice, SHIPS)
    makers = (_town, _captain, _animals, _job, _door)
    return [makers[index % 5](dice, people[2 * index], towns[index], ships[index]) for index in range(count)]


def _shuffled(dice: random.Random, values: tuple[str, ...]) -> list[str]:
    return dice.sample(values, len(values))


def _town(dice: random.Random, person: str, town: str, ship: str) -> Fact:
    sentence = f"After the summer {person} moved to the town of {town}."
    return Fact("town", sentence, f"Where did {person} move?", f"{person} moved to the town of", f" {town}")


def _captain(dice: random.Random, person: str, town: str, ship: str) -> Fact:
    sentence = f"The captain of the ship {ship} was {person}."
    return Fact(
        "person", sentence, f"Who was the captain of the {ship}?", f"The captain of the ship {ship} was", f" {person}"
    )


def _animals(dice: random.Random, person: str, town: str, ship: str) -> Fact:
    number, animals = dice.randrange(20, 90), dice.choice(ANIMALS)
    sentence = f"On the farm of {person} there were {number} {animals}."
    question = f"How many {animals} were on the farm of {person}?"
    return Fact("number", sentence, question, f"On the farm of {person} there were ", f"{number}")


def _job(dice: random.Random, person: str, town: str, ship: str) -> Fact:
    job = dice.choice(JOBS)
    return Fact(
        "job", f"{person} worked as a {job}.", f"What was the work of {person}?", f"{person} worked as a", f" {job}"
    )


def _door(dice: random.Random, person: str, town: str, ship: str) -> Fact:
    colour = dice.choice(COLOURS)
    sentence = f"The door of the house of {person} was painted {colour}."
    question = f"Which colour had the door of {person}?"
    return Fact("colour", sentence, question, f"The door of the house of {person} was painted", f" {colour}")
