"""Reading user code: `ast` to find, edits elsewhere."""
