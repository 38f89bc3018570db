"""The pipeline's cache is at a stage where it keeps the wrong thing, or is never completed.

## What it is
`cache` keeps what the stages before it give, once the first pass has reached the end. Behind a random stage it keeps
one draw for all epochs; behind `shuffle` one order; behind `repeat` there is no end to reach; and in front of a `take`
that stops early it is never complete.

## Why it costs
A cache that never completes is filled and thrown away in each epoch: all of the work, and the memory besides. Behind
an endless `repeat` it grows until the memory is full. Behind random stages it is fast and wrong: the model sees the
same augmented images in every epoch.

## How it looks
```python
dataset = tf.data.Dataset.from_tensor_slices(paths).map(decode).shuffle(2000).map(augment).cache().batch(64)
sample = full.cache().take(1000)
```

## The cure
Cache after the last stage that yields the same in every epoch, before shuffle, augmentation and repeat, and take
before caching:
```python
dataset = tf.data.Dataset.from_tensor_slices(paths).map(decode).cache().shuffle(2000).map(augment).batch(64)
sample = full.take(1000).cache()
```
- An edit of the source: **semantic** where randomness comes back, exact where only `take` moves.
- `cache`: the lever finds the right stage by itself.

## When it is not worth it
When the frozen order or the frozen draws are wanted, for instance in a validation set that must stay the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword, loaded_names


@pattern(
    "after-random", calls=("cache",), needs=("map",), written=r"random|sample_distorted", on_dataset=True, seldom=True
)
def _after_random(call: ast.Call, site: Site) -> Iterator[Match]:
    """A cache behind a map that draws random numbers."""
    chain = datasets.before(call, site)
    stage = next(
        (s for s in chain.stages if s.name == "map" and datasets.draws_at_random(s.function) is not None), None
    )
    if stage is None or _is_lost(call, site):
        return
    if chain.certain and "cache" not in chain.names() and not site.unsure_of(stage.site):
        drawn = datasets.draws_at_random(stage.function)
        yield Match(
            call,
            f"cache keeps the random draws of the first epoch ({drawn[0].replace('tensorflow', 'tf') if drawn else ''} "
            "comes before it): every later epoch repeats them.",
            "Move cache before the random stage.",
            "semantic",
            report_at=call.func,
            confidence="low" if _is_off_by_default(site) else "high",
        )


def _is_lost(call: ast.Call, site: Site) -> bool:
    """Whether nothing gets the dataset with the cache, so that nothing is kept: `discarded-stage` reports it."""
    return isinstance(site.statement, ast.Expr) and site.statement.value is call


def _is_off_by_default(site: Site) -> bool:
    """Whether it stands under an argument that is off unless it is given: `def prepare(rows, cache=False)`."""
    given = getattr(site.scope.node, "args", None)
    if not isinstance(given, ast.arguments):
        return False
    named = (*given.posonlyargs, *given.args)
    pairs = [
        *zip(reversed(named), reversed(given.defaults), strict=False),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    off = {item.arg for item, value in pairs if value is not None and constant(value) in (False, None)}
    tests = {name for test, _ in site.arms if isinstance(test, ast.If) for name in loaded_names(test.test)}
    return bool(off & tests)


@pattern("after-shuffle", calls=("cache",), needs=("shuffle",), on_dataset=True, seldom=True)
def _after_shuffle(call: ast.Call, site: Site) -> Iterator[Match]:
    """A cache behind a shuffle, with no shuffle behind the cache."""
    chain = datasets.before(call, site)
    shuffle = chain.last("shuffle")
    if shuffle is None or not chain.certain or constant(keyword(shuffle.call, "reshuffle_each_iteration")) is False:
        return
    since = {stage.name for stage in chain.since(shuffle)}
    if {"interleave", "flat_map", "take", "skip", "shard"} & since:
        return  # files were shuffled, or a part was chosen at random, for good
    if (
        _is_lost(call, site)
        or _followed_by("shuffle", call, site)
        or site.unsure_of(shuffle.site)
        or shuffle.site.scope is not site.scope
    ):
        return
    yield Match(
        call,
        "cache comes after shuffle: the batches of the first epoch are kept for all others."
        if {"batch", "padded_batch"} & since
        else "cache comes after shuffle: the order of the first epoch is kept for all others.",
        "Move cache before shuffle.",
        "semantic",
        report_at=call.func,
        confidence="low" if _for_validation(site) else "high",
    )


@pattern("after-repeat", calls=("cache",), needs=("repeat",), on_dataset=True)
def _after_repeat(call: ast.Call, site: Site) -> Iterator[Match]:
    """A cache behind a repeat."""
    chain = datasets.before(call, site)
    repeat = chain.last("repeat")
    if repeat is None or not chain.certain or "take" in [stage.name for stage in chain.since(repeat)]:
        return
    if site.unsure_of(repeat.site) or _is_lost(call, site):
        return
    count = constant(argument(repeat.call, 0, "count"))
    endless = count is None or count == -1 or not (repeat.call.args or repeat.call.keywords)
    yield Match(
        call,
        "cache comes after an endless repeat: it never completes and grows until the memory is full."
        if endless
        else "cache comes after repeat: it keeps every repetition.",
        "Move cache before repeat.",
        report_at=call.func,
    )


@pattern("before-take", calls=("take",), words=("cache",), on_dataset=True)
def _before_take(call: ast.Call, site: Site) -> Iterator[Match]:
    """`ds = ds.cache().take(100)`: the cache is never read to its end."""
    if not isinstance(site.statement, (ast.Assign, ast.Return)):
        return  # `for x in ds.take(1)`, to have a look
    if constant(argument(call, 0, "count")) == 1:
        return
    chain = datasets.before(call, site)
    cache = chain.last("cache")
    if cache is None or not chain.certain or cache.call.args or cache.call.keywords:
        return
    if {"repeat", "shuffle"} & {stage.name for stage in chain.since(cache)}:
        return
    yield Match(
        call,
        "take stops before the cache is complete, so that it is thrown away and filled again in every epoch.",
        "take first, then cache.",
        report_at=call.func,
    )


def _for_validation(site: Site) -> bool:
    """Whether what gets its value here is named for validation or tests, where one order is as good as another."""
    targets = site.statement.targets if isinstance(site.statement, ast.Assign) else []
    written = " ".join(ast.unparse(target) for target in targets) + " " + site.scope.name
    return re.search(r"(^|[\W_])(val|valid|validation|test|eval|dev)([\W_]|\d|$)", written, re.IGNORECASE) is not None


def _followed_by(name: str, call: ast.Call, site: Site) -> bool:
    return any(
        any(stage.call is call for stage in datasets.before(later, where).stages)
        for later, where in site.module.calls_by_name.get(name, ())
    )


CAUSE = Cause(
    group="input",
    cures=("cache",),
    patterns=(_after_random, _after_shuffle, _after_repeat, _before_take),
)
