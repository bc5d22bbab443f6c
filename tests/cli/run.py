#!/usr/bin/env python3
"""Runs the cases of the command line and prints TAP. The format of cases: README.md beside this file.

    tests/cli/run.py --winml build/release/winml [--only PATTERN] [--list]

PATTERN is a shell pattern or a part of a name. Only the standard library is used.
"""
import argparse
import fnmatch
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import case as cases
import pages


def arguments():
    a = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    a.add_argument("--winml", default="build/release/winml", metavar="PATH")
    a.add_argument("--wine", metavar="PATH", help="run the program under this wine")
    a.add_argument("--only", metavar="PATTERN")
    a.add_argument("--list", action="store_true", help="names of the cases, nothing is run")
    return a.parse_args()


def wanted(name, pattern):
    return not pattern or pattern in name or fnmatch.fnmatch(name, pattern)


def main():
    a = arguments()
    here = pathlib.Path(__file__).resolve().parent
    program = pathlib.Path(a.winml).resolve()
    tests = [cases.Case(path, here) for path in sorted(here.glob("*/*.case"))]
    if not a.list and not program.exists():
        sys.exit(f"{program} is not there: build it, or name it with --winml")
    place = cases.Place(program, here, a.wine)
    tests += pages.tests(place, here.parent.parent / "docs" / "commands")
    tests = [t for t in tests if wanted(t.name, a.only)]
    if a.list:
        print("\n".join(t.name for t in tests))
        return 0
    broken = 0
    for number, test in enumerate(tests, 1):
        folder = tempfile.mkdtemp(prefix="winml-cli-")
        try:
            reason = test.skip_reason(place)
            problem = None if reason else test.run(place, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if problem:
            broken += 1
            print(re.sub(r"(?m)^", "# ", problem.rstrip()))
        print(f"{'not ' if problem else ''}ok {number} - {test.name}{f' # SKIP {reason}' if reason else ''}", flush=True)
    print(f"1..{len(tests)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
