"""Which budgets k and T a surface has, where the settings leave it open.

A choice that leaves something out, or that cannot show anything new, is noted in words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jerp.errors import ConfigError, InputError
from jerp.readers.outcomes import OutcomeTable, SampleArrays
from jerp.runs.pass_surface.agents import Agent, counted
from jerp.runs.pass_surface.precision import as_written
from jerp.runs.pass_surface.settings import PassktSettings, number_text
from jerp.typing import Outcome

__all__ = ["at_horizons", "chosen_ks", "nested_horizons", "rerun_horizons"]

MOST_HORIZONS = 6
"""As many as a figure can tell apart."""

NO_LIMIT = 2**31 - 1


def nested_horizons(
    settings: PassktSettings,
    tables: Sequence[OutcomeTable],
    agents: Sequence[Agent],
    notes: list[str],
) -> tuple[float, ...]:
    """The chosen horizons, or values of `spent`; notes what they cannot show.

    Raises:
      InputError: the infrastructure let no run finish.
    """
    spent = np.sort(
        np.concatenate(
            [_valid_spent(*each) for each in zip(tables, agents, strict=True)]
        )
    )
    if not len(spent):
        raise InputError("every run is infrastructure: there is nothing to estimate")
    largest = float(spent[-1])
    chosen = settings.chosen_horizons
    if chosen is None:
        chosen = tuple(_spread(spent, notes).tolist())
    beyond = [number_text(t) for t in chosen if t > largest]
    if beyond:
        notes.append(
            f"T = {', '.join(beyond)}: no run spent more than {number_text(largest)} "
            f"{settings.unit}, so nothing can differ from T = {number_text(largest)}"
        )
    _note_truncated(agents, chosen[-1], settings.unit, notes)
    return chosen


def _valid_spent(table: OutcomeTable, agent: Agent) -> np.ndarray:
    """What the agent's valid runs spent, as the file has it: float32 merges values."""
    alone = np.isin(np.array(table.tasks), agent.alone)
    valid = (table.outcome != Outcome.INFRASTRUCTURE) & ~alone[table.task_id]
    return as_written(table.spent[valid])


def _spread(spent: np.ndarray, notes: list[str]) -> np.ndarray:
    """All distinct values, or six: quantiles, and others where ties leave fewer."""
    values = np.unique(spent)
    if len(values) <= MOST_HORIZONS:
        return values
    share = np.arange(1, MOST_HORIZONS + 1) / MOST_HORIZONS
    kept = np.unique(np.quantile(spent, share, method="inverted_cdf"))
    made = f"{len(kept)} quantiles"
    if missing := MOST_HORIZONS - len(kept):
        others = np.setdiff1d(values, kept)
        middle = (np.arange(missing) + 0.5) / missing * len(others)
        kept = np.union1d(kept, others[middle.astype(int)])
        made += f", and {missing} more,"
    notes.append(
        f"horizons: {made} of the {len(values)} distinct values of spent; --horizons "
        "chooses others"
    )
    return kept


def _note_truncated(
    agents: Sequence[Agent], largest: float, unit: str, notes: list[str]
) -> None:
    """Notes runs that were cut short of the largest T: more might have saved them."""
    for agent in agents:
        spent, outcome, mask, _ = agent.runs
        early = mask & (outcome == Outcome.TRUNCATED) & (spent < np.float32(largest))
        if early.any():
            notes.append(
                f"{agent.label}: {counted(int(early.sum()), 'run')} truncated before "
                f"T = {number_text(largest)} {unit}, taken as failed; with that much "
                "some might have succeeded"
            )


def rerun_horizons(
    settings: PassktSettings, agents: Sequence[Agent], notes: list[str]
) -> tuple[float, ...]:
    """The chosen horizons, or all that the files have in common.

    Raises:
      InputError: they have none in common.
      ConfigError: a chosen one is not in the files.
    """
    each = [set(agent.runs.horizons or ()) for agent in agents]
    common = sorted(set.intersection(*each))
    if not common:
        raise InputError(
            "no horizon is in both files: "
            + "; ".join(
                f"{a.label} has {', '.join(map(number_text, sorted(h)))}"
                for a, h in zip(agents, each, strict=True)
            )
        )
    chosen = settings.chosen_horizons
    if chosen is None:
        if lost := sorted(set.union(*each) - set(common)):
            notes.append(
                f"T = {', '.join(map(number_text, lost))}: in one file only, left out"
            )
        return tuple(common)
    if unknown := [t for t in chosen if t not in common]:
        raise ConfigError(
            f"--horizons: expected values of the column horizon, "
            f"{', '.join(map(number_text, common))}, got {number_text(unknown[0])}"
        )
    return chosen


def at_horizons(agent: Agent, horizons: Sequence[float]) -> Agent:
    """The agent's runs at these horizons only."""
    own = agent.runs.horizons or ()
    at = [own.index(t) for t in horizons]
    spent, outcome, mask = (x[at] for x in agent.runs[:3])
    return Agent(
        agent.label, SampleArrays(spent, outcome, mask, tuple(horizons)), agent.alone
    )


def chosen_ks(
    settings: PassktSettings,
    agents: Sequence[Agent],
    tasks: Sequence[str],
    notes: list[str],
) -> tuple[int, ...]:
    """The chosen budgets, or powers of two up to the fewest valid samples, and these.

    Tasks that are refused for their coverage do not count here.

    Raises:
      ConfigError: a chosen budget is larger than any task's number of samples.
    """
    if (chosen := settings.chosen_ks) is not None:
        for agent in agents:
            if chosen[-1] > (most := agent.runs.mask.shape[-1]):
                raise ConfigError(
                    f"--ks: expected at most {most}, the most samples of a task in "
                    f"{agent.label}, got {chosen[-1]}; more samples are needed"
                )
        return chosen
    fewest = np.minimum.reduce([_fewest_valid(agent, settings) for agent in agents])
    smallest = int(fewest.min())
    if smallest == NO_LIMIT:
        return (1,)  # Every task is refused; the surfaces say so.
    most = max(int(agent.valid.sum(-1).max()) for agent in agents)
    if smallest < most:
        notes.append(
            f"k ends at {smallest}, the valid samples of task "
            f"{tasks[int(fewest.argmin())]!r}; other tasks have up to {most}. With "
            "larger --ks the tasks that have fewer are left out"
        )
    powers = (2**i for i in range(smallest.bit_length()))
    return tuple(dict.fromkeys((*powers, smallest)))


def _fewest_valid(agent: Agent, settings: PassktSettings) -> np.ndarray:
    """Valid samples of each task, at the horizon with fewest; NO_LIMIT if refused."""
    number = agent.runs.mask.sum(-1)
    number = number.reshape(-1, number.shape[-1])
    valid = agent.valid.sum(-1).reshape(number.shape)
    share = valid.astype(np.float32) / np.maximum(number, 1).astype(np.float32)
    covered = (number > 0) & (share >= np.float32(settings.min_coverage)) & (valid > 0)
    return np.where(covered.all(0), valid.min(0), NO_LIMIT)
