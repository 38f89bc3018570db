"""Inside a notebook: `%load_ext flatout`, then `%%flatout` and `%%flatout tune` on a cell.

    magics.py     what is typed in a cell
    history.py    the cells of this session as a notebook, and as places to name in findings
    bar.py        how far a long piece of work is

IPython is there where this is used; it is imported inside functions alone.
"""
