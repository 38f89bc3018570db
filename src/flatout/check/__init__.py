"""`flatout check`: performance faults that can be seen in source, without running it and without TensorFlow.

The detectors are part of their causes in `flatout.causes`: functions marked with `@pattern`. `flatout.source.analysis`
reads the source for them, `flatout.source.repairs` describes the repairs. This package applies them:

- `workflow`: a request → a report;
- `checker`: one text → diagnostics; `suppressions`, `settings`, `selection`: which of them are reported;
- `files`, `cache`, `driver`: many files, in several processes, each content only once;
- `text_repair`, `file_repair`: the repairs of one text, and of all files;
- `output/`: one file per format; `language_server`: the same for editors.
"""
