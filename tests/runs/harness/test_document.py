"""The report in its three forms, made from invented results alone."""

import copy
import re
from html.parser import HTMLParser

import jax
import pytest
from rich.console import Console

from jerp.estimators.ope_methods import METHODS
from jerp.runs.cells import interval
from jerp.runs.harness import tables
from jerp.runs.harness.claims import prediction_check, support_check
from jerp.runs.harness.document import write_report
from jerp.runs.harness.figures import write_figures
from jerp.runs.harness.overall import overall
from jerp.runs.harness.report import prediction_table, render_tables
from jerp.runs.harness.wording import SHORT_METHODS
from jerp.storage.documents import defined
from tests.runs.harness.made_results import TOO_FEW, two_domains


@pytest.fixture(scope="module")
def results():
    domains = two_domains(refused=("doubly_robust",))
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


def shown(renderable, width=80):
    console = Console(width=width)
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


def test_predictions_of_every_method_fit_80_columns():
    seeds = [
        {
            "effective_sample_size": 12345.0,
            "methods": {
                method: {"point": point, "refused": None if point else TOO_FEW}
                for method in METHODS
            },
        }
        for point in (-0.123, None)
    ]
    text = shown(prediction_table("multi-tool", {"awr": seeds, "bc": seeds[1:]}))
    assert "…" not in text and "_" not in text
    head = next(line for line in text.splitlines() if line.startswith("arm"))
    assert head.split() == ["arm", "ESS", *SHORT_METHODS.values()]
    assert text.count("-.123*") == len(METHODS)
    text = " ".join(text.split())
    assert "*: of the seeds judged" in text
    counts = ", ".join(f"{short} 1" for short in SHORT_METHODS.values())
    assert f"AWR (trajectory), refused ({counts} of 2 seeds): {TOO_FEW}" in text
    assert f"behaviour cloning, refused: {TOO_FEW}" in text


def test_every_arm_and_domain_are_one_table_where_it_fits(results, folder):
    text = "".join(shown(part, width=100) for part in render_tables(results))
    lines = [line.split() for line in text.splitlines()]
    at = lines.index(["arm", "coding", "research", "macro", "average"])
    average = interval(results["overall"]["base"]["q"], digits=2)
    assert lines[at + 1] == ["base", "sequence", ".10", ".40", *average.split()]
    bounds = ["[+.15,", "+.15]"]
    assert lines[at + 2] == ["behaviour", "cloning", "+.10*", "+.20*", "+.15", *bounds]
    narrow = "".join(shown(part, width=50) for part in render_tables(results))
    narrow = " ".join(narrow.split())
    assert "All arms in all domains: the first table of report.md" in narrow
    assert "macro average" not in narrow
    report = (folder / "report.md").read_text()
    assert report.index("| arm | coding | research | macro average |") < report.index(
        "| arm | Q | Q - base"
    )
    assert f"| base sequence | .10 | .40 | {average} |" in report


def test_a_star_marks_what_holm_leaves(results):
    overall = {name: dict(arm) for name, arm in results["overall"].items()}
    overall["awr"]["holm"] = {"coding": 0.06, "research": 0.04}
    _, rows = tables.overview({**results, "overall": overall})
    row = next(row for row in rows if row[0] == "AWR (trajectory)")
    assert row[1:3] == ("+.20", "+.40*")


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


def test_what_a_single_held_out_task_cannot_say_is_left_open(results, tmp_path):
    single = copy.deepcopy(results)
    for part in single["domains"].values():
        part["detectable_q"] = None
    for arm in single["overall"].values():
        if "holm" in arm:
            arm["holm"] = dict.fromkeys(arm["holm"])
    write_figures(single, tmp_path / "figures")
    write_report(single, tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "with 80% power: not defined" in text
    assert "* p below" in text and "(p -)" in text
    _, rows = tables.overview(single)
    assert not any("*" in cell for row in rows for cell in row)
