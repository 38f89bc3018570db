"""Whose method a call of an attribute's object is."""

from __future__ import annotations

import ast

import pytest

from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.project import Project
from flatout.source.editing.receivers import Receivers

CLASSES = """
class Net:
    def train(self): ...

class Actor(Net):
    def save(self): ...

class Agent:
    def __init__(self, actor=None):
        {}

    def train(self):
        self.actor.train()
"""
MAKES = "self.actor = Actor()"


def called(module: ast.Module) -> ast.Call:
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    return next(call for call in calls if ast.unparse(call) == "self.actor.train()")


@pytest.mark.parametrize(
    ("body", "classes"),
    [
        (MAKES, {"Actor"}),
        ("self.actor, self.critic = Actor(), Net()", {"Actor"}),
        ("self.actor: Net = Net()", {"Net"}),
        ("self.actor = None; self.actor = Actor()", {"Actor"}),
        ("self.actor = Actor() if actor is None else actor", None),
        ("self.actor = Actor(); self.actor = actor or self.actor", None),
        ("self.actor, self.critic = both()", None),
        ("self.actor = Actor(); [0 for self.actor in actors]", None),
        ("self.actor = Actor(); setattr(self, 'actor', actor)", None),
        ("self.actor = Actor(); setattr(self, name, 'one')", None),
        ("self.actor = Actor(); setattr(self, 'critic', name)", {"Actor"}),
        ("self.actor = make_actor()", None),
    ],
)
def test_an_attribute_has_the_classes_that_it_is_always_made_of(body: str, classes: set[str] | None) -> None:
    module = ast.parse(CLASSES.format(body))
    assert Receivers([module]).classes_of(called(module).func) == classes


def test_a_name_in_the_body_of_a_class_may_be_anything() -> None:
    module = ast.parse(CLASSES.format(MAKES) + "\n\nclass Other(Agent):\n    actor = Agent()\n")
    assert Receivers([module]).classes_of(called(module).func) is None


@pytest.mark.parametrize(("body", "holders"), [(MAKES, ["Net"]), ("self.actor = actor", ["Net", "Agent"])])
def test_methods_of_other_classes_with_the_same_name_are_not_meant(body: str, holders: list[str]) -> None:
    text = CLASSES.format(body)
    module = ast.parse(text)
    call = called(module)
    holders_by_line = {3: "Net", 12: "Agent"}
    found = [holders_by_line[function.lineno] for function in fit_of(module).meant(call)]
    assert found == holders
    project = Project({"agent.py": text})
    agent = next(code for code in project.codes["train"] if code.holder == "Agent")
    assert isinstance(call.func, ast.Attribute)
    assert [code.holder for code in project.meant(call.func, agent)] == holders


def test_a_class_of_another_file_has_none_of_the_methods_here() -> None:
    text = "from networks import Actor\n" + CLASSES.replace("class Actor(Net):", "class Policy(Net):").format(MAKES)
    module = ast.parse(text)
    assert fit_of(module).meant(called(module)) == []
