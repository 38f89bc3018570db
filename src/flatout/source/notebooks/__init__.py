"""Notebooks: their code cells as one text, as a program to run, and edits of that text back in the file.

text.py       the code cells as one text, and cell and line of a place in it
cells.py      where the source of each cell stands in the file, so that an edit changes one cell alone
program.py    that text as a Python file that runs as the notebook would
kept_cells.py cells of it that a tune runs once: their statements, and the names that matter to the others
"""
