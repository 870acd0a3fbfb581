"""The report in its three forms, made from invented results alone."""

import re
from html.parser import HTMLParser

import jax
import pytest
from rich.console import Console

from jerp.runs.harness.claims import prediction_check, support_check
from jerp.runs.harness.document import write_report
from jerp.runs.harness.figures import write_figures
from jerp.runs.harness.overall import overall
from jerp.runs.harness.report import prediction_table, render_tables
from jerp.storage.documents import defined
from tests.runs.harness.made_results import TOO_FEW, two_domains


@pytest.fixture(scope="module")
def results():
    domains = two_domains(refused=("doubly robust",))
    keys = jax.random.split(jax.random.key(0), 3)
    return defined(
        {
            "command": "jerp run harness --out 'a<b>'",
            "version": "0",
            "smoke": False,
            "seeds": 2,
            "sizes": {"samples": 2, "rollouts": 4},
            "domains": domains,
            "overall": overall(keys[0], domains),
            "support": support_check(keys[1], domains),
            "prediction_check": prediction_check(keys[2], domains),
            "executor": {
                "kind": "scripted",
                "fingerprint": "scripted-1",
                "store": {"completion": {"hits": 1, "misses": 0, "distinct": 1}},
                "diversity": {"prompts": 1, "identical": 0, "distinct_share": 1.0},
                "problems": [],
            },
        }
    )


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_figures(results, folder / "figures")
    write_report(results, folder)
    return folder


def shown(renderable):
    console = Console(width=80)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_terminal_holds_every_number_within_its_width(results):
    text = "".join(shown(part) for part in render_tables(results))
    assert "…" not in text
    assert "Macro average of 2 domains" in text
    row = next(line for line in text.splitlines() if line.startswith("ordinary"))
    assert row.split()[1:3] == ["12", "0"]
    row = next(line for line in text.splitlines() if line.startswith("doubly robust"))
    assert row.split()[2:4] == ["6", "6"]


def test_predictions_say_what_was_refused_and_why(results):
    text = shown(prediction_table("coding", results["domains"]["coding"]["prediction"]))
    row = next(line for line in text.splitlines() if line.startswith("AWR (traj"))
    assert row.split()[2:] == ["100", ".300", "refused"]
    assert f"AWR (trajectory), refused: {TOO_FEW}" in " ".join(text.split())
    text = shown(prediction_table("a", results["domains"]["research"]["prediction"]))
    assert "refused" not in text


def test_the_stand_in_executor_is_named(folder):
    assert "stand-in executor scripted-1" in (folder / "report.md").read_text()


def test_every_figure_of_the_report_exists_and_every_one_made_is_shown(folder):
    text = (folder / "report.md").read_text()
    linked = set(re.findall(r"!\[[^]]*\]\(figures/([^)]+)\)", text))
    assert linked == {path.name for path in (folder / "figures").iterdir()}


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.sources = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sources += [value for key, value in attrs if key in ("src", "href")]


def test_the_page_holds_the_same_tables_and_needs_no_other_file(folder):
    text = (folder / "report.md").read_text()
    page = _Page()
    page.feed((folder / "report.html").read_text())
    assert page.tags.count("table") == len(re.findall(r"^\| --- ", text, re.MULTILINE))
    assert page.sources and all(s.startswith("data:image/png") for s in page.sources)
    assert "b" not in page.tags  # the command's <b> is text


def test_events_that_never_applied_are_a_dash(folder):
    text = (folder / "report.md").read_text()
    assert "| AWR (per-step) | .50 | - |" in text
