"""What the processes of a machine have counted stays for as long as one of them is there, and no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcmsite.ops.metrics.directory import LOCK, VARIABLE, shared_directory, shared_metrics


def test_the_first_who_comes_empties_the_directory_and_whoever_comes_later_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(VARIABLE, raising=False)

    with shared_metrics(tmp_path):
        ours = shared_directory()
        assert ours is not None
        (ours / "counter_1.db").write_bytes(b"counted")
        # As another process sees it; what this one sees comes back before it lets go of the directory.
        with monkeypatch.context() as another:
            another.delenv(VARIABLE)
            with shared_metrics(tmp_path):
                assert shared_directory() == ours
                assert (ours / "counter_1.db").read_bytes() == b"counted"

    assert shared_directory() is None
    with shared_metrics(tmp_path):
        assert [file.name for file in ours.iterdir()] == [LOCK]
