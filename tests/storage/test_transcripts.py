import json
from pathlib import Path

import pytest

from jerp.errors import StorageError, TrajectoryError
from jerp.storage.transcripts import decode_transcripts, encode_transcripts

ODD = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\r\nh\ud800 \U0001f600"
STEPS = [[{"text": ODD, "n": 1.5}, {"list": [None, True]}], [], [{}]]


def test_every_text_survives():
    data = encode_transcripts(STEPS, num_steps=2)
    assert decode_transcripts(Path("t"), data, num_episodes=3) == STEPS


def test_any_reader_of_lines_finds_one_object_a_line():
    data = encode_transcripts(STEPS, num_steps=2)
    lines = [json.loads(line) for line in data.decode().splitlines()]
    assert [(x["episode"], x["step"]) for x in lines] == [(0, 0), (0, 1), (2, 0)]


def test_only_a_newline_ends_a_line():
    line = json.dumps({"episode": 0, "step": 0, "t": "\u2028\x85"}, ensure_ascii=False)
    data = f"{line}\n".encode()
    assert decode_transcripts(Path("t"), data, num_episodes=1) == [
        [{"t": "\u2028\x85"}]
    ]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([[{}, {}, {}]], r"transcripts\[0\]: expected at most T=2 steps, got 3"),
        (
            [[{}], [{"step": 1}]],
            r"transcripts\[1\]\[0\]: .*keys other than.*\['step'\]",
        ),
        ([[{"x": {1, 2}}]], r"transcripts\[0\]\[0\]: .*JSON-able"),
        ([[{"x": float("nan")}]], r"transcripts\[0\]\[0\]: .*JSON-able"),
    ],
)
def test_what_cannot_be_joined_or_written_is_refused(steps, message):
    with pytest.raises(TrajectoryError, match=message):
        encode_transcripts(steps, num_steps=2)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "3",
        '{"episode": 0}',
        '{"episode": 0, "step": 2}',
        '{"episode": 5, "step": 0}',
        '{"episode": "0", "step": 0}',
    ],
)
def test_a_damaged_line_is_named(line):
    data = b'{"episode": 0, "step": 0}\n' + line.encode() + b"\n"
    with pytest.raises(StorageError, match=r"t: line 2 is not a step"):
        decode_transcripts(Path("t"), data, num_episodes=1)
