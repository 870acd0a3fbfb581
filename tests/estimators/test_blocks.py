"""Rows laid out by segment: by hand, by loops, and what a layout has to keep."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.estimators.blocks import FEWEST_ROWS, MOST_ROWS, blocks_of

# Few rows; rows of none, and segments of none; blocks of the largest size.
LAYOUTS = {
    "few": np.array([2, 0, 2, 2, 3, 2, 2]),  # 3: in none
    "sparse": np.array([5, 9, 5, 9, 1, 9] * 4),
    "one": np.zeros(24, int),
    "none": np.full(24, 9),
    "long": np.repeat([0, 1, 2, 1], [128, 200, 129, 200]),
}
SEGMENTS = {"few": 3, "sparse": 9, "one": 9, "none": 9, "long": 3}
layout_of = jax.jit(blocks_of, static_argnums=1)


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request):
    segment = LAYOUTS[request.param].astype(np.int32)
    return segment, layout_of(segment, SEGMENTS[request.param])


def test_by_hand():
    """Blocks of four: of segment 0 one, of 1 two, one to spare."""
    blocks = layout_of(jnp.array([1, 0, 1, 2, 1, 1, 1]), 2)
    assert blocks.segment.tolist()[:3] == [0, 1, 1]
    assert blocks.index.tolist()[:3] == [[1, 7, 7, 7], [0, 2, 4, 5], [6, 7, 7, 7]]
    assert (np.asarray(blocks.index)[3:] == 7).all()


def test_every_row_is_once_in_a_block_of_its_segment(layout):
    segment, blocks = layout
    number, (count, size) = len(segment), blocks.index.shape
    rows = np.asarray(blocks.index).ravel()
    kept = np.flatnonzero(segment < blocks.num_segments)
    assert sorted(rows[rows < number]) == kept.tolist()
    of = np.repeat(np.asarray(blocks.segment), size)
    np.testing.assert_array_equal(of[rows < number], segment[rows[rows < number]])
    assert FEWEST_ROWS <= size <= MOST_ROWS
    assert count == -(-number // size) + blocks.num_segments


def test_products_equal_loops_and_padding_adds_nothing(layout):
    segment, blocks = layout
    rows = np.arange(len(segment), dtype=np.float32)
    x, y = np.stack([rows % 5 - 2, rows % 3], axis=1), rows[:, None] % 7 - 3
    slow = np.zeros((blocks.num_segments, 2, 1))
    for i, s in enumerate(segment):
        if s < blocks.num_segments:
            slow[s] += np.outer(x[i], y[i])
    found = blocks.products(blocks.rows(x), blocks.rows(y))
    np.testing.assert_array_equal(found, slow)


def test_rows_come_back_where_they_were(layout):
    segment, blocks = layout
    x = np.arange(1.0, len(segment) + 1, dtype=np.float32)
    back = blocks.scattered(blocks.rows(x[:, None])[..., 0])
    np.testing.assert_array_equal(back, np.where(segment < blocks.num_segments, x, 0))


def sums(segment, rows):
    blocks = blocks_of(segment, 3)
    x = blocks.rows(rows[:, None])
    return blocks.products(x, x)[:, 0, 0]


def test_under_every_transformation(transform):
    segment, rows = LAYOUTS["few"].astype(np.int32), np.arange(7, dtype=np.float32)
    expected = [1, 0, 0 + 4 + 9 + 25 + 36]
    np.testing.assert_array_equal(transform(jax.jit(sums))(segment, rows), expected)


def test_one_trace_for_all_segments_of_a_shape():
    run, rows = jax.jit(chex.assert_max_traces(sums, n=1)), jnp.arange(7.0)
    assert run(jnp.array([0, 0, 0, 0, 0, 0, 0]), rows).tolist() == [91, 0, 0]
    assert run(jnp.array([0, 1, 2, 3, 0, 1, 2]), rows).tolist() == [16, 26, 40]
