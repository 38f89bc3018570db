"""The ways to serve a model, one module or folder each.

A module or folder of this package whose name does not begin with an underscore defines `ROUTES`, a tuple of `Route`
instances: one for each precision that the runtime offers. Importing it is cheap: what a route needs is imported inside
its methods. `Route.order` decides the order in which routes are tried.

Directories named in the variable FLATOUT_PLUGINS add further routes: `DIR/routes/*.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from flatout.model.errors import PluginInvalid, UnknownRoute
from flatout.plugins import Catalogue, suggestion
from flatout.routes._route import Route
from flatout.routes._split import SUFFIX, split

MODULES = Catalogue(__name__, declares="ROUTES", kind=tuple)


@functools.cache
def catalogue() -> Mapping[str, Route]:
    """All routes by name."""
    routes: dict[str, Route] = {}
    for loaded in MODULES.all().values():
        for route in loaded.spec:
            if not isinstance(route, Route):
                raise PluginInvalid(f"{loaded.module.__file__}: ROUTES contains {route!r}, which is not a Route.")
            routes[route.name] = route
    return routes


def find(name: str) -> Route:
    routes = catalogue()
    if name in routes:
        return routes[name]
    if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in routes:
        return split(routes[name.removesuffix(SUFFIX)])
    raise UnknownRoute(
        f"There is no route named {name!r}.{suggestion(name, routes)} The routes are: {', '.join(routes)}."
    )
