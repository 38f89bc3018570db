"""What processes read of the samples, what that does to the memory, and whether two were given the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flatout.optimize import odd_samples
from flatout.optimize.optimizer import _same_order
from flatout.optimize.work.sample_files import first_rows, read_arrays
from flatout.process.memory import forget_peak, peak_bytes
from flatout.subject import Subject, Tensor, write_arrays
from flatout.subject.samples import row_digests

IMAGES = np.random.default_rng(0).integers(0, 255, (50, 6, 5)).astype("uint8")
WORDS = np.array([f"word {number}".encode() for number in range(50)])


def test_the_first_rows_are_read_alone(tmp_path: Path) -> None:
    columns = np.asfortranarray(IMAGES.reshape(50, 30).astype("float32"))
    write_arrays(tmp_path / "some.npz", "in", [IMAGES, WORDS, columns, np.float32(3.0)])
    feeds = [str(tmp_path / "some.npz"), "in2", "in0", "in1"]
    for count in (1, 7, 50, 90):
        for part, whole in zip(first_rows(feeds, count), read_arrays(feeds), strict=True):
            assert np.array_equal(part, whole[:count])
            assert part.dtype == whole.dtype
            assert part.flags.writeable
    assert first_rows([feeds[0], "in3"], 2)[0] == 3.0


def test_the_peak_of_the_memory_begins_anew() -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system has no way to")
    large = np.ones(40 << 20)
    before = peak_bytes()
    del large
    forget_peak()
    assert peak_bytes() <= before - (200 << 20)


def test_an_odd_value_comes_in_each_input_alone_as_well(tmp_path: Path) -> None:
    """NaN in one input makes NaN of the answers, whatever a runtime makes of it in another."""
    kinds = {"a": "float32", "b": "float32", "c": "int32", "d": "str", "e": "str"}
    inputs = tuple(Tensor(name, kind, (None, 3), (3,)) for name, kind in kinds.items())
    subject = Subject(tmp_path, "m", "keras", inputs, ())
    arrays = [np.ones((4, 3), kind if kind != "str" else "S1") for kind in kinds.values()]
    write_arrays(tmp_path / "held_out.npz", "in", arrays)

    def changed(samples: odd_samples.Samples) -> set[str]:
        return {
            "".join(name for name, one, was in zip(kinds, given, arrays, strict=True) if (one != was[:2]).any())
            for given in samples(subject, 2)
        }

    assert changed(odd_samples.unfinite) == {"ab", "a", "b"}
    assert changed(odd_samples.out_of_range) == {"c"}
    assert changed(odd_samples.odd_strings) == {"de", "d", "e"}
    assert np.array_equal(subject.samples("held_out")[0], arrays[0])


def test_two_processes_were_given_the_same_samples_or_not(tmp_path: Path) -> None:
    subject = Subject(tmp_path, "m", "keras", (Tensor("x", "uint8", (None, 6, 5), (6, 5)),), ())
    write_arrays(tmp_path / "calibration.npz", "in", [IMAGES[:20]])
    order = row_digests([IMAGES[:20]])
    assert len(order) == len(set(order)) == 16
    assert _same_order(order, subject)
    assert _same_order((), subject), "it was given none"
    assert not _same_order(row_digests([IMAGES[1:21]]), subject)
    write_arrays(tmp_path / "calibration.npz", "in", [IMAGES[:5]])
    assert _same_order(order, subject), "of a slow model fewer are kept"
