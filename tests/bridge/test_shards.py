import json
import lzma
import os
import zlib

import pytest

from jerp.bridge.shards import (
    Entry,
    ShardWriter,
    entry_line,
    read_shard,
    shard_paths,
    write_packed,
)
from jerp.errors import StorageError

ENTRIES = [
    Entry(
        "completion", "k1", {"text": "line\u2028sep \u0085 nel \r\n and \x1c é \udc80"}
    ),
    Entry("completion", "k2", {"text": ""}),
    Entry("verdict", "k1", {"passed": [True, False]}),
]


def write(folder, entries=ENTRIES, fingerprint="model"):
    writer = ShardWriter(folder, fingerprint)
    writer.append(map(entry_line, entries))
    writer.close()
    return writer.path


def sealed(text):
    """A line with its checksum, spelt out by hand."""
    body = text.encode()[:-1]
    return body + f',"crc":"{zlib.crc32(body):08x}"}}\n'.encode()


def test_entries_survive_whatever_characters_they_hold(tmp_path):
    shard = read_shard(write(tmp_path), repair=True)
    assert shard.entries == ENTRIES
    assert shard.fingerprint == "model" and not shard.problem


def test_every_line_is_ascii_json_with_a_checksum(tmp_path):
    lines = write(tmp_path).read_bytes().split(b"\n")
    assert lines.pop() == b"" and len(lines) == 4
    header = json.loads(lines[0].decode("ascii"))
    assert header["format"] == "jerp-response-store" and header["version"] == 1
    assert header["created_by"].startswith("jerp ")
    assert lines[2] + b"\n" == sealed(
        '{"key":"k2","kind":"completion","record":{"text":""}}'
    )


def test_each_writer_has_a_file_of_its_own(tmp_path):
    writers = [ShardWriter(tmp_path, None) for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.append([entry_line(Entry("verdict", str(number), {}))])
    paths = shard_paths(tmp_path)
    assert len(paths) == 3
    for number, path in enumerate(paths):
        assert [e.key for e in read_shard(path, repair=True).entries] == [str(number)]
    for writer in writers:
        writer.close()


def test_a_writer_that_wrote_nothing_leaves_nothing(tmp_path):
    ShardWriter(tmp_path, None).close()
    assert not shard_paths(tmp_path)


@pytest.mark.parametrize("tail", [b"{", b'{"key":"k9","kind":"x', b"\x00" * 700])
def test_a_half_written_tail_is_cut_and_reported(tmp_path, tail):
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    shard = read_shard(path, repair=True)
    assert shard.entries == ENTRIES
    assert f"half-written last line of {len(tail)} bytes cut" in shard.problem
    assert path.read_bytes() == whole
    assert not read_shard(path, repair=True).problem


def test_every_prefix_of_a_file_loads_its_complete_lines(tmp_path):
    data = write(tmp_path).read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    path = tmp_path / "prefix.jsonl"
    for length in range(0, len(data) + 1, 7):
        path.write_bytes(data[:length])
        complete = max(sum(end <= length for end in ends) - 1, 0)
        assert read_shard(path, repair=True).entries == ENTRIES[:complete]


def test_a_tail_is_only_ignored_where_files_are_not_ours_to_change(tmp_path):
    path = write(tmp_path)
    path.write_bytes(path.read_bytes() + b"{half")
    before = path.read_bytes()
    shard = read_shard(path, repair=False)
    assert shard.entries == ENTRIES and "5 bytes ignored" in shard.problem
    assert path.read_bytes() == before


def test_a_living_writers_tail_is_left_alone(tmp_path):
    writer = ShardWriter(tmp_path, "model")
    writer.append(map(entry_line, ENTRIES))
    with writer.path.open("ab") as file:
        file.write(b'{"in flight')
    before = writer.path.read_bytes()
    shard = read_shard(writer.path, repair=True)
    assert shard.entries == ENTRIES and not shard.problem
    assert writer.path.read_bytes() == before
    writer.close()
    assert "cut" in read_shard(writer.path, repair=True).problem


def test_an_empty_file_holds_nothing(tmp_path):
    path = tmp_path / "shard-000001.jsonl"
    path.write_bytes(b"")
    assert read_shard(path, repair=True) == (None, [], "")


def flip(line, at):
    return line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "damage", [lambda line: flip(line, 20), lambda line: line[:-9], lambda line: b""]
)
def test_a_corrupt_line_names_file_line_and_remedy(tmp_path, number, damage):
    path = write(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[number] = damage(lines[number])
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(StorageError, match="delete this line") as caught:
        read_shard(path, repair=True)
    assert f"{path}, line {number + 1}: " in str(caught.value)
    assert path.read_bytes() == b"\n".join(lines)


def test_files_that_are_no_store_are_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"loss": 1}\n')
    with pytest.raises(StorageError, match=r"metrics.jsonl, line 1: expected the head"):
        read_shard(path, repair=True)


def test_another_version_is_refused_by_number(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_bytes(
        sealed('{"fingerprint":null,"format":"jerp-response-store","version":2}')
    )
    with pytest.raises(StorageError, match="version 2, this jerp reads version 1"):
        read_shard(path, repair=True)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StorageError, match=r"gone\.jsonl: cannot read"):
        read_shard(tmp_path / "gone.jsonl", repair=True)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file/store: cannot open a store file"):
        ShardWriter(tmp_path / "file" / "store", None)


def test_a_full_disk_keeps_what_was_written_and_the_next_append_goes_on(
    tmp_path, monkeypatch
):
    writer = ShardWriter(tmp_path, "model")
    writer.append([entry_line(ENTRIES[0])])
    real, room = os.write, [30]

    def write(file, data):
        if not room[0]:
            raise OSError(28, "No space left on device")
        done = real(file, bytes(data[: room[0]]))
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StorageError, match=r"No space left.*make room and run"):
        writer.append(map(entry_line, ENTRIES[1:]))
    assert read_shard(writer.path, repair=False) == ("model", ENTRIES[:1], "")
    room[0] = 10**6
    writer.append(map(entry_line, ENTRIES[1:]))
    writer.close()
    assert read_shard(writer.path, repair=True).entries == ENTRIES


def test_packed_files_read_back_and_are_equal_byte_for_byte(tmp_path):
    one, two = tmp_path / "one.jsonl.xz", tmp_path / "two.jsonl.xz"
    for path in (one, two):
        write_packed(path, "model", ENTRIES)
    assert read_shard(one, repair=True) == ("model", ENTRIES, "")
    assert one.read_bytes() == two.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == [one.name, two.name]


@pytest.mark.parametrize("length", [0, 10, -5])
def test_a_packed_file_that_is_cut_is_refused(tmp_path, length):
    path = tmp_path / "cut.jsonl.xz"
    write_packed(path, "model", ENTRIES)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StorageError, match=r"cut.jsonl.xz: .*get the file again"):
        read_shard(path, repair=True)


def test_a_packed_file_whose_content_is_cut_is_refused(tmp_path):
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes(lzma.compress(b'{"half'))
    with pytest.raises(StorageError, match="its last line is cut"):
        read_shard(path, repair=True)


def test_a_packed_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(StorageError, match=r"none/x\.jsonl\.xz: cannot write"):
        write_packed(tmp_path / "none" / "x.jsonl.xz", "model", ENTRIES)
