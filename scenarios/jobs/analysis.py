"""An analysis job: reads a tree over the network and fills a histogram.

    python3 analysis.py http://127.0.0.1:8080/events.root

It wants the Python packages uproot, awkward and numpy, fsspec and aiohttp for
http://, and fsspec-xrootd for root://.
"""

import sys

import numpy
import uproot


def main(url):
    edges = numpy.linspace(0, 200, 101)
    counts = numpy.zeros(100, dtype=int)
    events = 0
    with uproot.open(url) as file:
        for batch in file["Events"].iterate(["pt", "hits"], step_size=1000, library="np"):
            good = batch["hits"].mean(axis=1) > 0.5
            counts += numpy.histogram(batch["pt"][good], edges)[0]
            events += len(good)
    numpy.save("histogram.npy", counts)  # into the job's own folder
    print(events, "events,", counts.sum(), "of them good")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: analysis.py URL")
    main(sys.argv[1])
