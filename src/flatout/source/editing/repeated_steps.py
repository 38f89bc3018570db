"""Loops that make the same updates on the same batch again and again: `for _ in range(80): train(states, returns)`.

All of them can be one call of a graph that holds the loop, where nothing of an iteration is used by the next one or
behind the loop but the variables themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flatout.source.editing.dataflow import FUNCTIONS, LOOPS, Flow, called_name, names_in
from flatout.source.editing.graph_fit import UPDATES, Obstacle, every, is_traced
from flatout.source.editing.step_search import Search, Step

FEWEST = 2


@dataclass(frozen=True)
class RepeatedStep:
    loop: ast.For
    times: ast.expr
    """What `range` is given."""
    step: Step
    """The whole loop as a step."""


def around(
    module: ast.Module, line: int, others: Mapping[str, ast.Module] | None = None
) -> RepeatedStep | Obstacle | None:
    """The innermost such loop around a line, or why the innermost loop of this form is none; None where there is no
    loop over a number around it."""
    search = Search(module, line, others=others, traced=True)
    loops = [
        (depth, level.block[level.index])
        for depth, level in enumerate(search.levels)
        if isinstance(level.block[level.index], (ast.For, ast.While))
    ]
    functions = [level.owner for level in search.levels if isinstance(level.owner, FUNCTIONS)]
    if not loops or any(map(is_traced, functions)):
        return None
    depth, loop = loops[-1]
    if not functions and not any(isinstance(level.owner, LOOPS) for level in search.levels[: depth + 1]):
        return None  # it is the whole training
    times = _times(loop)
    if times is None or not isinstance(loop, ast.For):
        return None
    why = _obstacle(search, loop)
    if why is not None:
        return why
    step = search.whole(depth, loop)
    return step if isinstance(step, Obstacle) else RepeatedStep(loop, times, step)


def _times(loop: ast.stmt) -> ast.expr | None:
    """`80` of `for _ in range(80):`, for a loop that does not look at its number."""
    if not isinstance(loop, ast.For) or loop.orelse or not isinstance(loop.target, ast.Name):
        return None
    head = loop.iter
    if not isinstance(head, ast.Call) or ast.unparse(head.func) != "range" or len(head.args) != 1:
        return None
    times = head.args[0]
    if isinstance(times, ast.Constant):
        return times if isinstance(times.value, int) and times.value >= FEWEST else None
    plain = all(isinstance(node, (ast.Name, ast.Attribute, ast.expr_context)) for node in ast.walk(times))
    return times if plain else None


def _obstacle(search: Search, loop: ast.For) -> Obstacle | None:
    """Why an iteration cannot be a part of one graph with the others."""
    assert isinstance(loop.target, ast.Name)
    if not any(_updates(search, statement) for statement in loop.body):
        return Obstacle(loop.lineno, "repeats no update of weights")
    early = {id(node) for index in range(len(loop.body)) for node in _stops_early(loop.body, index)}
    for node in every(loop.body):
        if isinstance(node, (ast.Break, ast.Continue, ast.Return)) and id(node) not in early:
            return Obstacle(node.lineno, "decides in Python whether the loop goes on")
        if isinstance(node, ast.Name) and node.id == loop.target.id:
            return Obstacle(node.lineno, f"looks at the number of the iteration, {node.id}")
    found = search.fit.obstacle([loop])
    if found is not None:
        return found
    flow = Flow(loop.body)
    carried = sorted(set(flow.read) & set(flow.written))
    if carried:
        return Obstacle(loop.lineno, f"begins a loop that goes on with {', '.join(carried)} of the iteration before")
    return None


def _stops_early(body: Sequence[ast.stmt], index: int) -> Sequence[ast.stmt]:
    """The `break` of `if kl > 1.5 * limit:`, where the step has just computed `kl`: a loop of a graph can stop so."""
    statement = body[index]
    if not isinstance(statement, ast.If) or statement.orelse or not isinstance(statement.test, ast.Compare):
        return ()
    alone = len(statement.body) == 1 and isinstance(statement.body[0], ast.Break)
    calls = any(isinstance(node, ast.Call) for node in ast.walk(statement.test))
    given_by_step = {
        name
        for before in body[:index]
        if isinstance(before, ast.Assign) and isinstance(before.value, ast.Call)
        for target in before.targets
        for name in names_in(target)
    }
    computed = given_by_step & set(names_in(statement.test))
    return statement.body if alone and computed and not calls else ()


def _updates(search: Search, statement: ast.stmt) -> bool:
    if search.fit.has_tape(statement, traced=True):
        return True
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(called_name(call.func) in UPDATES for call in calls)


def is_invariant(found: RepeatedStep) -> bool:
    """Whether nothing that the loop sets decides how often it runs."""
    return not set(names_in(found.times)) & set(Flow(found.loop.body).written)
