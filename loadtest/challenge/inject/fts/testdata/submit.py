"""Submits a job of one file with FTS's client library: ENDPOINT SOURCE DESTINATION ADLER32 SIZE."""
import sys

import fts3.rest.client.easy as fts3

endpoint, source, dest, adler, size = sys.argv[1:]
context = fts3.Context(endpoint, fts_access_token="header.e30.signature", verify=False)
transfer = fts3.new_transfer(source, dest, checksum="ADLER32:" + adler, filesize=int(size), activity="Data Challenge", scitag=129,
                             metadata={"copy": 7}, source_token="from", destination_token="to")
job = fts3.new_job([transfer], verify_checksum="both", retry=-1, metadata={"issuer": "weir"}, max_time_in_queue="60s", timeout=60,
                   id_generator="deterministic", sid="seed", nostreams=4, unmanaged_tokens=True)
print(fts3.submit(context, job))
