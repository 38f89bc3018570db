"""Changing the user's source: one file per kind of edit, each with `edit(source, path, case, value)`.

An edit gets the text of one file and the Case of the observed run, and returns the file's new text, or None where it
has nothing to change or is not sure. libcst tells what stands where and what a name means; the change itself is a
splice of the text, so that everything outside of it stays as it is, byte for byte. An edit of its own result changes
nothing.
"""
