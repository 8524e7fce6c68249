#!/usr/bin/env python3
"""Counts what the last run of ctest skipped, and fails on a skip whose reason tests/skips.txt does not allow.

usage: tools/check-skips.py BUILD [BUILD ...]      (folders in which ctest has run)
"""
import re
import sys
from pathlib import Path

RAN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
SKIPPED = re.compile(r"^\[ RUN      \] (\S+)\n(?:(?!\[ RUN ).*\n)*?.*: Skipped\n(.*)\n(?:(?!\[ RUN ).*\n)*?\[  SKIPPED \] \1 ", re.M)
WHOLE = re.compile(r"^SKIPPED: (.+)$", re.M)  # tests that are not GoogleTest's print this line and exit with 77


def main(folders):
    allowed = [re.compile(line) for line in (Path(__file__).parent.parent / "tests/skips.txt").read_text().splitlines()
               if line and not line.startswith("#")]
    ran, reasons, refused = 0, {}, []
    for folder in folders:
        log = Path(folder) / "Testing/Temporary/LastTest.log"
        text = log.read_text(errors="replace")
        ran += len(RAN.findall(text))
        skips = SKIPPED.findall(text) + [("a whole program", reason) for reason in WHOLE.findall(text)]
        for name, reason in skips:
            reason = reason.strip()
            reasons[reason] = reasons.get(reason, 0) + 1
            if not any(pattern.search(reason) for pattern in allowed):
                refused.append(f"{folder}: {name} was skipped: {reason}")
    print(f"{ran} cases ran in {len(folders)} build(s), {sum(reasons.values())} of them skipped")
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"  {count:5} skipped: {reason}")
    if refused:
        print("\nThese skips have no reason in tests/skips.txt; install what they need (tools/install-packages.sh test):")
        print("\n".join(refused))
        return 1
    return 0 if ran else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
