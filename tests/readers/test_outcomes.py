import json
import sys

import numpy as np
import pytest

from jerp.errors import InputError, MissingExtraError, StorageError
from jerp.readers import rows
from jerp.readers.outcomes import read_outcomes
from jerp.typing import Outcome

HEADER = "task,sample,spent,outcome\n"
ROWS = [
    ("b", 0, 3, "success"),
    ("a", 0, 1.5, "failure"),
    ("b", 1, 9, "truncated"),
    ("b", 2, None, "infrastructure"),
    ("a", 1, 2, "malformed"),
]


def written(tmp_path, text, name="runs.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def csv_text(rows=ROWS, header=HEADER):
    cells = (",".join("" if v is None else str(v) for v in row) for row in rows)
    return header + "".join(f"{line}\n" for line in cells)


def jsonl_text(rows=ROWS, names=("task", "sample", "spent", "outcome")):
    lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def parquet_file(path, rows=ROWS, names=("task", "sample", "spent", "outcome")):
    import pyarrow
    from pyarrow import parquet

    columns = zip(*rows, strict=True)
    table = pyarrow.table(dict(zip(names, map(list, columns), strict=True)))
    parquet.write_table(table, path)
    return path


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def runs(request, tmp_path):
    """The same rows in each kind of file."""
    if request.param == "parquet":
        return parquet_file(tmp_path / "runs.parquet")
    text = csv_text() if request.param == "csv" else jsonl_text()
    return written(tmp_path, text, f"runs.{request.param}")


def test_every_kind_of_file_holds_the_same_table(runs):
    table = read_outcomes(runs)
    assert table.tasks == ("b", "a") and table.path == runs
    assert table.task_id.tolist() == [0, 1, 0, 0, 1]
    np.testing.assert_array_equal(table.spent, [3, 1.5, 9, np.nan, 2])
    assert table.outcome.tolist() == [1, 0, 2, 4, 3]
    assert table.horizon is None and table.extra == {}


def test_runs_are_laid_out_by_task_and_sample(runs):
    arrays = read_outcomes(runs).arrays()
    assert arrays.spent.dtype == np.float32 and arrays.outcome.dtype == np.int32
    np.testing.assert_array_equal(arrays.spent, [[3, 9, np.nan], [1.5, 2, 0]])
    assert arrays.outcome.tolist() == [[1, 2, 4], [0, 3, 0]]
    assert arrays.mask.tolist() == [[True] * 3, [True, True, False]]
    assert arrays.horizons is None


def test_blocks_do_not_show(runs, monkeypatch):
    whole = read_outcomes(runs)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 2)
    table = read_outcomes(runs)
    assert table.tasks == whole.tasks
    np.testing.assert_array_equal(table.task_id, whole.task_id)
    np.testing.assert_array_equal(table.spent, whole.spent)


def test_horizons_are_a_leading_axis(tmp_path):
    names = ("task", "sample", "horizon", "spent", "outcome")
    runs = [
        ("a", 0, 5, 4, "success"),
        ("a", 0, 2, 2, "truncated"),
        ("b", 0, 2, 1, "success"),
        ("a", 1, 5, 5, "failure"),
    ]
    path = written(tmp_path, jsonl_text(runs, names), "runs.jsonl")
    arrays = read_outcomes(path).arrays()
    assert arrays.horizons == (2, 5)
    assert arrays.outcome.tolist() == [[[2, 0], [1, 0]], [[1, 0], [0, 0]]]
    assert arrays.mask.tolist() == [
        [[True, False], [True, False]],
        [[True, True], [False, False]],
    ]
    assert arrays.spent[0].tolist() == [[2, 0], [1, 0]]


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("spell", ["{0.name}", "{1}", " {0} ", "{0}.0"])
def test_outcomes_may_be_names_in_any_case_or_numbers(tmp_path, outcome, spell):
    word = spell.format(outcome, outcome.name.title())
    path = written(tmp_path, csv_text([("a", 0, 1, word)]))
    assert read_outcomes(path).outcome.tolist() == [outcome]


