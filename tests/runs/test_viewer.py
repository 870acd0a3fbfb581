import base64
import hashlib
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from jerp.errors import StorageError
from jerp.runs.viewer import write_view
from jerp.storage.manifest import open_run
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from jerp.typing import Outcome
from tests.storage.episodes import ACTIONS, FEATURES, episodes, texts

HOSTILE = (
    "</script><script>document.title='x'</script><img src=x onerror=f()><!-- \u2028"
)
VERDICT = {
    "score": 0.5,
    "success": False,
    "criteria": [{"name": "tests", "score": 0.5, "weight": 1.0, "detail": HOSTILE}],
}


class Page(HTMLParser):
    """Elements with their attributes and text, as a browser would split them."""

    def __init__(self, path):
        super().__init__()
        self.elements = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])

    def handle_data(self, data):
        if self.elements:
            self.elements[-1][2] += data

    def handle_endtag(self, tag):
        self.elements.append([f"/{tag}", {}, ""])

    def blocks(self):
        return {
            attributes["id"]: json.loads(text)
            for tag, attributes, text in self.elements
            if tag == "script" and attributes.get("type") == "application/json"
        }


def write(folder, arm, lengths=(3, 1), transcripts=None, **fields):
    meta = TrajectoryMeta(
        feature_names=FEATURES,
        action_names=ACTIONS,
        task_keys={"0": "coding/1/0000", "1": f"coding/1/{HOSTILE}"},
        model_fingerprint="model",
        extra={"domain": "coding", "arm": arm},
    )
    made = TrajectoryFolder.create(folder, meta)
    shard = f"{len(made.shards()):04d}"
    made.write_shard(shard, episodes(lengths, **fields), transcripts or texts(lengths))
    return made


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "my <run>"
    open_run(folder, {"seeds": 3}, seeds=(0,)).close()
    hostile = texts()
    hostile[0][0] = {
        "completion": HOSTILE,
        "probabilities": [0.25, 0.5, 0.25],
        "process": {"claims": 2, "error": False, "missing": None},
    }
    hostile[0][2] = {"verdict": VERDICT}
    write(folder / "coding" / "awr", "awr", transcripts=hostile)
    buffer = write(
        folder / "coding" / "buffer",
        "buffer",
        (2, 2),
        outcome=np.array([Outcome.FAILURE, Outcome.INFRASTRUCTURE], np.int32),
        score=np.array([0.25, np.nan], np.float32),
    )
    buffer.annotate({"weight": [0.1, 10.0]})
    return folder


def test_every_episode_and_step_is_on_the_page(run):
    path = write_view(run)
    assert path == run / "view.html"
    blocks = Page(path).blocks()
    index, stored = blocks["index"], blocks["texts"]
    assert [f["path"] for f in index["folders"]] == ["coding/awr", "coding/buffer"]
    assert index["folders"][0]["actions"] == list(ACTIONS)
    assert index["about"]["config"] == {"seeds": 3} and index["notes"] == []
    task = f"coding/1/{HOSTILE}"
    assert index["episodes"] == [
        [0, "coding/1/0000", 0, 0, 1, 0.5, 0.5, 3, {}],
        [0, task, 0, 1, 1, 0.5, 0.5, 1, {}],
        [1, "coding/1/0000", 0, 0, 0, 0.25, 0.5, 2, {"weight": 0.1}],
        [1, task, 0, 1, 4, None, 0.5, 2, {"weight": 10.0}],
    ]
    first, _, last = blocks["steps-0"][0]
    action, features, legal, probability, reward, usage, entry = first
    assert (action, features, legal) == (0, [0, 0], [1, 1, 1])
    assert (probability, reward, usage) == (0.25, 0, [1] * 5)
    assert entry["probabilities"] == [0.25, 0.5, 0.25]
    assert stored[entry["completion"]] == HOSTILE
    assert stored[entry["process"]] == '{"claims": 2}'
    assert last[6]["verdict"] == VERDICT


def test_a_text_is_stored_once_however_often_it_comes(run):
    stored = Page(write_view(run)).blocks()["texts"]
    assert len(stored) == len(set(stored))
    assert stored.count("draft") == 1


def test_nothing_in_the_data_becomes_an_element(run):
    page = Page(write_view(run))
    tags = [tag for tag, _, _ in page.elements]
    assert "img" not in tags and tags.count("script") == 1 + len(page.blocks())
    text = (run / "view.html").read_text()
    assert HOSTILE not in text and "<title>my &lt;run&gt;</title>" in text


def test_the_page_needs_and_allows_nothing_from_outside(run):
    page = Page(write_view(run))
    for _, attributes, _ in page.elements:
        assert not {"src", "href", "action", "srcset"} & attributes.keys()
    assert "http" not in (run / "view.html").read_text().replace("http-equiv", "")
    (policy,) = (a["content"] for _, a, _ in page.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    for tag in ("script", "style"):
        ((source),) = (x for name, a, x in page.elements if name == tag and not a)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_a_damaged_shard_is_named_and_the_rest_shown(run):
    write(run / "coding" / "awr", "awr", (1,))
    damaged = run / "coding" / "awr" / "transcripts-0000.jsonl"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    told = []
    index = Page(write_view(run, on_note=told.append)).blocks()["index"]
    assert len(index["episodes"]) == 3
    (note,) = index["notes"]
    assert note.startswith("1 of 2 shards left out: ")
    assert "transcripts-0000.jsonl" in note
    assert told == [note]


def test_a_shard_without_arrays_is_left_out_and_named(run):
    write(run / "coding" / "awr", "awr", (1,))
    (run / "coding" / "awr" / "trajectories-0000.safetensors").unlink()
    index = Page(write_view(run)).blocks()["index"]
    assert len(index["episodes"]) == 3
    (note,) = index["notes"]
    assert note.startswith("1 of 2 shards left out: ")
    assert "trajectories-0000.safetensors" in note


def test_annotations_that_do_not_match_are_left_out_and_named(run):
    write(run / "coding" / "buffer", "buffer", (1,))
    index = Page(write_view(run)).blocks()["index"]
    assert index["episodes"][-1][-1] == {}
    assert "weight does not match" in index["notes"][0]


def test_episodes_without_text_layout_or_names_are_shown(tmp_path):
    made = TrajectoryFolder.create(tmp_path / "x" / "y", TrajectoryMeta())
    tree = {"ids": np.zeros((2, 3, 4), np.int32)}
    made.write_shard("a", episodes(observation=tree, legal=None, log_prob=None))
    blocks = Page(write_view(tmp_path)).blocks()
    assert blocks["index"]["about"] == {}
    assert blocks["index"]["folders"][0]["domain"] == "x"
    assert blocks["index"]["folders"][0]["arm"] == "y"
    assert blocks["steps-0"][1] == [[1, [], None, None, 0.5, [1] * 5, {}]]


def test_a_folder_without_episodes_is_refused(tmp_path):
    with pytest.raises(StorageError, match="no episodes below this folder; name"):
        write_view(tmp_path)
    (tmp_path / "meta.json").write_text("{")
    with pytest.raises(StorageError, match=r"no episodes below.*meta\.json: truncated"):
        write_view(tmp_path)
    assert not (tmp_path / "view.html").exists()


def test_what_is_no_folder_is_refused_as_what_it_is(tmp_path):
    with pytest.raises(StorageError, match="expected the folder of a run, there is no"):
        write_view(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="expected the folder of a run, found a f"):
        write_view(tmp_path / "file")
