"""The `jerp` command: parses, calls, prints, and turns errors into one line.

Each subcommand is a dataclass whose call does the work and returns the exit status: 0
when all is well, 1 when something was checked and found wrong, 2 for a mistake or a
failure with its reason, 130 after Ctrl-C. What is slow to import is imported by the
subcommand that needs it, so that `jerp --help` answers at once.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import tyro
from tyro.conf import Positional
from tyro.extras import SubcommandApp

from jerp.errors import ConfigError, JerpError, StorageError, UnknownNameError

if TYPE_CHECKING:
    from jerp.bridge.store import ResponseStore

__all__ = ["main"]

DESCRIPTION = "LLM agents that improve from their own trajectories."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Args:
      arguments: the words after `jerp`; None takes them from the command line.

    Returns:
      The exit status.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = _app(words).cli(
            prog="jerp",
            description=DESCRIPTION,
            args=words,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitSubcommandPrefixes),
        )
        return command()
    except JerpError as error:
        print(f"jerp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "jerp: interrupted; what was collected is kept, and the same command "
            "resumes",
            file=sys.stderr,
        )
        return 130


@dataclass(frozen=True)
class Version:
    """Versions of jerp and what it stands on, JAX's backend and devices."""

    def __call__(self) -> int:
        """Prints them."""
        from jerp.storage.manifest import devices, versions

        for name, version in versions().items():
            print(f"{name:8}{version}")
        found = devices()
        print(f"{'backend':8}{found['backend']}")
        print(f"{'devices':8}{', '.join(found['devices'])}")
        return 0


@dataclass(frozen=True)
class RunHarness:
    """Compares harness controllers around a frozen model: collects, trains, reports."""


@dataclass(frozen=True)
class TrajectoriesCheck:
    """Read every shard of a trajectory folder, or of a run, and say what is damaged.

    Attributes:
      folder: with a meta.json, such as RUN/coding/buffer, or any folder above some.
    """

    folder: Positional[Path]

    def __call__(self) -> int:
        """Prints a row a shard, or a row a folder of a run; 1 if any is damaged."""
        from jerp.runs.browse import check

        table, whole = check(self.folder)
        _show(table)
        return 0 if whole else 1


@dataclass(frozen=True)
class TrajectoriesShow:
    """List the episodes of a trajectory folder, or the steps of one.

    Attributes:
      folder: with a meta.json, such as RUN/coding/buffer.
      episode: show the steps of this one: text, features, probabilities.
    """

    folder: Positional[Path]
    episode: int | None = None

    def __call__(self) -> int:
        """Prints a table, or the steps."""
        from jerp.runs.browse import episode_steps, episode_table
        from jerp.storage.trajectories import TrajectoryFolder

        folder = TrajectoryFolder.open(self.folder)
        if self.episode is None:
            _show(episode_table(folder))
        else:
            _show(episode_steps(folder, self.episode))
        return 0


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


@dataclass(frozen=True)
class StoreVerify:
    """Generate stored completions again from weights and seeds, and compare tokens.

    Attributes:
      sample: how many completions.
      store: a store's file or folder; the recorded stores that come with jerp if none.
      model: a name of `jerp models list`, or a path to weights.
    """

    sample: int = 50
    store: Path | None = None
    model: str = "smollm2"

    def __call__(self) -> int:
        """Prints what was found; 1 if anything differs."""
        if self.sample < 1:
            raise ConfigError(f"--sample: expected at least 1, got {self.sample}")
        from rich.console import Console
        from rich.progress import Progress

        from jerp.bridge.local import LocalExecutor
        from jerp.runs.store_verify import verify_store
        from jerp.storage.weights import load_weights

        store = _open_store(self.store)
        executor = LocalExecutor(load_weights(self.model))
        with Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("generating", total=self.sample)
            report = verify_store(
                store,
                executor,
                sample=self.sample,
                on_progress=lambda done: progress.update(bar, completed=done),
            )
        for name, value in report.rows():
            print(f"{name}: {value}")
        for problem in store.problems:
            print(problem, file=sys.stderr)
        return 0 if report.agrees else 1


