"""jerp: LLM agents that improve from their own trajectories, in pure-functional JAX.

Every equation is `jerp.<name>`, as `jerp.api` lists them, and so is what puts a trained
controller around an agent: `load_controller`, `EpisodeLog` and `Decision`. They are
loaded at the first use of a name, so that `import jerp` alone loads neither JAX nor
anything else.
"""

from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jerp.api import *  # noqa: F403
    from jerp.models.acting import Decision as Decision
    from jerp.storage.controllers import load_controller as load_controller
    from jerp.storage.episode_log import EpisodeLog as EpisodeLog

__version__ = "0.1.0"

_DEPLOYMENT = {
    "Decision": "jerp.models.acting",
    "EpisodeLog": "jerp.storage.episode_log",
    "load_controller": "jerp.storage.controllers",
}


def __getattr__(name: str) -> Any:
    """A subpackage, or else a name of `jerp.api` or of deployment."""
    if name == "__all__":
        return [*import_module("jerp.api").__all__, *_DEPLOYMENT]
    if name in _DEPLOYMENT:
        return getattr(import_module(_DEPLOYMENT[name]), name)
    if name.startswith("_"):
        raise AttributeError(f"module 'jerp' has no attribute {name!r}")
    if find_spec(f"jerp.{name}") is not None:
        return import_module(f"jerp.{name}")
    api = import_module("jerp.api")
    if name in api.__all__:
        return getattr(api, name)
    near = get_close_matches(name, [*api.__all__, *_DEPLOYMENT], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'jerp' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(["__version__", "api", *__getattr__("__all__")])
