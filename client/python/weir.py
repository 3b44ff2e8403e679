"""Client of weir's transfer coordinator. It needs Python 3.9 or later, and nothing else.

    import weir
    with weir.Client("https://weir.example.org:9443#PIN", token=open("alice.token").read()) as c:
        request = c.submit("/store/run1", to="B", comment="for the reprocessing")
        request = c.wait(request["id"])
        print(request["status"], request["count"]["done"])

Answers are dictionaries with the fields of the OpenAPI description, which the coordinator has at /api/v1/openapi.json.
"""

import hashlib
import http.client
import json
import ssl
import time
import urllib.parse

ENDED = ("completed", "partial", "failed", "cancelled", "rejected", "expired")
JOB_ENDED = ("FINISHED", "FINISHEDDIRTY", "FAILED", "CANCELED")


class Error(Exception):
    """A request that the coordinator refused: status of HTTP, stable code, and text."""

    def __init__(self, status, code, text):
        super().__init__(text)
        self.status, self.code, self.text = status, code, text


class PinError(ssl.SSLError):
    """The server has another certificate than the one of the pin."""


class _Pinned(http.client.HTTPSConnection):
    pin = None

    def connect(self):
        super().connect()
        if hashlib.sha256(self.sock.getpeercert(binary_form=True)).hexdigest() != self.pin:
            self.close()
            raise PinError("the certificate of the coordinator does not have the pin %s" % self.pin)


class Client:
    """A connection to a coordinator, for one thread.

    url is https://HOST:PORT, or https://HOST:PORT#PIN with the SHA-256 of a self-signed certificate. cafile is a file with
    certificates of authorities. timeout, in seconds, is that of one request. patience is for how many seconds a request is repeated
    while the coordinator cannot be reached or is overloaded.
    """

    def __init__(self, url, token, cafile=None, timeout=60, patience=60):
        parts = urllib.parse.urlsplit(url)
        self._base, self._token, self._patience = parts.path.rstrip("/"), token.strip(), patience
        if parts.scheme == "http":
            self._http = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)
        elif parts.scheme != "https":
            raise ValueError("%r: the URL of a coordinator begins with https://" % url)
        elif parts.fragment:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the pin is checked instead
            self._http = _Pinned(parts.hostname, parts.port or 443, timeout=timeout, context=context)
            self._http.pin = parts.fragment.lower()
        else:
            context = ssl.create_default_context(cafile=cafile)
            self._http = http.client.HTTPSConnection(parts.hostname, parts.port or 443, timeout=timeout, context=context)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the connection."""
        self._http.close()

    def call(self, method, path, body=None, repeat=True, **query):
        """Send a request, and return the decoded answer. Parameters of the query that are None are left out."""
        query = {name: value for name, value in query.items() if value is not None}
        target = self._base + path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + self._token, "Content-Type": "application/json"}
        end, pause = time.monotonic() + self._patience, 0.1
        while True:
            try:
                self._http.request(method, target, data, headers)
                answer = self._http.getresponse()
                text = answer.read()
            except PinError:
                raise
            except (OSError, http.client.HTTPException):
                self._http.close()
                if not repeat or time.monotonic() > end:
                    raise
            else:
                if answer.status == 200 or answer.status == 207:
                    return json.loads(text)
                if answer.status not in (429, 502, 503, 504) or not repeat or time.monotonic() > end:
                    raise self._refused(answer, text)
                pause = max(pause, float(answer.getheader("Retry-After") or 0))
            time.sleep(pause)
            pause = min(2 * pause, 10)

    @staticmethod
    def _refused(answer, text):
        try:
            body = json.loads(text)
        except ValueError:
            body = {}
        if not isinstance(body, dict):
            body = {}
        return Error(answer.status, body.get("code", ""), body.get("error") or body.get("message") or body.get("http_message") or answer.reason)

    # Datasets

    def submit(self, dataset, to, key=None, **options):
        """Request a dataset at a site. options are those of Submission, such as block, files, priority, share, comment.

        Submissions of a user with the same key are one request: with a key, a submission is repeated until it is answered.
        """
        body = dict(options, dataset=dataset, to=to)
        if key is not None:
            body["key"] = key
        return self.call("POST", "/api/v1/requests", body, repeat=key is not None)

    def request(self, number):
        """Return a request."""
        return self.call("GET", "/api/v1/requests/%d" % number)

    def requests(self, **filters):
        """Yield requests, the newest first. filters are status, open, to, dataset and by."""
        if "open" in filters:
            filters["open"] = "true" if filters["open"] else None
        before = None
        while True:
            page = self.call("GET", "/api/v1/requests", n=100, before=before, **filters)
            yield from page
            if len(page) < 100:
                return
            before = page[-1]["id"]

    def wait(self, number, timeout=None, every=2.0):
        """Wait until a request has ended, and return it. After timeout seconds it raises TimeoutError."""
        return self._wait(lambda: self.request(number), lambda r: r["status"] in ENDED, timeout, every)

    def cancel(self, number, reason=""):
        """Cancel a request. Files that have arrived stay."""
        return self.call("POST", "/api/v1/requests/%d/cancel" % number, {"reason": reason})

    def retry(self, number, reason=""):
        """Retry the failed and cancelled files of a request."""
        return self.call("POST", "/api/v1/requests/%d/retry" % number, {"reason": reason})

    def files(self, number, state=None):
        """Yield the files of a request, of one state or of all."""
        after = None
        while True:
            page = self.call("GET", "/api/v1/requests/%d/items" % number, n=1000, after=after, state=state)
            yield from page
            if len(page) < 1000:
                return
            after = page[-1]["id"]

    def explain(self, number):
        """Return why the files of a request do not move."""
        return self.call("GET", "/api/v1/requests/%d/explain" % number)

    def sites(self):
        """Return all sites."""
        return self.call("GET", "/api/v1/sites")

    def links(self):
        """Return all links with their limits and the reasons."""
        return self.call("GET", "/api/v1/links")

    # Jobs of URL pairs, in the words of FTS

    def submit_job(self, files, **params):
        """Submit a job, and return its id. files are dictionaries as FTS has them, or pairs of source and destination URL."""
        files = [f if isinstance(f, dict) else {"sources": [f[0]], "destinations": [f[1]]} for f in files]
        return self.call("POST", "/fts/jobs", {"files": files, "params": params}, repeat=False)["job_id"]

    def job(self, job, files=False):
        """Return a job, with the states of its files if they are wanted."""
        return self.call("GET", "/fts/jobs/" + job, files="file_state,source_surl,dest_surl,reason" if files else None)

    def jobs(self):
        """Return the jobs that have not ended."""
        return self.call("GET", "/fts/jobs")

    def wait_job(self, job, timeout=None, every=2.0):
        """Wait until a job has ended, and return it with its files. After timeout seconds it raises TimeoutError."""
        return self._wait(lambda: self.job(job, files=True), lambda j: j["job_state"] in JOB_ENDED, timeout, every)

    def cancel_job(self, job):
        """Cancel a job."""
        return self.call("DELETE", "/fts/jobs/" + job)

    @staticmethod
    def _wait(ask, ended, timeout, every):
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            state = ask()
            if ended(state):
                return state
            if end is not None and time.monotonic() + every > end:
                raise TimeoutError("not ended after %g s" % timeout)
            time.sleep(every)