@dataclass(frozen=True)
class View:
    """Write one self-contained HTML page with every episode of a run.

    Attributes:
      folder: a run folder.
    """

    folder: Positional[Path]

    def __call__(self) -> int:
        """Prints where the page is, and what it had to leave out; 1 if anything."""
        from jerp.runs.browse import printable
        from jerp.runs.viewer import write_view

        notes: list[str] = []
        print(write_view(self.folder, on_note=notes.append))
        for note in notes:
            print(printable(note), file=sys.stderr)
        return 1 if notes else 0


def _app(words: Sequence[str]) -> SubcommandApp:
    """All subcommands; the settings of `run` only if `words` ask for it."""
    harness = _run_harness() if words[:1] == ["run"] else RunHarness
    groups: dict[str, tuple[str, dict[str, Callable[..., Any]]]] = {
        "run": ("Run an experiment.", {"harness": harness}),
        "trajectories": (
            "Look at stored episodes.",
            {"check": TrajectoriesCheck, "show": TrajectoriesShow},
        ),
        "models": ("Weights of executors.", {"pull": ModelsPull, "list": ModelsList}),
        "store": ("Recorded responses.", {"verify": StoreVerify}),
    }
    _check_word("command", words, ("version", *groups, "view"))
    app = _group(version=Version)
    for name, (meaning, commands) in groups.items():
        if words[:1] == [name]:
            _check_word(f"command of jerp {name}", words[1:], commands)
        app.command(_group(**commands), name=name, help=meaning)
    app.command(name="view")(View)
    return app


def _check_word(kind: str, words: Sequence[str], known: Collection[str]) -> None:
    """Refuses a first word that is neither an option nor a `known` name."""
    if words and not words[0].startswith("-") and words[0] not in known:
        raise UnknownNameError(kind, words[0], known)


def _group(**commands: Callable[..., Any]) -> SubcommandApp:
    app = SubcommandApp()
    for name, command in commands.items():
        app.command(name=name)(command)
    return app


def _run_harness() -> Callable[..., Callable[[], int]]:
    """`HarnessConfig` as tyro sees it, constructed only after parsing.

    tyro reports what a config refuses as a mistake of parsing, under a name of its own.
    Constructed later, the refusal is printed as every other error is.
    """
    from experiments.harness_control.config import HarnessConfig

    def harness(**settings: Any) -> Callable[[], int]:
        def command() -> int:
            config = HarnessConfig(**settings)
            from experiments.harness_control.main import run

            run(config)
            return 0

        return command

    functools.update_wrapper(harness, HarnessConfig, updated=())
    harness.__annotations__ = get_type_hints(HarnessConfig, include_extras=True)
    harness.__doc__ = inspect.getdoc(HarnessConfig)
    return harness


def _open_store(path: Path | None) -> ResponseStore:
    """The store at `path`, which `--store` named, or the recorded ones."""
    from jerp.bridge.store import ResponseStore

    if path is None:
        return ResponseStore(None, mode="replay", read_only=_recorded_stores())
    try:
        store = ResponseStore(None, mode="replay", read_only=[path])
        if not store.entries():
            raise StorageError(f"{path}: no responses are stored here")
    except StorageError as error:
        raise StorageError(
            "--store: expected the store of a run (RUN/store) or a file of one: "
            f"{str(error).rstrip('.')}. Name one, or leave --store out to verify the "
            "recorded stores"
        ) from error
    return store


def _recorded_stores() -> list[Path]:
    """The stores that come with the experiments, as package data."""
    import experiments

    folders = [Path(folder) for folder in experiments.__path__]
    return sorted(path for folder in folders for path in folder.rglob("*.jsonl.xz"))


def _show(renderable: Any) -> None:
    """Prints to the terminal; to a file or pipe in full width, without colours."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
        return
    console.width = 10_000
    with console.capture() as capture:
        console.print(renderable)
    # Tables pad every row to the longest, which may name a long problem.
    for line in capture.get().removesuffix("\n").split("\n"):
        print(line.rstrip())
