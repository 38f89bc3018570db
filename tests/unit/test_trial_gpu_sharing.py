"""What a trial's environment gets on a machine with a GPU, and what of the user's stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatout.trial import gpu_sharing


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    node = tmp_path / "nvidiactl"
    node.touch()
    monkeypatch.setattr(gpu_sharing.has_gpu, "__defaults__", ((str(node),),))
    return tmp_path / "compiled"


def test_nothing_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_sharing.has_gpu, "__defaults__", ((str(tmp_path / "none"),),))
    assert gpu_sharing.variables({}, tmp_path / "compiled") == {}
    assert not (tmp_path / "compiled").exists()


@pytest.mark.parametrize("hidden", ["", "-1", " -1 "])
def test_nothing_where_the_gpus_are_hidden(gpu: Path, hidden: str) -> None:
    assert gpu_sharing.variables({"CUDA_VISIBLE_DEVICES": hidden}, gpu) == {}


def test_memory_is_shared_and_compilations_are_kept(gpu: Path) -> None:
    added = gpu_sharing.variables({"CUDA_VISIBLE_DEVICES": "1"}, gpu)
    assert added["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert str(gpu) in added["TF_XLA_FLAGS"]
    assert added["CUDA_CACHE_PATH"] == str(gpu)
    assert gpu.is_dir()


def test_a_whole_run_compiles_as_the_users_own(gpu: Path) -> None:
    assert list(gpu_sharing.variables({}, None)) == ["TF_FORCE_GPU_ALLOW_GROWTH"]


def test_what_the_user_has_set_stays(gpu: Path) -> None:
    own = {
        "TF_FORCE_GPU_ALLOW_GROWTH": "false",
        "TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory=/own",
        "CUDA_CACHE_PATH": "/own",
    }
    assert gpu_sharing.variables(own, gpu) == {}
    added = gpu_sharing.variables({"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"}, gpu)
    assert added["TF_XLA_FLAGS"].startswith("--tf_xla_auto_jit=2 --tf_xla_persistent_cache_directory=")
