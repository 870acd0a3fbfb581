"""Pools of rules as terminal tables: `jerp rules show` and `diff`.

Texts of rules are printed as texts, never as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jerp.errors import ConfigError, UnknownNameError
from jerp.runs.browse import printable
from jerp.runs.rule_pools import FoundPool
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_history import RuleEdit, RuleHistory
from jerp.storage.rule_leaks import Leak, leaks

__all__ = ["difference_table", "history_pages", "pool_table"]


def pool_table(found: FoundPool, *, task: str | None = None) -> RenderableType:
    """A row a rule, best first, and below it the pool's hash and what leaked.

    Args:
      found: the pool.
      task: a key whose rules alone are shown; None for all.

    Raises:
      UnknownNameError: there is no such key.
    """
    keys = _keys(found.document, task)
    leaked = _leaks(found)
    columns = ["score", "uses", "wins", "born", "sources", "rule"]
    columns = ["task", *columns] if task is None else columns
    table = _table(*(columns if not leaked else [*columns[:-1], "evaluated", "rule"]))
    for key in keys:
        for rule in found.document.pools[key]:
            cells = [number(rule.score), str(rule.uses), str(rule.wins)]
            cells += [str(rule.born), str(len(rule.sources))]
            cells += [_flag(leaked.get((key, rule.text)))] if leaked else []
            text = rule.text + (f" ({rule.note})" if rule.note else "")
            cells = [*([key] if task is None else []), *cells, text]
            table.add_row(*map(printable, cells))
    shown = sum(len(found.document.pools[key]) for key in keys)
    lines = [f"{counted(shown, 'rule')} of {counted(len(keys), 'task key')}"]
    lines.append(pool_hash(found.document))
    if found.evaluated is not None:
        lines.append(_leak_line(found, leaked))
    return Group(table, *map(printable, lines))


def history_pages(found: FoundPool, *, task: str | None = None) -> RenderableType:
    """What became of each rule: those of the pool first, then those that are gone.

    Args:
      found: the pool, with its ledger.
      task: a key whose rules alone are shown; None for all.

    Raises:
      ConfigError: there is no ledger.
      UnknownNameError: there is no such key.
    """
    if found.histories is None:
        raise ConfigError(
            "--history: expected the folder of a run, with its rules.jsonl; the file "
            "of a pool has no history"
        )
    leaked, lines = _leaks(found), []
    for key in _keys(found.document, task):
        rules = {rule.text: rule for rule in found.document.pools[key]}
        told = [found.histories[name] for name in found.histories if name[0] == key]
        place = {text: index for index, text in enumerate(rules)}
        told.sort(key=lambda one: (place.get(one.text, len(place)), one.rule))
        lines.append(Text(f"── {key}", "bold"))
        for history in told:
            lines += _history(history, rules.get(history.text), leaked)
    return Group(*lines)


def difference_table(before: PoolDocument, after: PoolDocument) -> Group | None:
    """The rules that were added, removed, or have another score or birth.

    Args:
      before: one pool.
      after: another.

    Returns:
      None where the same prompts would come of both, that is, their hashes are equal.
    """
    if pool_hash(before) == pool_hash(after):
        return None
    table, counts = _table("change", "task", "score", "born", "rule"), Counter()
    for key in dict.fromkeys([*before.task_keys, *after.task_keys]):
        old = {rule.text: rule for rule in before.pools.get(key, ())}
        new = {rule.text: rule for rule in after.pools.get(key, ())}
        for name, one, other in (("added", after, before), ("removed", before, after)):
            if one.pools.get(key) == () and key not in other.pools:
                counts[name] += 1
                table.add_row(name, printable(key), "", "", "(a key without rules)")
        for text in dict.fromkeys([*old, *new]):
            change = _change(old.get(text), new.get(text))
            if change:
                counts[change[0]] += 1
                table.add_row(change[0], printable(key), *change[1:], printable(text))
    if not counts:
        return Group("the order of rules of equal score and birth differs")
    names = ("added", "removed", "changed")
    return Group(table, ", ".join(f"{counts[name]} {name}" for name in names))


def number(score: float) -> str:
    """A score in as few digits as tell it from all others."""
    return str(int(score)) if score.is_integer() and abs(score) < 1e7 else repr(score)


def counted(count: int, noun: str) -> str:
    """A number and its noun, in the plural unless there is one."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _change(old: PoolRule | None, new: PoolRule | None) -> tuple[str, str, str] | None:
    """What happened to a rule, its score and its birth."""
    if old is None or new is None:
        rule = new if old is None else old
        name = "added" if old is None else "removed"
        return None if rule is None else (name, number(rule.score), str(rule.born))
    if (old.score, old.born) == (new.score, new.born):
        return None
    pairs = ((number(old.score), number(new.score)), (str(old.born), str(new.born)))
    score, born = (a if a == b else f"{a} → {b}" for a, b in pairs)
    return "changed", score, born


