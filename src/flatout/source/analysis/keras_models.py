"""Which objects with a `predict` are Keras models, as far as the source shows."""

from __future__ import annotations

import ast
import re

from flatout.source.analysis import datasets
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import last_name

_LIKE_MODEL = re.compile(
    r"model|(^|_)net(work)?$|generat|discriminator|actor|critic|encoder|decoder|autoencoder|classifier|gan$|policy|cnn|"
    r"lstm|mobilenet|resnet|vgg",
    re.IGNORECASE,
)
_OTHERS = (
    *("sklearn", "xgboost", "lightgbm", "catboost", "statsmodels", "torch", "ultralytics", "paddle", "mxnet"),
    *("gluonts", "stable_baselines", "stable_baselines3", "pmdarima", "prophet", "fbprophet", "hmmlearn", "cuml"),
    *("surprise", "fasttext", "gensim", "spacy", "pycaret", "autogluon", "cv2", "dlib", "joblib", "pickle"),
)
"""Libraries whose models have a predict of their own."""
_ARGUMENTS = (
    *("x", "batch_size", "verbose", "steps", "callbacks"),
    *("max_queue_size", "workers", "use_multiprocessing"),
)
"""Of `predict`, in all versions of Keras."""
_BESIDE = (
    *("sklearn.metrics", "sklearn.model_selection", "sklearn.preprocessing", "sklearn.utils", "sklearn.datasets"),
    *("sklearn.manifold", "sklearn.feature_extraction", "sklearn.decomposition", "sklearn.externals"),
    *("cv2", "joblib", "pickle"),
)
"""What programs with Keras models import of them, or beside them."""


def is_keras_model(model: ast.expr, call: ast.Call, site: Site) -> bool:
    """Whether `model`, of which `call` calls a method, is one."""
    bound = None
    foreign = any(item.arg is not None and item.arg not in _ARGUMENTS for item in call.keywords)
    if foreign and last_name(call.func) == "predict":
        return False  # a predict of its own
    if isinstance(model, ast.Subscript):
        model = model.value  # `models[0].predict(x)`
    if isinstance(model, ast.Name) and model.id == "self":
        return _is_own_model(site)
    if isinstance(model, ast.Name):
        bound = datasets.binding(model.id, site)
    elif isinstance(model, ast.Attribute) and isinstance(model.value, ast.Name) and model.value.id == "self":
        bound = datasets.attribute_binding(model.attr, site)
    if bound is None and isinstance(model, ast.Name) and _is_module(model.id, site):
        return False
    made = site.dotted(bound.value.func) if bound is not None and isinstance(bound.value, ast.Call) else ""
    if made.startswith("keras."):
        return True
    own = _own_class(bound.value, site) if bound is not None else None
    if own is not None:
        return own
    if bound is not None and isinstance(bound.value, ast.Call) and _returns_model(bound.value, bound.site):
        return True
    if made.split(".")[0] in _OTHERS:
        return False  # made by another library
    if any(item.arg in ("batch_size", "verbose", "steps") for item in call.keywords):
        return not site.module.names.imports_any("torch", "ultralytics")
    named = [last_name(model), *([made.rpartition(".")[2]] if made else [])]
    likely = any(_LIKE_MODEL.search(name) is not None for name in named)
    return likely and not site.module.names.imports_beyond(_OTHERS, _BESIDE)


def _is_module(name: str, site: Site) -> bool:
    """`import scores as model`, where no argument hides it: its functions are no model of Keras."""
    return name in site.module.names.modules and not any(name in scope.arguments for scope in site.scope.around())


def _is_own_model(site: Site) -> bool:
    """`self.predict(x)` in a class that derives from keras.Model."""
    owner = next((scope for scope in site.scope.around() if scope.is_class), None)
    if owner is None or owner.method("predict") is not None:
        return False
    return any(site.dotted(base) in ("keras.Model", "keras.Sequential") for base in getattr(owner.node, "bases", ()))


def _returns_model(call: ast.Call, site: Site, depth: int = 0) -> bool:
    """`self.build_generator()`, where that function of the file returns a Keras model."""
    made = site.module.function_of(call.func, site)
    if made is None or depth > 2:
        return False
    for returned, where in made.facts.returns:
        value = returned.value
        if isinstance(value, ast.Name):
            found = datasets.binding(value.id, where)
            value, where = (found.value, found.site) if found is not None else (None, where)
        if not isinstance(value, ast.Call):
            continue
        if where.dotted(value.func).startswith("keras.") or _returns_model(value, where, depth + 1):
            return True
    return False


def _own_class(made: ast.expr | None, site: Site) -> bool | None:
    """Whether a class of this file is a Keras model; None for what is not made by a class of this file."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name) or made.func.id not in site.module.classes:
        return None
    owner = site.module.classes[made.func.id]
    if owner.method("predict") is not None:
        return False  # a predict of its own
    bases = getattr(owner.node, "bases", ())
    return any(site.dotted(base).startswith("keras.") or last_name(base).endswith("Model") for base in bases)
