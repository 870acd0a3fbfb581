"""Games of TextWorld's engine: what counts as known, what never reaches them."""

import pytest

from jerp.domains.commands import command
from jerp.domains.text_games import TextGame


class World:
    """Three moves win, `fall` loses; told as the engine tells."""

    def __init__(self):
        self.given, self.moves, self.closed = [], 0, False

    def reset(self):
        return self.tell(" Begin.\n")

    def step(self, line):
        self.given.append(line)
        self.moves += line in ("move", "fall")
        told = self.tell(f" You {line}.\n", lost=line == "fall")
        return told, 0, told["won"]

    def tell(self, text, *, lost=False):
        return {
            **{"feedback": text, "moves": self.moves, "lost": lost},
            **{"score": 2 * self.moves, "max_score": 6, "won": self.moves == 3},
            "admissible_commands": ["move", "fall"],
        }

    def close(self):
        self.closed = True


def test_an_episode_by_hand():
    world = World()
    played = TextGame(world, max_steps=10).session("Move.", world.close)
    assert played.opening == "Move." and played.admissible == ("move", "fall")
    moved, unknown = played.move(command("move")), played.move(command("fly"))
    assert (moved.text, moved.error) == ("You move.", False)
    assert (unknown.text, unknown.error) == ("You fly.", True)
    assert not played.move(command("help")).error
    assert played.score().score == pytest.approx(1 / 3)
    played.move(command("move"))
    won = played.move(command("move"))
    assert won.ended and played.score().success and played.score().score == 1
    played.close()
    assert world.closed


def test_the_end_comes_by_loss_and_by_steps():
    lost = TextGame(World(), max_steps=10).session("", list)
    assert lost.move(command("fall")).ended and not lost.score().success
    late = TextGame(World(), max_steps=2).session("", list)
    assert not late.move(command("move")).ended
    assert late.move(command("save")).ended and not late.score().success


@pytest.mark.parametrize(
    "line", ["save", "QUIT", "script on", "look. restore", "tw-print x", "undo; look"]
)
def test_what_is_for_the_interpreter_never_reaches_the_game(line):
    world = World()
    played = TextGame(world, max_steps=10).session("", world.close)
    reply = played.move(command(line))
    assert reply.error and reply.text == "That is no command of the game."
    assert world.given == []
