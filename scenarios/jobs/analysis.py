"""An analysis job: reads a tree over the network, or from a copy on the local disk, and fills a histogram.

    python3 analysis.py http://127.0.0.1:8080/events.root
    python3 analysis.py --stage http://127.0.0.1:8080/events.root

It wants the Python packages uproot, awkward and numpy, fsspec and aiohttp for
http://, and fsspec-xrootd for root://.
"""

import shutil
import sys

import fsspec
import numpy
import uproot


def stage(url, name="events.root"):
    """Copies the file into the job's own folder."""
    with fsspec.open(url, "rb") as source, open(name, "wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
    return name


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
    if len(sys.argv) == 3 and sys.argv[1] == "--stage":
        main(stage(sys.argv[2]))
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit("usage: analysis.py [--stage] URL")
