"""What is spent in one process is seen in another, while it is."""

from itertools import count

from experiments.executors import usage_file
from experiments.executors.usage_file import read_usage, usage_written


def test_the_line_is_written_over_and_over_and_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(usage_file, "SECONDS", 0.01)
    path, number = tmp_path / "usage.txt", count()
    assert read_usage(path) == ""
    with usage_written(path, lambda: f"{next(number)} requests"):
        while int((read_usage(path) or "0").split()[0]) < 3:
            pass
        during = read_usage(path)
    after = read_usage(path)
    assert int(after.split()[0]) > int(during.split()[0])


def test_one_that_spends_nothing_writes_no_file(tmp_path):
    with usage_written(tmp_path / "usage.txt", lambda: ""):
        pass
    assert not [*tmp_path.iterdir()]