@pytest.mark.parametrize(
    ("word", "outcome"),
    [(True, 1), (False, 0), ("True", 1), ("false", 0), (1, 1), (4.0, 4), ("2", 2)],
)
def test_json_outcomes_may_be_truth_values_and_numbers(tmp_path, word, outcome):
    path = written(tmp_path, jsonl_text([("a", 0, 1, word)]), "runs.jsonl")
    assert read_outcomes(path).outcome.tolist() == [outcome]


def test_a_task_is_the_same_as_text_and_as_a_number(tmp_path):
    runs = [(3, 0, 1, True), ("3", 1, 1, True), (3.0, 2, 1, True), (" 3", 3, 1, True)]
    path = written(tmp_path, jsonl_text(runs), "runs.jsonl")
    assert read_outcomes(path).tasks == ("3",)
    runs = [(2.5, 0, 1, True), (True and 1, 0, 1, True)]
    path = written(tmp_path, jsonl_text(runs), "runs.jsonl")
    assert read_outcomes(path).tasks == ("2.5", "1")


def test_whole_numbers_are_the_same_in_either_plain_form(tmp_path):
    names = ["3", "3.0", " 3.0 ", "-7", "-7.0", "0.0", "0"]
    path = written(tmp_path, csv_text([(n, i, 1, 1) for i, n in enumerate(names)]))
    assert read_outcomes(path).tasks == ("3", "-7", "0")
    names = ["03", "03.0", "3e0", "3.00", "3.", "+3", "-0.0", "1.5", "v1.0", "3.0.0"]
    path = written(tmp_path, csv_text([(n, i, 1, 1) for i, n in enumerate(names)]))
    assert read_outcomes(path).tasks == tuple(names)
    long = "123456789012345678901"
    path = written(tmp_path, csv_text([(f"{long}.0", 0, 1, 1), (long, 1, 1, 1)]))
    assert read_outcomes(path).tasks == (long,)


def test_numbers_at_the_limits_of_float32_are_read(tmp_path):
    path = written(tmp_path, csv_text([("a", 0, 3.4e38, 1), ("a", 1, 1.2e-38, 1)]))
    assert read_outcomes(path).spent.tolist() == [3.4e38, 1.2e-38]


def test_a_newline_or_a_carriage_return_inside_of_quotes_is_kept(tmp_path):
    text = HEADER + '"a\rb",0,1,1\n"a\nb",0,1,1\r\nc,0,9,lost\n'
    path = written(tmp_path, text.replace(",9,lost", ",9,1"))
    assert read_outcomes(path).tasks == ("a\rb", "a\nb", "c")
    with pytest.raises(InputError, match=r"line 5, outcome"):
        read_outcomes(written(tmp_path, text))


def test_a_file_that_cannot_be_looked_at_is_refused(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "is_dir", refuse)
    with pytest.raises(StorageError, match=r"r\.csv: cannot be read: Permission den"):
        read_outcomes(tmp_path / "r.csv")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_byte_order_mark_line_ends_and_blank_lines_do_not_matter(
    tmp_path, kind, mark, end
):
    # Unicode's other line ends are part of a name.
    runs = [("one\u2028\x85two", 0, 1, "success"), ("b", 0, 2, "failure")]
    text = csv_text(runs) if kind == "csv" else jsonl_text(runs)
    if kind == "jsonl":
        text = text.replace("\\u2028", "\u2028").replace("\\u0085", "\x85")
    text = mark + text.replace("\n", end) + end
    table = read_outcomes(written(tmp_path, text, f"runs.{kind}"))
    assert table.tasks == ("one\u2028\x85two", "b")
    assert table.outcome.tolist() == [1, 0]


def test_columns_may_come_in_any_order_among_others(tmp_path):
    text = ' outcome ,note, task,spent,sample\nsuccess,"a, b",t,2,x\n'
    table = read_outcomes(written(tmp_path, text), extra=("note",))
    assert table.tasks == ("t",) and table.spent.tolist() == [2]
    assert table.extra == {"note": ("a, b",)}


def test_a_column_of_tasks_has_one_value_a_task(tmp_path):
    runs = [("b", 0, 1, 1, "x"), ("a", 0, 1, 1, 7), ("b", 1, 1, 1, "x")]
    path = written(tmp_path, csv_text(runs, "task,sample,spent,outcome,kind\n"))
    assert read_outcomes(path, extra=("kind",)).task_values("kind") == ("x", "7")
    runs += [("a", 1, 1, 1, "x")]
    path = written(tmp_path, csv_text(runs, "task,sample,spent,outcome,kind\n"))
    with pytest.raises(InputError, match="one value a task, got '7' and 'x' for task"):
        read_outcomes(path, extra=("kind",)).task_values("kind")


