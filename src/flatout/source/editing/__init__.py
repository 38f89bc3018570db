"""Changes of source text: a document with its tree, and libraries for the repairs and the edits of cures."""
