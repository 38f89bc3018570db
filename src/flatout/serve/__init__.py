"""`.flatout/` as a local web page: the cases, the reports, comparisons, trends, and what runs right now.

    guard.py       who may ask: this machine alone, and no other site's page
    server.py      requests → pages; no case is ever changed
    shelf.py       what lies in the directory, and what of it is still running
    live.py        how far a running `run` or `tune` has come, from what it has written so far
    pages/         one file per page
    assets/        what the browser needs beyond the style and the scripts of the report

The pages ask for nothing outside the server.
"""
