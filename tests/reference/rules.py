"""Pools of rules in plain Python: a row is a list of slots, each None or a `Rule`.

Edits are `(op, target, new, tokens, members)` with op a word and rules named by id.
"""

import math
from dataclasses import dataclass, replace


@dataclass
class Rule:
    score: float
    id: int
    born: int
    uses: int
    wins: int
    tokens: int


TURNS = ("downvote", "upvote", "edit", "merge", "add")


def find(row, rule):
    for slot, held in enumerate(row):
        if held is not None and held.id == rule:
            return slot
    return None


def ranked(row):
    """Slots of rules, best first."""
    slots = [slot for slot, held in enumerate(row) if held is not None]
    return sorted(slots, key=lambda s: (-row[s].score, row[s].born, s))


def edited(
    row,
    edits,
    step=0,
    initial_score=2.0,
    upvote=1.0,
    downvote=1.0,
    full_downvote=3.0,
    edit_bonus=1.0,
    merge="max",
    order="expel",
    full=None,
    full_at=None,
):
    """`(row, done)`, the word of what each edit did, or None, in the order as given."""
    row = [held and replace(held) for held in row]
    held = sum(rule is not None for rule in row)
    if full is None:
        full = held >= (len(row) if full_at is None else full_at)
    turns = list(range(len(edits)))
    if order == "expel":
        turns = [i for word in TURNS for i in turns if edits[i][0] == word]
    done = [None] * len(edits)
    for i in turns:
        op, target, new, tokens, members = edits[i]
        at = find(row, target)
        if op == "downvote" and at is not None:
            row[at].score -= full_downvote if full else downvote
            done[i] = op
        if op == "upvote" and at is not None:
            row[at].score += upvote
            done[i] = op
        if op == "edit" and at is not None:
            there = find(row, new)
            if there is None:
                row[at].id, row[at].tokens = new, tokens
                row[at].score += edit_bonus
            else:
                row[there].score += upvote
            done[i] = "edit" if there is None else "upvote"
        if op == "merge":
            slots = {find(row, member) for member in members}
            if None not in slots and len(slots) > 1:
                unite(row, slots | ({find(row, new)} - {None}), new, tokens, merge)
                done[i] = op
        if op == "add" and find(row, new) is None and None in row:
            row[row.index(None)] = Rule(initial_score, new, step, 0, 0, tokens)
            done[i] = op
    return row, done


def unite(row, slots, new, tokens, merge):
    rules = [row[slot] for slot in slots]
    scores = [rule.score for rule in rules]
    for slot in slots:
        row[slot] = None
    row[min(slots)] = Rule(
        max(scores) if merge == "max" else sum(scores),
        new,
        min(rule.born for rule in rules),
        sum(rule.uses for rule in rules),
        sum(rule.wins for rule in rules),
        tokens,
    )


def pruned(row, min_score=0.0, capacity=None, token_budget=None):
    row = [
        held if held is not None and held.score > min_score else None for held in row
    ]
    order = ranked(row)
    for slot in order[capacity:]:
        row[slot] = None
    order = order[:capacity]
    if token_budget is None:
        return row
    while sum(row[slot].tokens for slot in order) > token_budget:
        priced = [slot for slot in order if row[slot].tokens]
        # The first of the least from behind.
        worst = min(reversed(priced), key=lambda s: row[s].score / row[s].tokens)
        row[worst] = None
        order.remove(worst)
    return row


def retired(row, names):
    return [None if held is not None and held.id in names else held for held in row]


def chosen(row, order, num_rules, token_budget=None):
    """Ids of the rules in the order that fit, -1 behind them."""
    found, left = [], math.inf if token_budget is None else token_budget
    for slot in order:
        if row[slot].tokens <= left and len(found) < num_rules:
            found.append(row[slot].id)
            left -= row[slot].tokens
    return found + [-1] * (num_rules - len(found))


def by_similarity(row, query, embedding):
    """Slots of rules, nearest first."""

    def cosine(slot):
        vector = [float(x) for x in embedding[row[slot].id]]
        norms = math.hypot(*map(float, query)) * math.hypot(*vector)
        dot = sum(float(x) * y for x, y in zip(query, vector, strict=True))
        return dot / norms if norms else 0.0

    return sorted(ranked(row), key=lambda s: -cosine(s))


def used(rows, tasks, working_sets, successes, valids):
    rows = [[held and replace(held) for held in row] for row in rows]
    for task, names, success, valid in zip(
        tasks, working_sets, successes, valids, strict=True
    ):
        for name in set(names):
            slot = find(rows[task], name)
            if valid and slot is not None:
                rows[task][slot].uses += 1
                rows[task][slot].wins += bool(success)
    return rows


def removal_loss(with_rule, without_rule):
    """Mean of the differences of pairs of which both are known."""
    pairs = zip(with_rule, without_rule, strict=True)
    known = [a - b for a, b in pairs if not math.isnan(a) and not math.isnan(b)]
    return sum(known) / len(known) if known else math.nan


def rule_log_probs(rows, num_rules):
    """`(mean, weight)` by rule, of rows `(log_prob of each action, follows, rule,
    weight)`: a row is a state that a rule applies to."""
    total, weighed = [0.0] * num_rules, [0.0] * num_rules
    for log_prob, follows, rule, weight in rows:
        probability = sum(
            math.exp(float(x)) for x, f in zip(log_prob, follows, strict=True) if f
        )
        total[rule] += weight * math.log(probability)
        weighed[rule] += weight
    mean = [t / w if w else math.nan for t, w in zip(total, weighed, strict=True)]
    return mean, weighed
