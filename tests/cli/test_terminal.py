import time

import pytest

from jerp.cli import terminal


@pytest.fixture
def stages(monkeypatch, capsys):
    """Runs a block of two stages; returns what the terminal saw of it."""

    def run(*, slow, is_terminal=True):
        monkeypatch.setattr(terminal, "SLOW_SECONDS", 0.0 if slow else 60.0)
        monkeypatch.setenv("FORCE_COLOR" if is_terminal else "NO_COLOR", "1")
        shown = ""
        with terminal.progress_if_slow() as on_stage:
            on_stage("reading")
            end = time.monotonic() + 30
            while slow and is_terminal and "reading" not in shown:
                assert time.monotonic() < end
                shown += capsys.readouterr().err
        return shown + capsys.readouterr().err

    return run


def test_a_slow_block_says_what_it_does(stages):
    assert "reading" in stages(slow=True)


def test_a_quick_block_says_nothing(stages):
    assert "reading" not in stages(slow=False)


def test_what_is_no_terminal_sees_nothing(stages, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert stages(slow=True, is_terminal=False) == ""
