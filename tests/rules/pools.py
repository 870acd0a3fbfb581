"""Small pools and edits for the tests of rules, written as tables."""

import jax.numpy as jnp
import numpy as np

from jerp.rules.edits import RuleEdits
from jerp.rules.pool import RulePool

FIELDS = ("score", "rule_id", "born", "uses", "wins", "tokens")


def pool_of(*rows, capacity, garbage=False):
    """A pool of rows of `{slot: (score, rule_id, born, uses, wins, tokens)}`.

    With `garbage`, free slots hold what no rule can have.
    """
    shape = (len(rows), capacity)
    fill = (np.nan, 3, -7, 9, 9, 10**6) if garbage else (0, -1, 0, 0, 0, 0)
    arrays = {
        name: np.full(shape, value, np.float32 if name == "score" else np.int32)
        for name, value in zip(FIELDS, fill, strict=True)
    }
    active = np.zeros(shape, bool)
    for i, row in enumerate(rows):
        for slot, values in row.items():
            active[i, slot] = True
            for name, value in zip(FIELDS, values, strict=True):
                arrays[name][i, slot] = value
    return RulePool(
        active=jnp.asarray(active), **{n: jnp.asarray(x) for n, x in arrays.items()}
    )


def rows_of(pool):
    """The same tables of a pool, and nothing but zeros and -1 in its free slots."""
    arrays = {name: np.asarray(getattr(pool, name)) for name in FIELDS}
    active = np.asarray(pool.active)
    for name, x in arrays.items():
        np.testing.assert_array_equal(x[~active], -1 if name == "rule_id" else 0)
    return [
        {
            int(slot): tuple(arrays[name][i, slot].item() for name in FIELDS)
            for slot in np.flatnonzero(active[i])
        }
        for i in range(active.shape[0])
    ]


def edits_of(*edits, length=None, width=3):
    """Edits of `(op, target, rule_id, tokens, members)`; padding holds garbage."""
    length = len(edits) if length is None else length
    op, target, rule_id, tokens = (np.full(length, 77, np.int32) for _ in "abcd")
    members = np.full((length, width), 1, np.int32)
    valid = np.arange(length) < len(edits)
    for i, (o, t, r, n, m) in enumerate(edits):
        op[i], target[i], rule_id[i], tokens[i] = o, t, r, n
        members[i] = [*m, *[-1] * (width - len(m))]
    return RuleEdits(
        **{
            name: jnp.asarray(x)
            for name, x in (
                ("op", op),
                ("target", target),
                ("rule_id", rule_id),
                ("tokens", tokens),
                ("members", members),
                ("valid", valid),
            )
        }
    )
