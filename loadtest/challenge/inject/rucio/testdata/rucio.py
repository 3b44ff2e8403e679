"""Parts of the tests with a real Rucio: PART FILE, whose JSON is the part's argument."""
import json
import sys
import threading
import time


def setup(arg):
    """Adds RSEs, between which files are copied by their schemes (default https), and from which the reaper removes files in their folders."""
    from rucio.client import Client

    c = Client()
    names = [rse["Name"] for rse in arg["rses"]]
    for rse in arg["rses"]:
        name = rse["Name"]
        c.add_rse(name, rse_type="DISK", deterministic=True)
        some = {"read": 1, "write": 1}
        c.add_protocol(name, {
            "hostname": rse["Host"], "port": int(rse["Port"]), "scheme": rse.get("Scheme", "https"), "prefix": rse["Prefix"],
            "impl": "rucio.rse.protocols.gfal.Default",
            "domains": {"lan": some, "wan": dict(some, third_party_copy_read=1, third_party_copy_write=1)},
        })
        only = {"delete": 1}
        c.add_protocol(name, {
            "hostname": "localhost", "port": 0, "scheme": "file", "prefix": rse["Folder"],
            "impl": "rucio.rse.protocols.posix.Default", "domains": {"lan": only, "wan": only},
        })
        c.add_rse_attribute(name, "fts", arg["fts"])
        c.set_local_account_limit("root", name, 10**15)
    for source in names:
        for dest in names:
            if source != dest:
                c.add_distance(source, dest, {"distance": 1})
    c.add_scope("root", arg["scope"])


def daemons(arg):
    """Runs the conveyor's daemons and the reaper in turns until it is killed. They would wait for others of their kind at each start."""
    from rucio.daemons.conveyor import finisher, poller, submitter
    from rucio.daemons.judge import cleaner
    from rucio.daemons.reaper import reaper

    for stop in (finisher.GRACEFUL_STOP, poller.GRACEFUL_STOP, submitter.GRACEFUL_STOP, cleaner.graceful_stop, reaper.GRACEFUL_STOP):
        stop.wait = lambda timeout=None, stop=stop: threading.Event.wait(stop, 0)
    counts = reaper.list_payload_counts  # fails without older_than, which the reaper does not have with once
    reaper.list_payload_counts = lambda executable, older_than=None: counts(executable, older_than=older_than or 600)
    while True:
        for name, run in (
            ("submitter", lambda: submitter.run(once=True, group_bulk=10, bulk=200)),
            ("poller", lambda: poller.run(once=True, older_than=0, db_bulk=200)),
            ("finisher", lambda: finisher.run(once=True, db_bulk=200)),
            ("cleaner", lambda: cleaner.run(once=True)),
            ("reaper", lambda: reaper.run(once=True, delay_seconds=0, greedy=False, scheme="file", sleep_time=0)),
        ):
            try:
                run()
            except Exception as e:
                print(name, repr(e), file=sys.stderr, flush=True)
        time.sleep(0.2)


{"setup": setup, "daemons": daemons}[sys.argv[1]](json.load(open(sys.argv[2])))
