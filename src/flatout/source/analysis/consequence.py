"""Whether a finding would matter to the reader, by where it stands: not in what is shown, tried or timed."""

from __future__ import annotations

import re

from flatout.source.analysis.patterns import Confidence, Match
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.small_data import has_small_data

_TEST_FILE = re.compile(
    r"(^|[/\\])(tests?[/\\]|testing[/\\]|benchmarks?[/\\]|(test|benchmark)_[^/\\]*\.py$|conftest\.py$)"
    r"|[^/\\]*_(tests?|benchmark)\.py"
)
_ASIDE_PATH = re.compile(
    r"(^|[/\\])(docs?|_static|archived|\w*guides?|demos?|samples?|snippets?|scratch|playground|sandbox|experiments?[/\\]old|archive|deprecated|"
    r"third_party|legacy|_old|old_\w+|backups?|obsolete|outdated|unused|toys?|hello_?worlds?)[/\\]|(^|[/\\_-])(demo|sample|snippet|playground|profil\w*|bench\w*|timing)"
    r"\w*\.(py|ipynb)$|(^|[/\\])scratch\w*\.(py|ipynb)$|(^|[/\\_-])(hello_?world\w*|testrealm\w*|toy\w*|debug\w*|untitled\w*|temp|tmp|old_\w*)\.(py|ipynb)$|[/\\](~?old|reference)[/\\]|"
    r"(^|[/\\])test[^/\\]*\.ipynb$|[-_ ]test\.ipynb$",
    re.IGNORECASE,
)
_ASIDE_FUNCTION = re.compile(
    r"^_?(demo|test|plot|draw|show|visuali[sz]e|display|bench\w*|profile|example|debug|sanity|smoke)(_|\d|$)|"
    r"(^|_)(demo|example|visuali[sz]ation|benchmark|smoke_test|unit_test)$",
    re.IGNORECASE,
)


def is_test(path: str) -> bool:
    return _TEST_FILE.search(path) is not None


def confidence(match: Match, site: Site, of_input: bool = False, of_speed: bool = True) -> Confidence:
    """The detector's own confidence, and low where the code, or the data it makes, is there to be looked at, or where
    all data of the program are a few numbers."""
    if match.confidence == "low" or _is_shown(site) or is_aside(site.module.path, site.module.text):
        return "low"
    if of_input and _is_looked_at(site):
        return "low"
    if of_speed and has_small_data(site.module):
        return "low"
    return match.confidence


def _is_looked_at(site: Site) -> bool:
    """Whether a script makes its data only to print or plot them: nothing in the file trains, predicts or writes."""
    named = [scope.name for scope in site.scope.around() if scope.is_function and scope.name != "<lambda>"]
    if named not in ([], ["main"]) or any(scope.is_class for scope in site.scope.around()):
        return False
    calls = site.module.calls_by_name
    if any(name in calls for name in _USES):
        return False
    return any(where.loops for name in _LOOKS for _, where in calls.get(name, ()))


_USES = (
    *("fit", "fit_generator", "train_on_batch", "GradientTape", "apply_gradients", "minimize", "train", "train_step"),
    *("predict", "predict_generator", "predict_on_batch", "evaluate", "evaluate_generator", "model", "run"),
    *("TFRecordWriter", "write", "save", "savez", "experimental_distribute_dataset", "timeit"),
)
_LOOKS = ("print", "imshow", "show", "plot", "scatter", "pprint", "display", "image")


def is_aside(path: str, text: str) -> bool:
    """Whether nothing in a file is of more than low confidence: it is a test, a sample, or a part of TensorFlow."""
    return is_test(path) or _ASIDE_PATH.search(path) is not None or _is_tensorflow(text)


def _is_tensorflow(text: str) -> bool:
    """By what it imports."""
    return text.count("from tensorflow.python.framework import") + text.count("from tensorflow.python.ops import") >= 4


def is_explained(site: Site, line: int, lines: int = 4) -> bool:
    """Whether a comment at a line, or some lines above it without an empty one between, gives a reason."""
    number = line
    while number > max(line - lines - 1, 0):
        text = site.module.source_line(number).strip()
        if not text:
            return False
        if "#" in text and _REASON.search(text.partition("#")[2]):
            return True
        number -= 1
    return False


_REASON = re.compile(
    r"avoid|because|since|so (no|that|we)|should|must|need|disable|interfer|otherwise|deterministic|order|on purpose|"
    r"intention|reproduc|prevent|require|workaround|hack|bug|memory|overhead",
    re.IGNORECASE,
)


def _is_shown(site: Site) -> bool:
    return any(scope.is_function and _ASIDE_FUNCTION.search(scope.name) for scope in site.scope.around())
