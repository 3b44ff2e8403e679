"""Fills a Rucio for the tests, runs its daemons and reads its state: PART FILE, whose JSON is the part's argument."""
import ctypes
import json
import shutil
import subprocess
import sys
import time

BULK = 250  # files at once: Rucio asks for them with nested conditions, for which SQLite fails at 500


def setup(arg):
    """Adds RSEs, from each of which files go to each other one."""
    from rucio.client import Client

    c = Client()
    names = [rse["Name"] for rse in arg["rses"]]
    for rse in arg["rses"]:
        name = rse["Name"]
        c.add_rse(name, rse_type="DISK", deterministic=True)
        every = {"read": 1, "write": 1, "delete": 1}
        c.add_protocol(name, {
            "hostname": rse["Host"], "port": int(rse["Port"]), "scheme": "https", "prefix": rse["Prefix"],
            "impl": "rucio.rse.protocols.gfal.Default",
            "domains": {"lan": every, "wan": dict(every, third_party_copy_read=1, third_party_copy_write=1)},
        })
        c.add_rse_attribute(name, "fts", arg["fts"])
        c.set_local_account_limit("root", name, 10**15)
    for source in names:
        for dest in names:
            if source != dest:
                c.add_distance(source, dest, {"distance": 1})
    c.add_scope("root", "test")
    return {}


def rule(arg):
    """Adds a dataset, or a container of several, whose files are at some RSEs, and a rule for another one."""
    from rucio.client import Client

    c = Client()
    several = len(arg["files"]) > BULK
    if several:
        c.add_container("test", arg["name"])
    paths = {}
    for i in range(0, len(arg["files"]), BULK):
        some = arg["files"][i:i + BULK]
        dataset = arg["name"] + (".%d" % i if several else "")
        c.add_dataset("test", dataset)
        for rse in arg["at"]:
            c.add_replicas(rse, [dict(f, scope="test") for f in some])
        dids = [{"scope": "test", "name": f["name"]} for f in some]
        c.add_files_to_dataset("test", dataset, dids)
        if several:
            c.attach_dids("test", arg["name"], [{"scope": "test", "name": dataset}])
        for replica in c.list_replicas(dids):
            pfn = next(iter(replica["pfns"]))
            paths[replica["name"]] = "test" + pfn.split("/test", 1)[1]
    made = c.add_replication_rule([{"scope": "test", "name": arg["name"]}], 1, arg["to"])[0]
    return {"rule": made, "paths": paths}


def end(arg):
    """Has a rule end now: judge-cleaner deletes it."""
    from rucio.client import Client

    Client().update_replication_rule(arg["rule"], {"lifetime": 0})
    return {}


def runners(bulk):
    """The daemons by name, each to be run once. They would wait for others of their kind at each start."""
    import threading

    from rucio.daemons.conveyor import finisher, poller, submitter

    for daemon in (finisher, poller, submitter):
        stop = daemon.GRACEFUL_STOP
        stop.wait = lambda timeout=None, stop=stop: threading.Event.wait(stop, 0)
    return {"submitter": lambda: submitter.run(once=True, group_bulk=bulk, bulk=BULK),
            "poller": lambda: poller.run(once=True, older_than=0, db_bulk=BULK), "finisher": lambda: finisher.run(once=True, db_bulk=BULK)}


def once(arg):
    """Runs daemons once."""
    every = runners(1)
    for name in arg["daemons"]:
        every[name]()
    return {}


def daemons(arg):
    """Runs submitter, poller and finisher in turns until so many requests have ended, and measures what they wait for.

    With receiver there is no poller but rucio-conveyor-receiver, and requests may be open at the end: one that failed has a successor.
    """
    import requests

    asked = [0.0]
    send = requests.Session.request

    def request(self, method, url, *args, **kwargs):
        begun = time.time()
        try:
            return send(self, method, url, *args, **kwargs)
        finally:
            if url.startswith(arg["fts"]):
                asked[0] += time.time() - begun

    requests.Session.request = request
    release_killed()
    every = runners(arg["bulk"])
    receiver = None
    if arg.get("receiver"):
        del every["poller"]
        receiver = subprocess.Popen([sys.executable, shutil.which("rucio-conveyor-receiver")], stdout=sys.stderr,
                                    preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))  # it is killed with this process
    took = {"submitter": 0.0, "poller": 0.0, "finisher": 0.0, "idle": 0.0}
    begun = time.time()
    before = None
    while True:
        round_begun = time.time()
        for name, run in every.items():
            one = time.time()
            run()
            took[name] += time.time() - one
        now = counts()
        if now == before:
            took["idle"] += time.time() - round_begun
        before = now
        if now["ended"] >= arg["ended"] and (receiver or len(now) == 1):  # a request that failed has a successor
            break
        if receiver and receiver.poll() is not None:
            raise RuntimeError("the receiver has ended")
        time.sleep(0.5 if receiver else 0)
    if receiver:
        receiver.kill()
        receiver.wait()
    return {"wall": time.time() - begun, "asked": asked[0], "took": took}


def release_killed():
    """Makes requests two hours older that a submitter was submitting when it was killed: then the finisher queues them again."""
    from datetime import datetime, timedelta

    from rucio.db.sqla import models
    from rucio.db.sqla.constants import RequestState
    from rucio.db.sqla.session import get_session

    session = get_session()()
    session.query(models.Request).filter_by(state=RequestState.SUBMITTING).update(
        {"updated_at": datetime.utcnow() - timedelta(hours=3)}, synchronize_session=False)
    session.commit()
    session.close()


def counts():
    from rucio.db.sqla import models
    from rucio.db.sqla.session import get_session
    from sqlalchemy import func

    session = get_session()()
    out = {state.name: n for state, n in session.query(models.Request.state, func.count()).group_by(models.Request.state)}
    out["ended"] = session.query(models.RequestHistory).count()
    session.close()
    return out


def state(arg):
    from rucio.client import Client
    from rucio.db.sqla import models
    from rucio.db.sqla.session import get_session

    c = Client()
    rules = {}
    for key, one in arg.items():
        try:
            rules[key] = c.get_replication_rule(one)["state"]
        except Exception as e:
            rules[key] = type(e).__name__
    session = get_session()()
    rows = [{"Name": r.name, "State": r.state.name, "Error": r.err_msg or ""} for r in session.query(models.RequestHistory)]
    open_ones = [{"Name": r.name, "State": r.state.name, "Error": r.err_msg or ""} for r in session.query(models.Request)]
    suspicious = sorted({r.name for r in session.query(models.BadReplica)})
    return {"rules": rules, "ended": rows, "open": open_ones, "suspicious": suspicious}


parts = {"setup": setup, "rule": rule, "end": end, "once": once, "daemons": daemons, "state": state}
print("\n" + json.dumps(parts[sys.argv[1]](json.load(open(sys.argv[2]))), default=str))
