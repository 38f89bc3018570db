"""The JSON Schema of a case, made from its classes: what other programs may rely on in `--json` and `case.json`.

A reader passes over names that it does not know: a newer version may add some, and words to a vocabulary.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, Literal

from flatout.model.case import SCHEMA, Case
from flatout.model.codec import Json
from flatout.model.evidence.base import Evidence

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: dict[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # null where it is not finite
    types.NoneType: {"type": "null"},
}


def case_schema() -> Json:
    """Of the whole case."""
    from flatout.model.evidence import kinds  # noqa: F401  # registers every kind of evidence

    definitions: dict[str, Json] = {}
    reference = _form(Case, definitions)
    return {
        "$schema": DIALECT,
        "$id": f"flatout-case-{SCHEMA}",
        "title": "A case of flatout",
        "description": "Times are milliseconds, sizes bytes, shares 0 to 1; a speedup above 1 is faster.",
        **reference,
        "$defs": dict(sorted(definitions.items())),
    }


def _form(kind: Any, definitions: dict[str, Json]) -> Json:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return {}
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    if origin is Literal:
        return {"type": "string", "examples": list(arguments)}  # a newer version may have further words
    if origin in (typing.Union, types.UnionType):
        return _union([_form(one, definitions) for one in arguments])
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _form(arguments[0], definitions)}
    if origin is tuple:
        return _few(arguments, definitions)
    if origin is dict:
        return {"type": "object", "additionalProperties": _form(arguments[1], definitions)}
    if isinstance(kind, type) and issubclass(kind, tuple):  # a NamedTuple
        return _few(tuple(typing.get_type_hints(kind).values()), definitions)
    return _defined(kind, definitions)


def _union(forms: list[Json]) -> Json:
    """Several simple types are one; words of several vocabularies are together."""
    if all(set(form) <= {"type", "examples"} for form in forms):
        kinds = dict.fromkeys(one for form in forms for one in _types(form))
        words = [word for form in forms for word in form.get("examples", ())]
        names = list(kinds)
        return {"type": names[0] if len(names) == 1 else names, **({"examples": words} if words else {})}
    return {"anyOf": forms}


def _types(form: Json) -> list[str]:
    return form["type"] if isinstance(form["type"], list) else [form["type"]]


def _few(kinds: tuple[Any, ...], definitions: dict[str, Json]) -> Json:
    forms = [_form(one, definitions) for one in kinds]
    return {"type": "array", "prefixItems": forms, "minItems": len(forms), "maxItems": len(forms)}


def _defined(kind: Any, definitions: dict[str, Json]) -> Json:
    """A class, written once under `$defs`."""
    if isinstance(kind, type) and issubclass(kind, Evidence):
        kind = Evidence
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a class that holds itself ends here
        definitions[name] = _evidence(definitions) if kind is Evidence else _object(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, definitions: dict[str, Json]) -> Json:
    hints = typing.get_type_hints(kind)
    fields = [field for field in dataclasses.fields(kind) if not field.metadata.get("rest")]
    form: Json = {
        "type": "object",
        "properties": {
            field.metadata.get("name") or field.name: _form(hints[field.name], definitions) for field in fields
        },
    }
    required = [
        field.metadata.get("name") or field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    about = (kind.__doc__ or "").partition("\n\n")[0].strip()
    described = about and not about.startswith(f"{kind.__name__}(")  # not the text that dataclasses make
    return {**({"description": " ".join(about.split())} if described else {}), **form, "required": required}


def _evidence(definitions: dict[str, Json]) -> Json:
    from flatout.model.evidence.base import KINDS
    from flatout.model.location import Where

    return {
        "description": "Something observed: what, how much, where, and by which instrument.",
        "type": "object",
        "properties": {
            "kind": {"type": "string", "examples": sorted(KINDS)},
            "value": {"type": ["number", "string", "boolean", "null"]},
            "unit": {"type": "string"},
            "where": {"anyOf": [_form(Where, definitions), {"type": "null"}]},
            "source": {"type": "string"},
            "note": {"type": "string"},
            "data": {"type": "object", "description": "What else this kind of evidence has."},
        },
        "required": ["kind"],
    }
