"""`flatout serve`: the cases of `.flatout/` as a local web page, with reports, comparisons, trends and running
programs.

    guard.py            accepts requests of this machine only, and none of other sites' pages
    server.py           requests → pages; it never changes a case
    case_directory.py   the finished and unfinished cases of the directory
    progress.py         the progress of a `run` or `tune`, from the files it has written so far
    pages/              one file per page
    assets/             styles and scripts in addition to those of the report

The pages load nothing from outside the server.
"""
