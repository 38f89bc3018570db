"""Every slow and good program of tests/programs: is the first finding the fault, on its line? Are good ones left alone?

`scripts/bench programs` runs all; name programs to run only those.
"""

from __future__ import annotations

import sys

from _programs import PROGRAMS, observe


def main() -> None:
    import manifest

    only = sys.argv[1:]
    right = {"slow": 0, "good": 0}
    total = {"slow": 0, "good": 0}
    for kind in ("slow", "good"):
        for path in sorted((PROGRAMS / kind).glob("*.py")):
            if only and path.stem not in only:
                continue
            expected = manifest.marker(path)
            case = observe(path)
            found = [(f["cause"], (f["where"] or {}).get("line"), f["cost_share"] or 0.0) for f in case["findings"]]
            if kind == "slow":
                fine = bool(found) and found[0][:2] == expected
            else:
                fine = all(share <= 0.10 for _, _, share in found)
            total[kind] += 1
            right[kind] += fine
            shown = ", ".join(f"{cause}:{line} {share:.0%}" for cause, line, share in found[:3]) or "nothing"
            wanted = f"{expected[0]}:{expected[1]}" if kind == "slow" else "nothing above 10 %"
            print(f"{'ok ' if fine else 'BAD'} {kind} {path.stem:26s} expected {wanted:28s} found {shown}", flush=True)
    slow, good = (f"{right[kind]} of {total[kind]}" for kind in ("slow", "good"))
    print(f"{slow} slow programs named, {good} good ones left alone")


if __name__ == "__main__":
    main()
