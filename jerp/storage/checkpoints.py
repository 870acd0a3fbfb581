"""Checkpoints of training: any pytree of arrays, typed keys among them, through Orbax.

A checkpoint is complete or absent, also where several processes write it together. What
is restored equals what was saved to the bit; a checkpoint of other shapes or settings
is refused and the field named. A JSON document may lie beside the arrays, in the same
checkpoint: both are there, or neither. A digest of the arrays tells one that a disk has
changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import numpy as np

from jerp.errors import StorageError
from jerp.storage.atomic import make_folder
from jerp.storage.documents import plain

__all__ = ["Checkpoints"]


class Checkpoints:
    """The checkpoints of one run in one folder; a context manager.

    Args:
      folder: absent, or of the same run.
      keep: how many of the newest stay; None for all.
      config: settings of the run by name, in short texts; one with others is refused.

    Raises:
      StorageError: the folder cannot be made.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        keep: int | None = 2,
        config: Mapping[str, str] | None = None,
    ):
        # Imported here because it takes two seconds that no other command needs.
        import orbax.checkpoint as ocp

        self._ocp = ocp
        self.folder = Path(folder).resolve()
        self._config = {f"config/{k}": v for k, v in (config or {}).items()}
        make_folder(self.folder)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep, enable_async_checkpointing=False
        )
        self._manager = ocp.CheckpointManager(self.folder, options=options)

    @property
    def latest(self) -> int | None:
        """Step of the newest complete checkpoint.

        Raises:
          StorageError: a folder of a newer one has nothing in it.
        """
        step = self._manager.latest_step()
        if step is not None and not (self.folder / str(step) / "state").exists():
            raise StorageError(
                f"{self.folder / str(step)}: expected a checkpoint, got a folder "
                "without one; remove it to go on from an earlier one"
            )
        return step

    def save(
        self, step: int, state: Any, document: Mapping[str, Any] | None = None
    ) -> None:
        """Keeps `state` as that of `step`; one that is there already is left as it is.

        Args:
          step: not negative.
          state: a tree of arrays.
          document: plain JSON that belongs to it, such as the texts of its rules.

        Raises:
          StorageError: the disk refuses, or the document is no JSON.
        """
        if step in self._manager.all_steps():
            return
        args = self._ocp.args
        digest = _digest(state)
        layout = {**_shapes(state), **self._config}
        layout |= {} if digest is None else {_DIGEST: digest}
        parts = {
            "layout": args.JsonSave(layout),
            "state": args.StandardSave(state),
        }
        if document is not None:
            parts["document"] = args.JsonSave(plain(document))
        try:
            self._manager.save(step, args=args.Composite(**parts))
            self._manager.wait_until_finished()
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self.folder}: checkpoint {step} could not be written: {error}"
            ) from error

    def restore(self, like: Any = None, step: int | None = None) -> Any:
        """The state of `step`, the newest without one.

        Args:
          like: a tree of arrays of the same structure, shapes and types; its shardings
            are those of the result. None takes what is there, of whatever config, as
            dicts and lists on one device.
          step: of a complete checkpoint.

        Raises:
          StorageError: there is none, it is damaged, or it is of another config.
        """
        step, args = self._complete(step), self._ocp.args
        layout = self._part(step, "layout", args.JsonRestore())
        # None of checkpoints that were written before there was one.
        digest = layout.pop(_DIGEST, None)
        if like is None:
            like = self._shapes_of(step)
        else:
            self._check_layout(step, layout, _shapes(like))
        state = self._part(step, "state", args.StandardRestore(like))
        # Without like a float64 becomes what JAX has, which is no damage.
        kept = _shapes(state).items() <= layout.items()
        if kept and digest not in (None, found := _digest(state)) and found:
            raise StorageError(
                f"{self.folder}: checkpoint {step} is damaged: its state is another "
                "than was saved; remove it to go on from an earlier one"
            )
        return state

    def document(self, step: int | None = None) -> dict[str, Any]:
        """The JSON document beside the state of `step`, of the newest without one.

        Raises:
          StorageError: there is none, or it is damaged.
        """
        step, args = self._complete(step), self._ocp.args
        return self._part(step, "document", args.JsonRestore())

    def close(self) -> None:
        """Waits for what is being written."""
        self._manager.close()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _complete(self, step: int | None) -> int:
        """`step`, or the newest without one, if it is whole."""
        step = self.latest if step is None else step
        if step is None or step not in self._manager.all_steps():
            raise StorageError(
                f"{self.folder}: expected a complete checkpoint"
                f"{'' if step is None else f' of step {step}'}, got "
                f"{list(self._manager.all_steps())}"
            )
        return step

    def _shapes_of(self, step: int) -> Any:
        """What to restore: without, it would want the devices that it was saved on."""
        device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        try:
            folder: Any = self.folder / str(step) / "state"
            found: Any = self._ocp.StandardCheckpointHandler().metadata(folder)
            return jax.tree.map(
                lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device),
                found.tree,
            )
        except Exception as error:  # as below
            raise self._damaged(step, "state", error) from error

    def _part(self, step: int, name: str, how: Any) -> Any:
        """One part of the checkpoint of `step`."""
        try:
            parts = self._ocp.args.Composite(**{name: how})
            return self._manager.restore(step, args=parts)[name]
        except Exception as error:  # Orbax has a dozen kinds for a damaged file
            raise self._damaged(step, name, error) from error

    def _damaged(self, step: int, name: str, error: Exception) -> StorageError:
        said = (str(error).splitlines() or [""])[0][:200]
        return StorageError(
            f"{self.folder}: checkpoint {step} is damaged or has no {name} "
            f"({type(error).__name__}: {said}); remove it to go on from an earlier one"
        )

    def _check_layout(
        self, step: int, kept: dict[str, str], given: dict[str, str]
    ) -> None:
        """Names the first leaf or setting that is there and not here, or another."""
        # One that was written without any settings goes with all.
        if any(name.startswith("config/") for name in kept):
            given = {**given, **self._config}
        for name in sorted({*kept, *given}):
            if kept.get(name) != given.get(name):
                there, here = (x.get(name, "absent") for x in (kept, given))
                raise StorageError(
                    f"{self.folder}: checkpoint {step} is of another config: {name} is "
                    f"{there} there, {here} here; use another folder, or the same "
                    "config"
                )


_DIGEST = "sha256 of the state"
"""Beside the layout; no name of a leaf or setting."""


def _digest(tree: Any) -> str | None:
    """Over every leaf by its path; None where this process does not have them all."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    if not all(getattr(leaf, "is_fully_addressable", True) for _, leaf in leaves):
        return None
    found = hashlib.sha256()
    # By name, since what was a tuple of names is a dict where it is read without like.
    for name, leaf in sorted(((_name(p), x) for p, x in leaves), key=itemgetter(0)):
        keys = "key<" in str(getattr(leaf, "dtype", ""))
        array = np.asarray(jax.random.key_data(leaf) if keys else leaf)
        found.update(f"{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _shapes(tree: Any) -> dict[str, str]:
    """Shape and type of every leaf by its path; keys count as their data."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {_name(path): _shape(leaf) for path, leaf in leaves}


def _shape(leaf: Any) -> str:
    kind = getattr(leaf, "dtype", None)
    if kind is not None and "key<" in str(kind):
        return "a key"
    if kind is None:
        kind = np.asarray(leaf).dtype
    return f"{np.dtype(kind).name}{list(getattr(leaf, 'shape', ()))}"


def _name(path: Any) -> str:
    return "/".join(
        str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", part))))
        for part in path
    )
