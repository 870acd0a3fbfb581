"""Continuous batching on the host: prompts into blocks, blocks into rows, rows to ends.

Shapes never change: a prefill computes `prefill_blocks` blocks, a decoding chunk all
`rows` rows, and finished rows are refilled between two chunks. What a request draws is
then bitwise the same whatever else is under way. How many positions a row has is a
function of the request alone: the smallest doubling of `capacity` that holds its prompt
and its `max_tokens`; requests of one capacity run together.

A batcher serves one thread at a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.blocks import Block, BlockAllocator, Held, cut_into_blocks
from jerp.bridge.rows import Job, Rows
from jerp.errors import ConfigError
from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.generate import Cache, decode, init_cache
from jerp.models.paging import BlockBatch, admit, init_pool, prefill
from jerp.typing import ArrayTree

__all__ = ["BatchShape", "Batcher"]

_ADMITTED = 8
"""Rows that one call fills."""


@dataclass(frozen=True)
class BatchShape:
    """The fixed shapes of all computation; part of an executor's fingerprint.

    Attributes:
      rows: sequences decoded together, for capacities up to twice the smallest.
      block_size: tokens of a block.
      prefill_blocks: blocks computed together.
      capacity: positions of a row in the smallest class.
      chunk: tokens drawn between two looks at what has finished.
      pool_tokens: prompt tokens kept for sharing; changes no number.
    """

    rows: int = 32
    block_size: int = 16
    prefill_blocks: int = 16
    capacity: int = 256
    chunk: int = 2
    pool_tokens: int = 16_384

    def __post_init__(self):
        if self.capacity % self.block_size:
            raise ConfigError(
                f"capacity: expected a multiple of block_size={self.block_size}, got "
                f"{self.capacity}"
            )

    @property
    def name(self) -> str:
        """All that decides the order of floating-point operations."""
        return (
            f"r{self.rows}b{self.block_size}p{self.prefill_blocks}"
            f"s{self.capacity}c{self.chunk}"
        )

    def capacity_for(self, length: int) -> int:
        """The capacity class of a request of `length` tokens in all."""
        capacity = self.capacity
        while capacity < length:
            capacity *= 2
        return capacity

    def rows_for(self, capacity: int) -> int:
        """Rows of a class: fewer where they are long, so that memory stays bounded.

        Never one of several: XLA multiplies a single bfloat16 row 20 times slower.
        """
        return min(self.rows, max(2, 2 * self.rows * self.capacity // capacity))


@dataclass(frozen=True)
class _Prepared:
    """A job whose blocks have places; they are computed once `ready_at` blocks are."""

    job: Job
    held: Held
    ready_at: int


@dataclass(frozen=True)
class _Promised:
    """A block with a place and no content yet; `table` ends with that place."""

    block: Block
    table: tuple[int, ...]


class Batcher:
    """Runs jobs to their ends in fixed shapes.

    Args:
      config: of the decoder.
      params: its variables, in the dtype of the products.
      shape: the fixed shapes.
    """

    def __init__(self, config: DecoderConfig, params: ArrayTree, shape: BatchShape):
        self._config, self._params, self._shape = config, params, shape
        pool = max(shape.pool_tokens, 2 * shape.capacity_for(config.context_length))
        self._num_blocks = pool // shape.block_size
        decoder = Decoder(config)
        self._prefill = jax.jit(partial(prefill, decoder=decoder), donate_argnums=1)
        self._admit = jax.jit(admit, donate_argnums=0)
        self._decode = jax.jit(
            partial(decode, decoder=decoder, steps=shape.chunk), donate_argnums=1
        )
        self._reset()

    def run(
        self, jobs: Iterable[Job], *, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        """Fills in the results of all jobs; stops early once `cancelled()`."""
        classes: dict[int, list[Job]] = {}
        for job in jobs:
            length = len(job.prompt) + job.max_tokens
            classes.setdefault(self._shape.capacity_for(length), []).append(job)
        try:
            for capacity, members in sorted(classes.items()):
                self._run_class(capacity, deque(members), cancelled)
        except BaseException:
            self._reset()  # donated arrays and promised blocks may be lost
            raise

    def _reset(self) -> None:
        self._allocator = BlockAllocator(self._num_blocks)
        self._pool: Cache | None = None
        self._cache: Cache | None = None
        self._capacity = 0
        self._prepared: deque[_Prepared] = deque()
        self._promised: deque[_Promised] = deque()
        self._num_promised = self._num_computed = 0

    def _run_class(
        self, capacity: int, waiting: deque[Job], cancelled: Callable[[], bool]
    ) -> None:
        self._make_room(capacity)
        rows = Rows(self._shape.rows_for(capacity))
        while waiting or self._prepared or rows.active:
            if cancelled():
                self._reset()
                return
            began = time.perf_counter()
            self._refill(rows, waiting)
            active = rows.active
            self._cache, _, *drawn = self._decode(
                self._params, self._cache, rows.start()
            )
            rows.finish(*map(np.asarray, drawn))
            for job in active:
                job.seconds += (time.perf_counter() - began) / len(active)

    def _make_room(self, capacity: int) -> None:
        """Arrays are made on first use and kept for the class used last."""
        if self._pool is None:
            self._pool = init_pool(
                self._config,
                num_blocks=self._num_blocks,
                block_size=self._shape.block_size,
            )
        if self._capacity != capacity:
            rows = self._shape.rows_for(capacity)
            self._cache = init_cache(self._config, batch_size=rows, capacity=capacity)
            self._capacity = capacity

    def _refill(self, rows: Rows, waiting: deque[Job]) -> None:
        """Fills every free row that a job waits for."""
        while (free := rows.free) and (waiting or self._prepared):
            self._look_ahead(waiting, wanted=len(free))
            soon = list(self._prepared)[: min(len(free), _ADMITTED)]
            if soon[-1].ready_at > self._num_computed:
                self._compute()
            else:
                self._move_in(rows, free[: len(soon)])

    def _look_ahead(self, waiting: deque[Job], *, wanted: int) -> None:
        """Gives places to jobs that get a row now, and to more to fill a prefill."""
        while waiting and (
            len(self._prepared) < wanted
            or len(self._promised) < self._shape.prefill_blocks
        ):
            blocks = cut_into_blocks(
                waiting[0].prompt[:-1],  # the last token is decoded, not prefilled
                block_size=self._shape.block_size,
                scope=str(self._capacity),
            )
            held = self._allocator.hold(blocks)
            if held is None:
                return
            self._promised.extend(
                _Promised(blocks[i], held.table[: i + 1]) for i in held.missing
            )
            self._num_promised += len(held.missing)
            self._prepared.append(
                _Prepared(waiting.popleft(), held, self._num_promised)
            )

    def _compute(self) -> None:
        """One prefill, of the blocks promised longest ago."""
        shape = self._shape
        count, width = shape.prefill_blocks, self._capacity // shape.block_size
        tokens = np.zeros((count, shape.block_size), np.int32)
        start = np.zeros(count, np.int32)
        place = np.full(count, self._num_blocks, np.int32)
        table = np.zeros((count, width), np.int32)
        done = min(count, len(self._promised))
        for row in range(done):
            promised = self._promised.popleft()
            block, known = promised.block, promised.table
            tokens[row, : len(block.tokens)] = block.tokens
            start[row], place[row] = block.start, known[-1]
            table[row, : len(known)] = known
        batch = BlockBatch(
            tokens=jnp.asarray(tokens),
            start=jnp.asarray(start),
            block=jnp.asarray(place),
            table=jnp.asarray(table),
        )
        self._pool = self._prefill(self._params, self._pool, batch)
        self._num_computed += done

    def _move_in(self, rows: Rows, free: list[int]) -> None:
        """Copies prompts into rows; their blocks may be given away afterwards."""
        row = np.full(_ADMITTED, self._shape.rows_for(self._capacity), np.int32)
        width = self._capacity // self._shape.block_size
        table = np.zeros((_ADMITTED, width), np.int32)
        for i, target in enumerate(free):
            prepared = self._prepared.popleft()
            row[i] = target
            table[i, : len(prepared.held.table)] = prepared.held.table
            self._allocator.release(prepared.held)
            rows.fill(target, prepared.job)
        self._cache = self._admit(
            self._cache, self._pool, jnp.asarray(row), jnp.asarray(table)
        )
