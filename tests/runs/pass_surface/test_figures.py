import pytest

from jerp.runs.pass_surface.figures import write_figures


def band(rows, columns, value=0.5, limit=0.1):
    limits = {"low": None if limit is None else value - limit}
    limits["high"] = None if limit is None else value + limit
    return {
        name: [[each] * columns for _ in range(rows)]
        for name, each in {"point": value, **limits}.items()
    }


def results(ks, horizons, *, limit=0.1, names=(None,), compared=0):
    size = (len(ks), len(horizons))
    agents = [
        {"label": f"{i}.csv", "surface": band(*size)} for i in range(compared + 1)
    ]
    parts = [
        {
            "name": name,
            "num_kept": 3,
            "agents": agents,
            "comparisons": [
                {
                    "first_label": "0.csv",
                    "second_label": f"{i}.csv",
                    "difference": band(*size, 0, limit),
                }
                for i in range(1, compared + 1)
            ],
        }
        for name in names
    ]
    return {
        "ks": ks,
        "horizons": horizons,
        "parts": parts,
        "settings": {"unit": "steps", "by": "kind", "level": 0.95},
    }


@pytest.mark.parametrize(
    ("case", "names"),
    [
        (results([1, 2], [0, 5]), ["curves", "heatmap"]),
        (results([1], [2], limit=None), ["curves", "heatmap"]),
        (
            results([1, 2, 3], [0.1, 1, 100], compared=1),
            ["curves", "heatmap", "difference"],
        ),
        (
            results([1, 2], [1], compared=3),
            ["curves", "heatmap", "difference"],
        ),
        (
            results([1], [1, 2], names=("a/b", "a b", "*")),
            [
                f"{n}-{k}"
                for n in ("1-a-b", "2-a-b", "3")
                for k in ("curves", "heatmap")
            ],
        ),
    ],
)
def test_every_part_has_its_figures_under_names_of_their_own(tmp_path, case, names):
    paths = write_figures(case, tmp_path)
    assert [path.name for path in paths] == [f"{name}.png" for name in names]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths)
