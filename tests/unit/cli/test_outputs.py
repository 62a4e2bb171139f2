from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from sardonyx.backends.reference import SparseTensor
from sardonyx.cli.outputs import check_folder, save_outputs, summarize
from sardonyx.errors import SaveError


def test_summaries() -> None:
    (row,) = summarize("y", np.array([[0.1, 0.7, 0.2]], np.float32))
    assert (row["type"], row["shape"], row["note"]) == ("float32", [1, 3], "argmax 1")
    (row,) = summarize("y", np.array([1.0, np.nan, np.inf]))
    assert (row["min"], row["max"], row["note"]) == (1, 1, "2 not finite; argmax 1")
    (row,) = summarize("n", np.array([3, 4], np.int64))
    assert (row["mean"], row["note"]) == (3.5, "")
    (row,) = summarize("s", np.array(["a", "b", "c", "d"], object))
    assert (row["type"], row["note"]) == ("string", "'a', 'b', 'c', …")
    (row,) = summarize("e", np.zeros((0, 4), np.float32))
    assert row["min"] is None
    (row,) = summarize("b", np.array([1.5, 2.5], ml_dtypes.bfloat16))
    assert (row["type"], row["max"], row["note"]) == ("bfloat16", 2.5, "argmax 1")


def test_summaries_of_containers() -> None:
    rows = list(summarize("s", [np.zeros(2), np.ones(3)]))
    assert [row["name"] for row in rows] == ["s", "s[0]", "s[1]"]
    (row,) = summarize("m", {"cat": 0.9, "dog": 0.1})
    assert row["note"] == "largest: 'cat' (0.9)"
    (row,) = summarize("o", None)
    assert row["note"] == "no value"
    (row,) = summarize("p", SparseTensor(np.array([5.0]), np.array([1]), (3,)))
    assert row["shape"] == [3]


def test_everything_can_be_saved_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    save_outputs(
        path,
        {
            "plain": np.arange(3),
            "half": np.array([1.5], ml_dtypes.bfloat16),
            "four": np.array([-8, 7], ml_dtypes.int4),
            "words": np.array(["é", "b"], object),
            "parts": [np.zeros(1), np.ones(2)],
            "map": {"cat": 0.9},
            "none": None,
        },
    )
    with np.load(path, allow_pickle=False) as saved:
        assert sorted(saved.files) == sorted(
            ["plain", "half", "four", "words", "parts.0", "parts.1", "map.keys", "map.values"]
        )
        assert saved["half"].dtype == np.float32
        assert saved["four"].tolist() == [-8, 7]
        assert saved["words"].tolist() == ["é", "b"]
    assert [file.name for file in tmp_path.iterdir()] == ["out.npz"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(SaveError):
        save_outputs(tmp_path / "taken", {"y": np.zeros(1)})
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_large_integers_are_shown_exactly() -> None:
    (row,) = summarize("ids", np.array([2**62 + 1, 5], np.int64))
    assert (row["min"], row["max"]) == (5, 2**62 + 1)


def test_a_folder_that_is_not_there_is_refused_before_the_run(tmp_path: Path) -> None:
    check_folder(tmp_path / "answer.npz")
    with pytest.raises(SaveError, match="folder does not exist"):
        check_folder(tmp_path / "nowhere" / "answer.npz")
