"""`jerp models`: weights of executors."""

from __future__ import annotations

from dataclasses import dataclass

from tyro.conf import Positional

__all__ = ["ModelsList", "ModelsPull"]


@dataclass(frozen=True)
class ModelsPull:
    """Fetch a model's weights into the cache folder, once.

    Attributes:
      name: as `jerp models list` has it.
    """

    name: Positional[str]

    def __call__(self) -> int:
        """Fetches and prints where the weights are."""
        from jerp.storage.pull import pull

        print(pull(self.name))
        return 0


@dataclass(frozen=True)
class ModelsList:
    """List the known models and whether they are in the cache folder."""

    def __call__(self) -> int:
        """Prints a row a model."""
        from jerp.storage.weights import list_models

        for model in list_models():
            state = f"in {model.path}" if model.present else "not fetched"
            size = f"{model.size / 1e6:.0f} MB"
            print(f"{model.name}  {size}  {model.licence}  {state}")
        return 0
