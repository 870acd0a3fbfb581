"""What if revisions were written from something else, or had to win against parents."""

from __future__ import annotations

from collections.abc import Iterator

from experiments.wer.ablations import ABLATION_SEEDS, ablation_folder
from experiments.wer.answers import Answers, Numbers, seed_folders
from experiments.wer.config import Sizes, WerConfig
from experiments.wer.methods import ACCEPTANCE, NONE, TESTED, WER, cell_name
from jerp.typing import Key

__all__ = ["ablation_numbers", "acceptance_numbers", "acceptance_plan"]


def ablation_numbers(
    keys: Iterator[Key], answers: Answers, config: WerConfig
) -> Numbers:
    """By what revisions are written from, success of the seeds that were trained so.

    Args:
      keys: are taken from.
      answers: of all seeds' evaluations.
      config: of a run whose jobs are done.

    Returns:
      By ablation, and for `paired`, success as of methods; `below`, what is lost
      against pairs, in all and by seed. Nothing without ablations.
    """
    names = config.trained_ablations
    if not names:
        return {}
    cell = cell_name(WER, config.sizes.rounds)
    paired = answers.first(ABLATION_SEEDS)
    found: Numbers = {
        "paired": {**paired.success(keys, cell), "by_seed": paired.by_seed(cell)},
        "none_at_all": {
            **paired.success(keys, NONE),
            "by_seed": paired.by_seed(NONE),
        },
    }
    for name in names:
        folders = seed_folders(config, ablation_folder(name))[:ABLATION_SEEDS]
        own = Answers.read(folders)
        found[name] = {
            **own.success(keys, cell),
            "by_seed": own.by_seed(cell),
            "above_paired": own.difference(keys, cell, cell, of=paired),
        }
    return found


def acceptance_numbers(
    keys: Iterator[Key], answers: Answers, config: WerConfig
) -> Numbers:
    """Revisions that replace their parents, and those that have to win against them.

    Args:
      keys: are taken from.
      answers: of all seeds' evaluations.
      config: of a run whose jobs are done.
    """
    rounds = config.sizes.rounds
    cells = {"replaced": cell_name(WER, rounds), "tested": cell_name(TESTED, rounds)}
    rules = {
        name: {
            **answers.success(keys, cell),
            "own": answers.own(keys, cell),
            "by_seed": answers.by_seed(cell),
            "cost": answers.cost(cell),
        }
        for name, cell in cells.items()
    }
    gain = answers.difference(keys, cells["tested"], cells["replaced"])
    return {
        "rules": rules,
        "tested_above": gain,
        "plan": acceptance_plan(config.sizes),
    }


def acceptance_plan(sizes: Sizes) -> Numbers:
    """What tests may take, before any is begun.

    Returns:
      `tests`, of a seed at most; `first` and `last`, pairs that the first and the last
      of them may take, None for one that would not be begun; `runs`, of the executor
      for all of them at most.
    """
    number = sizes.refinement * sizes.rounds
    pairs = [ACCEPTANCE.cap(i + 1) for i in range(number)]
    return {
        "tests": number,
        "first": pairs[0],
        "last": pairs[-1],
        "runs": 2 * sum(one or 0 for one in pairs),
        "alpha": ACCEPTANCE.alpha,
        "p_gain": ACCEPTANCE.p_gain,
        "p_loss": ACCEPTANCE.p_loss,
        "power": ACCEPTANCE.power,
    }
