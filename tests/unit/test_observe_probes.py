"""Probes: each declares what it installs, and one that fails is recorded as lost and harms nobody."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from flatout.observe import installing, probes
from flatout.observe.observer import PACKAGES, Observer, Probe
from flatout.observe.private_names import Missing
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings


@pytest.mark.parametrize("name", probes.names())
def test_every_file_declares_a_probe_of_its_name(name: str) -> None:
    probe = probes.load(name)
    assert probe.name == name
    assert any(probe.install_for(package) for package in PACKAGES)


def facts_after(directory: Path, *more: Probe) -> list[dict[str, object]]:
    observer = Observer(Recorder(str(directory)), ObserveSettings(trace=False, sample=False))
    observer.more_probes += more
    installing.install(observer, "tensorflow", ModuleType("tensorflow"))
    return [json.loads(line) for line in (directory / "facts.jsonl").read_text().splitlines()]


@pytest.fixture
def no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    monkeypatch.setattr(probes, "names", list)


def test_a_probe_that_fails_is_lost_and_the_next_one_is_installed(tmp_path: Path, no_probes: None) -> None:
    installed: list[str] = []

    def lacking(observer: Observer, module: ModuleType) -> None:
        raise Missing("tensorflow.gone")

    def broken(observer: Observer, module: ModuleType) -> None:
        raise ValueError("no luck")

    def sound(observer: Observer, module: ModuleType) -> None:
        installed.append(module.__name__)

    toys = (Probe("lacking", lacking), Probe("broken", broken), Probe("keras only", keras=broken), Probe("ok", sound))
    lost = [(fact["probe"], fact["text"]) for fact in facts_after(tmp_path, *toys) if fact["kind"] == "lost"]
    assert lost == [("lacking", "tensorflow.gone"), ("broken", "ValueError: no luck")]
    assert installed == ["tensorflow"]


def test_a_probe_whose_file_cannot_be_loaded_is_lost(tmp_path: Path, no_probes: None, monkeypatch) -> None:
    monkeypatch.setattr(probes, "names", lambda: ["there_is_no_such_probe"])
    (lost,) = [fact for fact in facts_after(tmp_path) if fact["kind"] == "lost"]
    assert lost["probe"] == "there_is_no_such_probe"
    assert "ModuleNotFoundError" in str(lost["text"])
