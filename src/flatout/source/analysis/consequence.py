"""Whether a finding would matter to the reader, by where it stands: not in what is shown, tried or timed."""

from __future__ import annotations

import re

from flatout.source.analysis.patterns import Confidence, Match
from flatout.source.analysis.scopes import Site

_TEST_FILE = re.compile(
    r"(^|[/\\])(tests?[/\\]|testing[/\\]|benchmarks?[/\\]|(test|benchmark)_[^/\\]*\.py$|conftest\.py$)"
    r"|[^/\\]*_(tests?|benchmark)\.py"
)
_ASIDE_PATH = re.compile(
    r"(^|[/\\])(docs?|_static|\w*guides?|demos?|samples?|snippets?|scratch|playground|sandbox|experiments?[/\\]old|archive|deprecated|"
    r"third_party|legacy|_old|toys?|hello_?worlds?)[/\\]|(^|[/\\_-])(demo|sample|snippet|scratch|playground|profil\w*|bench\w*|timing)"
    r"\w*\.(py|ipynb)$|(^|[/\\_-])(hello_?world\w*|testrealm\w*|toy\w*|debug\w*|untitled\w*|temp|tmp|old_\w*)\.(py|ipynb)$|[/\\](~?old|reference)[/\\]|"
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


def confidence(match: Match, site: Site) -> Confidence:
    """The detector's own confidence, and low where the code is there to be looked at."""
    if match.confidence == "low" or _is_shown(site) or is_aside(site.module.path, site.module.text):
        return "low"
    return match.confidence


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
