"""One check per file, found by its file.

A check is a module of this package:

- its docstring is its page: the first line is the title, the rest says what is looked at and why it matters;
- `GROUP` is one of machine, tensorflow, gpu, settings;
- `check(facts)` yields a `Reading` for each thing worth a line. A fact that is missing is never a fault.
"""
