"""Uses client/python against a coordinator with the sites A, which has the dataset /store/run1 of 5 files, and B."""

import os
import sys

import weir

url, token = os.environ["URL"], os.environ["TOKEN"]


def refused(status, code, f, *args, **options):
    try:
        f(*args, **options)
    except weir.Error as e:
        assert (e.status, e.code) == (status, code) and e.text, (e.status, e.code, e.text)
        return
    raise AssertionError("not refused")


with weir.Client(url, token) as c:
    assert {s["name"] for s in c.sites()} >= {"A", "B"}
    first = c.submit("/store/run1", to="B", key="one", comment="from Python")
    assert c.submit("/store/run1", to="B", key="one", comment="from Python")["id"] == first["id"]
    r = c.wait(first["id"], timeout=120, every=0.1)
    assert r["status"] == "completed" and r["count"]["done"] == 5, r
    assert [f["state"] for f in c.files(r["id"])] == 5 * ["done"]
    assert list(c.files(r["id"], state="failed")) == []
    assert any(link["source"] == "A" and link["dest"] == "B" and link["limit"] > 0 for link in c.links())

    away = c.submit("/store/run1", to="C")  # no such agent runs
    assert [x["id"] for x in c.requests(open=True)] == [away["id"]]
    assert [x["id"] for x in c.requests()] == [away["id"], first["id"]]
    assert c.explain(away["id"])["reasons"]
    try:
        c.wait(away["id"], timeout=0.3, every=0.1)
        raise AssertionError("it has ended")
    except TimeoutError:
        pass
    assert c.cancel(away["id"], "enough")["id"] == away["id"]
    assert c.wait(away["id"], timeout=60, every=0.1)["status"] == "cancelled"

    job = c.submit_job([("https://127.0.0.1:1/a", "https://127.0.0.1:2/a")], retry=1, job_metadata={"by": "test"})
    assert c.job(job)["job_metadata"] == {"by": "test"}
    assert job in [j["job_id"] for j in c.jobs()]
    c.cancel_job(job)
    j = c.wait_job(job, timeout=60, every=0.1)
    assert j["job_state"] == "CANCELED" and len(j["files"]) == 1, j

    refused(404, "not_found", c.request, 12345)
    refused(400, "malformed_body", c.submit, "/store/run1", to="B", priorty=1)
    refused(404, "", c.job, "01874efb-0000-0000-0000-000000000000")
with weir.Client(url, "nonsense") as c:
    refused(401, "unauthorized", c.sites)
with weir.Client(url.split("#")[0] + "#" + 64 * "0", token, patience=1) as c:
    try:
        c.sites()
        raise AssertionError("another certificate was accepted")
    except weir.PinError:
        pass
with weir.Client("https://127.0.0.1:1#" + 64 * "0", token, patience=0) as c:
    try:
        c.sites()
        raise AssertionError("nobody listens there")
    except OSError:
        pass
print("ok", sys.version_info[:2])
