"""What `jerp ope` says of invented results."""

import pytest

from jerp.runs.ope.report import markdown

RESULTS = {
    "level": 0.95,
    "episodes": 40,
    "tasks": 10,
    "behaviour": {"point": 0.5, "low": 0.4, "high": 0.6},
    "methods": {},
    "effective_sample_size": 30.0,
    "overlap": {"mean_weight": 1.0, "max_weight": 2.0, "large_ratio_share": 0.0},
    "notes": [],
    "controller": "c",
}


@pytest.mark.parametrize(
    ("estimate", "shown"), [(1.005, "100.0%"), (1.0, "100.0%"), (0.974, "97.4%")]
)
def test_an_estimated_share_is_no_more_than_all(estimate, shown):
    overlap = {**RESULTS["overlap"], "supported_mass": estimate}
    text = markdown({**RESULTS, "overlap": overlap})
    assert f"- overlap: an estimated {shown} of its probability on actions" in text
