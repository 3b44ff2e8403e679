"""Writes a ROOT file for analysis.py: python3 make_events.py FILE [EVENTS]

An event has 100 hits of 4 bytes and a pt of 8 bytes.
"""

import sys

import numpy
import uproot


def main(name, events=10_000, batch=1000):
    random = numpy.random.default_rng(1)
    with uproot.recreate(name) as file:
        tree = file.mktree("Events", {"pt": "float64", "hits": ("float32", (100,))})
        for begin in range(0, events, batch):
            n = min(batch, events - begin)
            tree.extend({"pt": random.exponential(20, n), "hits": random.random((n, 100), dtype="float32")})


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: make_events.py FILE [EVENTS]")
    main(sys.argv[1], *map(int, sys.argv[2:]))