def _keys(document: PoolDocument, task: str | None) -> Sequence[str]:
    if task is None:
        return document.task_keys
    if task not in document.pools:
        raise UnknownNameError("task key", task, document.task_keys)
    return (task,)


def _leaks(found: FoundPool) -> dict[tuple[str, str], Leak]:
    """By key and text; of a run with a ledger, votes as well."""
    if found.evaluated is None:
        return {}
    known = [*leaks(found.histories or PoolDocument({}), found.evaluated)]
    # Last, because what a document says of its own rules counts.
    known += leaks(found.document, found.evaluated)
    return {(leak.task_key, leak.text): leak for leak in known}


def _flag(leak: Leak | None) -> str:
    """How many evaluated tasks a rule knows of, and in what way."""
    if leak is None:
        return ""
    if leak.sources:
        return f"learned from {len(leak.sources)}"
    return f"votes of {len(leak.voters)}"


def _leak_line(found: FoundPool, leaked: dict[tuple[str, str], Leak]) -> str:
    here = [
        leaked[key, rule.text]
        for key, rules in found.document.pools.items()
        for rule in rules
        if (key, rule.text) in leaked
    ]
    learned = sum(bool(leak.sources) for leak in here)
    return (
        f"evaluated tasks: {len(found.evaluated or ())}; rules learned from them: "
        f"{learned}; rules that only had their votes: {len(here) - learned}"
    )


def _history(
    history: RuleHistory, rule: PoolRule | None, leaked: dict[tuple[str, str], Leak]
) -> Iterable[Text]:
    state = "gone" if rule is None else f"score {number(rule.score)}"
    if rule is None and history.ended is not None:
        state = f"gone at step {history.ended.step} ({history.ended.op})"
    flag = _flag(leaked.get((history.task_key, history.text)))
    flag = f"  {flag} of the evaluated tasks" if flag else ""
    head = f"{history.rule}  {history.text}  {state}{flag}"
    yield Text.assemble((printable(head).plain, "bold"))
    for edit in history.writings:
        yield printable(f"    step {edit.step} {edit.op}: {edit.text}{_origin(edit)}")
    if history.votes:
        votes = Counter(edit.op for edit in history.votes)
        said = ", ".join(f"{count} {op}" for op, count in sorted(votes.items()))
        tasks = counted(len(history.voters), "task")
        yield printable(f"    votes: {said}, of {tasks}")
    if history.scores:
        series = " ".join(f"{step}:{number(score)}" for step, score in history.scores)
        yield printable(f"    scores by step: {series}")


def _origin(edit: RuleEdit) -> str:
    parts = {
        "by": edit.reflector,
        "of rules": " ".join(map(str, edit.parents)),
        "from tasks": " ".join(edit.source_tasks),
        "in episodes": " ".join(edit.source_episodes),
        "note": edit.note,
    }
    said = "; ".join(f"{name} {value}" for name, value in parts.items() if value)
    return f" ({said})" if said else ""


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        right = name in ("score", "uses", "wins", "born", "sources")
        wraps = name in ("task", "rule")
        table.add_column(name, justify="right" if right else "left", no_wrap=not wraps)
    return table
