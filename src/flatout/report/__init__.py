"""Views of a Case: terminal, json and others. A Case goes in, text comes out; nothing runs a program."""
