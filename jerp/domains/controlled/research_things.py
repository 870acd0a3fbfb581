"""Things of an invented country, and what is asked and said of them.

Every text is this project's own. A thing (`Noun`) has four relations; a relation is
asked by one question and stated in two ways: `plain` shares the question's words,
`other` says the same in different words. `{s}` stands for the subject, `{v}` for the
value. Names and the words that are values are in `research_world`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["NOUNS", "Kind", "Noun", "Relation"]

Kind = Literal["year", "number", "name", "word"]


class Relation(NamedTuple):
    """One attribute. `values` names a list of the words; empty for other kinds."""

    kind: Kind
    values: str
    question: str
    plain: str
    other: str


class Noun(NamedTuple):
    """One sort of thing and its relations."""

    noun: str
    relations: tuple[Relation, Relation, Relation, Relation]


NOUNS = (
    Noun(
        "Lighthouse",
        (
            Relation(
                *("year", "", "In which year was {s} first lit?"),
                *("{s} was first lit in {v}.", "The beam of {s} shone from {v} on."),
            ),
            Relation(
                *("word", "stone", "What is the tower of {s} made of?"),
                "The tower of {s} is made of {v}.",
                "Masons raised {s} from blocks of {v}.",
            ),
            Relation(
                *("number", "", "How many metres tall is {s}?"),
                "{s} is {v} metres tall.",
                "{s} rises {v} metres above the rocks.",
            ),
            Relation(
                *("name", "", "Who was the keeper of {s}?"),
                "The keeper of {s} was {v}.",
                "{v} tended the lamp at {s}.",
            ),
        ),
    ),
    Noun(
        "Bridge",
        (
            Relation(
                *("year", "", "In which year was {s} opened?"),
                *("{s} was opened in {v}.", "The first carts rolled over {s} in {v}."),
            ),
            Relation(
                *("word", "colour", "Which colour is {s} painted?"),
                "{s} is painted {v}.",
                "The railings of {s} are a bright {v}.",
            ),
            Relation(
                *("number", "", "How many arches does {s} have?"),
                "{s} has {v} arches.",
                "{s} crosses the river in {v} spans.",
            ),
            Relation(
                *("name", "", "Who designed {s}?"),
                "{s} was designed by {v}.",
                "{v} drew the plans for {s}.",
            ),
        ),
    ),
    Noun(
        "Observatory",
        (
            Relation(
                *("year", "", "In which year was {s} founded?"),
                *("{s} was founded in {v}.", "Work at {s} began in {v}."),
            ),
            Relation(
                *("word", "metal", "Which metal covers the dome of {s}?"),
                "The metal that covers the dome of {s} is {v}.",
                "The roof of {s} is sheathed in {v}.",
            ),
            Relation(
                *("number", "", "How many telescopes does {s} own?"),
                "{s} owns {v} telescopes.",
                "Astronomers at {s} look through {v} instruments.",
            ),
            Relation(
                *("name", "", "Who was the director of {s}?"),
                "The director of {s} was {v}.",
                "{v} was in charge of {s}.",
            ),
        ),
    ),
    Noun(
        "Expedition",
        (
            Relation(
                *("year", "", "In which year did the {s} set out?"),
                "The {s} set out in {v}.",
                "The {s} left the harbour in {v}.",
            ),
            Relation(
                *("word", "good", "What did the {s} bring home?"),
                "The {s} brought home {v}.",
                "The {s} came back loaded with {v}.",
            ),
            Relation(
                *("number", "", "How many sledges did the {s} take?"),
                "The {s} took {v} sledges.",
                "Dogs of the {s} pulled {v} loads over the ice.",
            ),
            Relation(
                *("name", "", "Who was the leader of the {s}?"),
                "The leader of the {s} was {v}.",
                "{v} commanded the {s}.",
            ),
        ),
    ),
    Noun(
        "Pottery",
        (
            Relation(
                *("year", "", "In which year did {s} fire its first kiln?"),
                "{s} fired its first kiln in {v}.",
                "The workshop of {s} was in business from {v}.",
            ),
            Relation(
                *("word", "colour", "Which colour is the glaze of {s}?"),
                "The colour of the glaze of {s} is {v}.",
                "Bowls from {s} are known for their shiny {v}.",
            ),
            Relation(
                *("number", "", "How many potters work at {s}?"),
                "At {s} work {v} potters.",
                "{s} gives wages to {v} people at the wheel.",
            ),
            Relation(
                *("name", "", "Who was the master of {s}?"),
                "The master of {s} was {v}.",
                "{v} ran the workshop of {s}.",
            ),
        ),
    ),
    Noun(
        "Organ",
        (
            Relation(
                *("year", "", "In which year was the {s} first played?"),
                "The {s} was first played in {v}.",
                "Music of the {s} sounded from {v} on.",
            ),
            Relation(
                *("word", "wood", "Which wood is the case of the {s} made of?"),
                "The case of the {s} is made of {v} wood.",
                "Carpenters cut the front of the {s} from {v}.",
            ),
            Relation(
                *("number", "", "How many pipes does the {s} have?"),
                "The {s} has {v} pipes.",
                "Air flows through {v} tubes in the {s}.",
            ),
            Relation(
                *("name", "", "Who built the {s}?"),
                "The {s} was built by {v}.",
                "{v} made the {s} by hand.",
            ),
        ),
    ),
    Noun(
        "Ferry",
        (
            Relation(
                *("year", "", "In which year did the {s} first sail?"),
                "The {s} first sailed in {v}.",
                "The maiden trip of the {s} was in {v}.",
            ),
            Relation(
                *("word", "wood", "Which wood is the hull of the {s} made of?"),
                "The hull of the {s} is made of {v} wood.",
                "Planks of {v} keep the {s} afloat.",
            ),
            Relation(
                *("number", "", "How many seats does the {s} have?"),
                "The {s} has {v} seats.",
                "Up to {v} people sit on the {s}.",
            ),
            Relation(
                *("name", "", "Who was the captain of the {s}?"),
                "The captain of the {s} was {v}.",
                "{v} steered the {s}.",
            ),
        ),
    ),
    Noun(
        "Library",
        (
            Relation(
                *("year", "", "In which year was {s} opened?"),
                *("{s} was opened in {v}.", "The first readers entered {s} in {v}."),
            ),
            Relation(
                *("word", "animal", "Which animal is on the seal of {s}?"),
                "The animal on the seal of {s} is the {v}.",
                "Books of {s} are stamped with the image of a {v}.",
            ),
            Relation(
                *("number", "", "How many maps does {s} hold?"),
                "{s} holds {v} maps.",
                "In the drawers of {s} lie {v} charts.",
            ),
            Relation(
                *("name", "", "Who paid for {s}?"),
                "{v} paid for {s}.",
                "{s} was a gift of {v}.",
            ),
        ),
    ),
    Noun(
        "Festival",
        (
            Relation(
                *("year", "", "In which year was the {s} first held?"),
                "The {s} was first held in {v}.",
                "People have danced at the {s} since {v}.",
            ),
            Relation(
                *("word", "dish", "What do people eat at the {s}?"),
                "At the {s} people eat {v}.",
                "Cooks at the {s} serve {v}.",
            ),
            Relation(
                *("number", "", "How many days does the {s} last?"),
                "The {s} lasts {v} days.",
                "The {s} goes on for {v} nights.",
            ),
            Relation(
                *("name", "", "Who started the {s}?"),
                "The {s} was started by {v}.",
                "{v} had the idea of the {s}.",
            ),
        ),
    ),
    Noun(
        "Mill",
        (
            Relation(
                *("year", "", "In which year did {s} begin to turn?"),
                "{s} began to turn in {v}.",
                "The wheel of {s} was set going in {v}.",
            ),
            Relation(
                *("word", "stone", "Which stone is the millstone of {s} made of?"),
                "The millstone of {s} is made of {v}.",
                "Grain at {s} is ground on {v}.",
            ),
            Relation(
                *("number", "", "How many sacks does {s} grind in a day?"),
                "In a day {s} grinds {v} sacks.",
                "{s} turns out {v} bags of flour daily.",
            ),
            Relation(
                *("name", "", "Who was the miller of {s}?"),
                "The miller of {s} was {v}.",
                "{v} ground the grain at {s}.",
            ),
        ),
    ),
)
