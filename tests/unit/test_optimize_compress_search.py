"""The search's decisions; what it decides about is played here, and real in tests/integration."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from flatout.model.errors import CompressionRefused, FlatoutError
from flatout.optimize.compress import search
from flatout.optimize.compress.search import Search
from flatout.optimize.compress.stages import Resources
from flatout.optimize.compress.structure import cost
from flatout.optimize.request import OptimizeRequest
from flatout.subject.preparation import SubjectRequest, split_samples


class Model(SimpleNamespace):
    """Has a size; how much worse it is follows from that and from how it was made."""


@pytest.fixture
def made(monkeypatch):
    """Stands in for what trains: each call is noted down."""
    calls = []

    def prune(model, flops, checkpoint):
        calls.append(("prune", round(model.flops * flops, 3)))
        if model.flops * flops < 0.02:
            raise CompressionRefused("cannot be reached")
        return SimpleNamespace(model=Model(flops=model.flops * flops, rounded=0, taught=False))

    def distill(original, model, train, checkpoint):
        calls.append(("distill", round(model.flops, 3)))
        return SimpleNamespace(model=Model(flops=model.flops, rounded=0, taught=True))

    def quantize(model, inputs, train, teacher, checkpoint):
        assert teacher.flops == 1.0
        calls.append(("int8", round(model.flops, 3), train is not None))
        return SimpleNamespace(model=Model(flops=model.flops, rounded=1 if train else 2, taught=model.taught))

    monkeypatch.setattr(search, "prune", prune)
    monkeypatch.setattr(search, "distill", distill)
    monkeypatch.setattr(search, "quantize", quantize)
    monkeypatch.setattr(cost, "of", lambda model: (0, model.flops))
    return calls


ORIGINAL = Model(flops=1.0, rounded=0, taught=True)


def searching(drop, allowed=0.02, train=lambda model: None, seconds=1e6, said=None):
    resources = Resources(ORIGINAL, train, [])
    return Search(resources, drop, allowed, time.monotonic() + seconds, (said if said is not None else []).append)


def by_size(limit):
    return lambda model: 0.0 if model.flops >= limit else 0.5


def test_it_goes_down_as_long_as_it_is_good_enough_and_half_a_step_back(made):
    found = searching(by_size(0.15)).run()
    assert [call for call in made if call[0] == "prune"] == [
        ("prune", 0.5),
        ("prune", 0.25),
        ("prune", 0.125),
        ("prune", 0.177),
    ]
    assert [(round(one.share, 3), one.int8) for one in found] == [
        (0.177, True),
        (0.25, True),
        (0.177, False),
        (0.25, False),
    ]
    assert found[0].stages == "prune=0.18,distill,int8"


def test_it_trains_under_rounding_only_where_that_alone_costs_too_much(made):
    hurt = searching(lambda model: 0.015 * model.rounded if model.flops >= 0.5 else 1.0).run()
    assert ("int8", 1.0, True) in made
    assert hurt[0].stages == "prune=0.5,distill,int8-trained"
    made.clear()
    searching(by_size(0.5)).run()
    assert not any(call[0] == "int8" and call[2] for call in made)


def test_the_original_is_rounded_where_nothing_smaller_is_good_enough(made):
    found = searching(by_size(1.0)).run()
    assert [(one.stages, one.int8) for one in found] == [("int8", True)]
    assert searching(lambda model: 0.5).run() == []


def test_what_cannot_be_pruned_or_trained_ends_the_way_down(made):
    said = []
    found = searching(lambda model: 0.0, said=said).run()
    assert min(one.share for one in found) == pytest.approx(0.03125)
    assert any("cannot be reached" in line for line in said)


def test_the_time_is_kept_and_the_first_training_is_made(made, monkeypatch):
    said = []
    asked = searching(lambda model: 0.0, seconds=-1.0, said=said)
    clock = iter(range(1000))
    monkeypatch.setattr(search.time, "monotonic", lambda: float(next(clock)) + 1e9)
    found = asked.run()
    assert [call for call in made if call[0] == "distill"] == [("distill", 0.5)]
    assert {round(one.share, 2) for one in found} == {0.5, 1.0}
    assert any("--budget" in line for line in said)


def test_without_training_nothing_is_taught(made):
    found = searching(by_size(0.4), train=None).run()
    assert not any(call[0] == "distill" for call in made)
    assert found[0].stages == "prune=0.5,int8"


def test_what_a_search_chooses_by_is_never_what_the_race_checks_with():
    rows = split_samples([list(range(5000))], SubjectRequest("", "m", calibration=256, samples=2000))
    held_out = set(rows["held_out"].tolist())
    assert len(held_out) == 2000
    assert held_out.isdisjoint(rows["calibration"].tolist())
    assert held_out.isdisjoint(rows["spare"].tolist())
    assert len(rows["spare"]) == 5000 - 2256


def test_a_search_without_a_metric_is_refused():
    with pytest.raises(FlatoutError, match="chooses by the metric"):
        OptimizeRequest("m.keras", data="d.npz", compress="search")


class Weighted(Model):
    """As much of a model as its fingerprint looks at."""

    @property
    def weights(self):
        value = np.full(2, self.value, np.float32)
        return [SimpleNamespace(path="kernel", numpy=lambda: value)]


def test_checkpoints_belong_to_the_model_that_they_were_made_from(tmp_path):
    def checkpoint(original, model):
        resources = Resources(Weighted(value=original), None, [], tmp_path)
        return Search(resources, float, 0.0, 0.0, print)._checkpoint("prune=0.5,distill", Weighted(value=model))

    assert checkpoint(1, 2) == checkpoint(1, 2), "a search that was killed finds its own"
    assert len({checkpoint(1, 2), checkpoint(1, 3), checkpoint(4, 2)}) == 3, (
        "one of another model or by another way does not"
    )
