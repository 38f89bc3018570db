"""Editing user source: documents, calls, statements, names, diffs. The edits of one cure stand in its folder."""
