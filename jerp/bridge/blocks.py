"""Which block of the key/value pool holds which piece of which prompt.

A block is named by the hash of all tokens up to its end, so prompts that begin alike
share blocks without anybody saying so. Blocks of prompts that still wait for a decoding
row are pinned; the others are kept for as long as there is room, and the one used
longest ago goes first.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Block", "BlockAllocator", "Held", "cut_into_blocks"]


@dataclass(frozen=True)
class Block:
    """A piece of a prompt.

    Attributes:
      name: hash of `scope` and of all tokens up to the end of this block.
      start: position of the first token.
      tokens: at most a block's worth.
    """

    name: bytes
    start: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Held:
    """Blocks pinned for one prompt: `table` in order, and those not computed yet."""

    names: tuple[bytes, ...]
    table: tuple[int, ...]
    missing: tuple[int, ...]


def cut_into_blocks(
    tokens: Sequence[int], *, block_size: int, scope: str
) -> tuple[Block, ...]:
    """The blocks of a prompt; only the last may be short.

    Blocks of different `scope` are never shared.
    """
    name = hashlib.sha256(scope.encode()).digest()
    blocks = []
    for start in range(0, len(tokens), block_size):
        piece = tuple(tokens[start : start + block_size])
        name = hashlib.sha256(name + np.asarray(piece, np.int32).tobytes()).digest()
        blocks.append(Block(name, start, piece))
    return tuple(blocks)


class BlockAllocator:
    """Places of `num_blocks` blocks, least recently used ones given away first."""

    def __init__(self, num_blocks: int):
        self._free = list(range(num_blocks))[::-1]
        self._place: OrderedDict[bytes, int] = OrderedDict()  # oldest use first
        self._pins: dict[bytes, int] = {}

    def hold(self, blocks: Sequence[Block]) -> Held | None:
        """Pins all blocks of a prompt, or none and returns None if room is short.

        Indices in `missing` have a place but no content: the caller computes them
        before it reads them, and before any later prompt that shares them.
        """
        missing = [i for i, block in enumerate(blocks) if block.name not in self._place]
        present = {block.name for block in blocks} & self._place.keys()
        idle = sum(name not in self._pins for name in self._place.keys() - present)
        if len(missing) > len(self._free) + idle:
            return None
        for name in present:
            self._pin(name)
        for i in missing:
            self._place[blocks[i].name] = self._take()
            self._pin(blocks[i].name)
        for block in reversed(blocks):  # a prompt's beginning is its most shared part
            self._place.move_to_end(block.name)
        names = tuple(block.name for block in blocks)
        return Held(names, tuple(self._place[n] for n in names), tuple(missing))

    def release(self, held: Held) -> None:
        """Unpins a prompt; its blocks stay until their room is needed."""
        for name in held.names:
            self._pins[name] -= 1
            if not self._pins[name]:
                del self._pins[name]

    def _pin(self, name: bytes) -> None:
        self._pins[name] = self._pins.get(name, 0) + 1

    def _take(self) -> int:
        if self._free:
            return self._free.pop()
        oldest = next(name for name in self._place if name not in self._pins)
        return self._place.pop(oldest)
