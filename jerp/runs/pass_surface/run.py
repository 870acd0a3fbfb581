"""The whole of `jerp passkt`: reads, estimates, writes a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jerp.errors import ConfigError, StorageError
from jerp.runs.pass_surface.analysis import FORMAT, analyse
from jerp.runs.pass_surface.figures import write_figures
from jerp.runs.pass_surface.inputs import read_inputs
from jerp.runs.pass_surface.report import write_report
from jerp.runs.pass_surface.settings import PassktSettings, check_settings
from jerp.storage.documents import read_json, write_json
from jerp.storage.folders import replaced_folder

__all__ = ["run"]


def run(
    settings: PassktSettings, *, on_stage: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Any], Path]:
    """Makes `results.json`, `report.md`, `report.html` and figures.

    Args:
      settings: see `PassktSettings`.
      on_stage: called with what begins.

    Returns:
      What `results.json` holds, and the folder it is in.

    Raises:
      ConfigError: a setting is wrong, or the folder holds something else.
      InputError, StorageError: a file is not what it should be.
    """
    check_settings(settings)
    folder = settings.folder
    try:
        _check_replaceable(folder, settings)
    except OSError as error:
        raise ConfigError(
            f"--out: {folder} cannot be looked at ({error.strerror}); check its "
            "permissions, or name another folder with --out"
        ) from error
    on_stage("reading")
    inputs = read_inputs(settings)
    on_stage("estimating and resampling")
    results = analyse(settings, inputs)
    on_stage("drawing")
    with replaced_folder(folder) as fresh:
        results["figures"] = [p.name for p in write_figures(results, fresh)]
        write_report(results, fresh)
        write_json(fresh / "results.json", results)
    return results, folder


def _check_replaceable(folder: Path, settings: PassktSettings) -> None:
    """Refuses a folder that holds more than earlier results of the same files."""
    if Path.cwd().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"--out: {folder} is, or holds, the current folder, which cannot be "
            "replaced; name a folder of its own"
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"--out: {folder} is a file; name a folder")
    names = {path.name for path in folder.iterdir()}
    if not names:
        return
    try:
        earlier = read_json(folder / "results.json")
    except StorageError:
        earlier = {}
    ours = {"results.json", "report.md", "report.html", *earlier.get("figures", ())}
    if earlier.get("format") != FORMAT or not names <= ours:
        raise ConfigError(
            f"--out: {folder} holds {sorted(names - ours or names)[0]!r}, which jerp "
            "passkt did not write; move it away, or name another folder with --out"
        )
    files = settings.file_names
    if earlier["files"] != files:
        raise ConfigError(
            f"--out: {folder} holds the results of {' '.join(earlier['files'])}; name "
            "another folder with --out, or remove it"
        )
