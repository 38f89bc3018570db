"""One program in several environments: which is faster, what differs, and which release made the difference.

    specification.py   what a user types for an environment → what is meant
    environments.py    environments that are made for it, kept in a cache by what is in them
    observation.py     the program observed in each environment, as a trial
    contest.py         the same program in two environments, raced as `tune` races levers
    session.py         `flatout compare --env A --env B PROGRAM`
    releases.py        which releases there are, and what two lists of packages differ by
    bisection.py       the first of several environments that is slow
    search.py          `flatout bisect --good A --bad B PROGRAM`

flatout itself is installed in none of them: the program's interpreter imports its source, which needs numpy alone.
`compare.environments` has what comes out of it.
"""