def row(**changes):
    good = {"task": "a", "sample": 0, "spent": 1, "outcome": "success"}
    return json.dumps({**good, **changes}) + "\n"


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("r.csv", "", StorageError, "a row for each run, got none"),
        ("r.csv", "\n", StorageError, "got none"),
        ("r.csv", HEADER, StorageError, "nothing but a header"),
        ("r.jsonl", "\n\n", StorageError, "got none"),
        ("r.txt", HEADER, InputError, r"ends in \.csv, \.jsonl, \.parquet, got '\.t"),
        ("r.csv.gz", b"\x1f\x8b", InputError, r"got '\.gz'; rename the file"),
        ("r.csv", b"PAR1\xff\xfe", StorageError, r"UTF-8, got the byte 0xff.*\.parq"),
        ("r.parquet", HEADER, StorageError, "not a whole Parquet file"),
        ("r.csv", row(), InputError, "line 1: expected a column 'task'"),
        ("r.jsonl", csv_text(), StorageError, "line 1: not JSON"),
        (
            "r.jsonl",
            row() + '{"task": \n',
            StorageError,
            r"line 2: not JSON \(Expecting value, column \d+\); expected one object",
        ),
        (
            "r.jsonl",
            row() + '{"task": 1, "spent": 2, "task": 3}\n',
            InputError,
            "line 2: expected each key once, got 'task' twice",
        ),
        ("r.jsonl", "[" * 100_000 + "\n", StorageError, "line 1: not JSON"),
        ("r.jsonl", row() + "[1]\n", StorageError, r"line 2: .* object, got '\[1\]'"),
        ("r.jsonl", row() + '{"task": 1}\n', InputError, "line 2: lacks 'sample'"),
        (
            "r.jsonl",
            row() + row(horizon=3, sample=1),
            InputError,
            "line 2: has 'horizon', which the lines before it lack",
        ),
        (
            "r.csv",
            "task,sample,cost,outcome\na,0,1,success\n",
            InputError,
            "line 1: expected a column 'spent', got 'task', 'sample', 'cost', "
            "'outcome'; add it",
        ),
        (
            "r.csv",
            "task;sample;spent;outcome\na;0;1;success\n",
            StorageError,
            "line 1: expected values separated by commas, .*';' in it; separate",
        ),
        (
            "r.csv",
            "task\tsample\tspent\toutcome\na\t0\t1\tsuccess\n",
            StorageError,
            r"line 1: expected values separated by commas, .*'\\t' in it; separate",
        ),
        (
            "r.csv",
            csv_text().replace("\n", "\r"),
            StorageError,
            "line 1: expected lines that end at a newline, got a carriage return",
        ),
        (
            "r.csv",
            "task,sample,spent,Outcom\na,0,1,success\n",
            InputError,
            "rename 'Outcom' to it",
        ),
        ("r.csv", "task,task,sample,spent,outcome\n", InputError, "one column 'task'"),
        (
            "r.csv",
            HEADER + "a,0,1\n",
            StorageError,
            "line 2: expected 4 values, as the header has, got 3",
        ),
        ("r.csv", HEADER + 'a,0,1,"suc\n', StorageError, "line 2: not CSV"),
        ("r.csv", HEADER + "a,0,-1,1\n", InputError, "line 2, spent: .*got '-1'"),
        ("r.csv", HEADER + "a,0,nan,1\n", InputError, "spent: expected a finite"),
        ("r.csv", HEADER + "a,0,inf,4\n", InputError, "got 'inf'"),
        ("r.csv", HEADER + "a,0,,1\n", InputError, "only infrastructure .*got nothing"),
        ("r.csv", HEADER + "a,0,ten,1\n", InputError, "got 'ten'"),
        ("r.csv", HEADER + "a,0,1_0,1\n", InputError, "spent: .*, got '1_0'"),
        ("r.csv", HEADER + "a,0,1,0_1\n", InputError, "outcome: .*, got '0_1'"),
        (
            "r.csv",
            HEADER + "a,0,1e300,1\n",
            InputError,
            r"line 2, spent: expected .* from 1\.2e-38 to 3\.4e\+38; use another unit",
        ),
        ("r.csv", HEADER + "a,0,1e-50,1\n", InputError, "line 2, spent: .*got '1e-50"),
        ("r.jsonl", row(horizon=1e39), InputError, r"line 1, horizon: .*got 1e\+39"),
        (
            "r.csv",
            HEADER + "3,0,1,1\n3.0,0.0,1,1\n",
            InputError,
            "line 3: task '3', sample '0' is there already, in line 2",
        ),
        ("r.jsonl", row(spent=True), InputError, "line 1, spent: .*got True"),
        ("r.jsonl", row(spent=[1]), InputError, r"got \[1\]"),
        ("r.jsonl", row(spent=10**400), InputError, "got 1000.*"),
        ("r.jsonl", row(task=None), InputError, "task: expected a text or a number"),
        ("r.jsonl", row(task=True), InputError, "task: .*got True"),
        ("r.jsonl", row(task=float("nan")), InputError, "task: .*got nan"),
        ("r.jsonl", row(sample=" "), InputError, "sample: expected a text or a num"),
        ("r.jsonl", row(horizon=0.5), InputError, r"spent: .*run, 0\.5, got 1"),
        ("r.jsonl", row(horizon=-2), InputError, "horizon: expected .*got -2"),
        (
            "r.csv",
            HEADER + "a,0,1,sucess\n",
            InputError,
            "line 2, outcome: expected failure, success, .*did you mean 'success'",
        ),
        ("r.csv", HEADER + "a,0,1,5\n", InputError, "number 0 to 4, got '5'"),
        ("r.csv", HEADER + "a,0,1,\n", InputError, "outcome: .*got nothing"),
        ("r.csv", HEADER + "a,0,1,0.5\n", InputError, "got '0.5'"),
        (
            "r.csv",
            csv_text([("a", 0, 1, 1), ("b", 0, 1, 1), ("a", "0 ", 2, 0)]),
            InputError,
            "line 4: task 'a', sample '0' is there already, in line 2",
        ),
        (
            "r.jsonl",
            row(horizon=1) + row(horizon=2) + row(horizon=2.0),
            InputError,
            "line 3: task 'a', sample '0', horizon 2 is there already, in line 2",
        ),
    ],
)
def test_bad_input_is_refused_with_its_place(tmp_path, name, text, error, message):
    path = written(tmp_path, text, name)
    with pytest.raises(error, match=message) as caught:
        read_outcomes(path)
    assert str(caught.value).startswith(str(path))


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(StorageError, match="there is no such file; check the path"):
        read_outcomes(tmp_path / "none.csv")
    with pytest.raises(StorageError, match="there is no such file; check the path"):
        read_outcomes(tmp_path / "none.parquet")
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path, tmp_path / "folder.csv"):
        with pytest.raises(StorageError, match="expected a file, found a folder"):
            read_outcomes(folder)


def test_the_first_pair_of_equal_rows_is_named_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 2)
    samples = [0, 1, 2, 3, 1, 0]
    path = written(tmp_path, csv_text([("a", s, 1, 1) for s in samples]))
    with pytest.raises(InputError, match=r"line 6: .*in line 3"):
        read_outcomes(path)


def test_parquet_rows_are_counted_from_one(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 2)
    runs = [("a", 0, 1.0, 1), ("a", 1, 1.0, 1), ("a", 2, -1.0, 1)]
    path = parquet_file(tmp_path / "runs.parquet", runs)
    with pytest.raises(InputError, match=r"row 3, spent: .*got -1\.0"):
        read_outcomes(path)
    path = parquet_file(tmp_path / "runs.parquet", runs, ("task", "sample", "s", "out"))
    with pytest.raises(InputError, match="expected a column 'spent'"):
        read_outcomes(path)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = written(tmp_path, "", "runs.parquet")
    with pytest.raises(MissingExtraError, match=r"pip install 'jerp\[parquet\]'"):
        read_outcomes(path)
    assert read_outcomes(written(tmp_path, csv_text())).tasks == ("b", "a")
