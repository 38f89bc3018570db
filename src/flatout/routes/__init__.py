"""The ways to serve a model, one module or folder each.

A module or folder of this package whose name does not begin with an underscore defines `ROUTES`, a tuple of `Route`
instances: one for each precision that the runtime offers. Importing it is cheap: what a route needs is imported inside
its methods. `Route.order` decides the order in which routes are tried.

The variable FLATOUT_ROUTES names further directories with such modules: a project's own.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import os
import pkgutil
from collections.abc import Mapping

from flatout.model.errors import UnknownRoute
from flatout.routes._route import Route

__path__.extend(filter(None, os.environ.get("FLATOUT_ROUTES", "").split(os.pathsep)))


@functools.cache
def catalogue() -> Mapping[str, Route]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {route.name: route for module in modules for route in module.ROUTES}


def find(name: str) -> Route:
    routes = catalogue()
    if name in routes:
        return routes[name]
    close = difflib.get_close_matches(name, routes, n=3, cutoff=0.4)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise UnknownRoute(f"There is no route named {name!r}.{hint} The routes are: {', '.join(routes)}.")
