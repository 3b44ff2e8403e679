"""Fills a Rucio for the tests, and reads its state: PART INPUT, both JSON."""
import json
import sys


def fill(arg):
    from rucio.client import Client

    c = Client()
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
    names = [rse["Name"] for rse in arg["rses"]]
    c.add_distance(names[0], names[1], {"distance": 1})
    c.add_scope("root", "test")
    out = {"at": {}}
    for key, rule, files in (("good", "rule", arg["files"]), ("bad", "bad_rule", arg["bad"])):
        c.add_replicas(names[0], [dict(f, scope="test") for f in files])
        c.add_dataset("test", key)
        c.add_files_to_dataset("test", key, [{"scope": "test", "name": f["name"]} for f in files])
        out[rule] = c.add_replication_rule([{"scope": "test", "name": key}], 1, names[1])[0]
    prefix = arg["rses"][0]["Prefix"]
    for f in arg["files"] + arg["bad"]:
        for replica in c.list_replicas([{"scope": "test", "name": f["name"]}]):
            for pfn in replica["pfns"]:
                out["at"][f["name"]] = pfn.split(prefix, 1)[1].lstrip("/")
    return out


def state(arg):
    from rucio.client import Client
    from rucio.db.sqla import models
    from rucio.db.sqla.session import get_session

    c = Client()
    rules = {key: c.get_replication_rule(rule)["state"] for key, rule in arg.items()}
    session = get_session()()
    rows = [{"Name": r.name, "State": r.state.name, "Error": r.err_msg or ""} for r in session.query(models.RequestHistory)]
    return {"rules": rules, "ended": rows}


print("\n" + json.dumps({"fill": fill, "state": state}[sys.argv[1]](json.loads(sys.argv[2])), default=str))
