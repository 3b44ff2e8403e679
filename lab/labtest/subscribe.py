"""Prints what a broker sends by STOMP, a JSON object a line: HOST PORT USER PASSWORD VHOST DESTINATION... A destination may be
followed by headers of SUBSCRIBE, as in "/queue/a subscription-type:ANYCAST". Ends with its input."""
import json
import sys

import stomp

host, port, user, password, vhost, *destinations = sys.argv[1:]


class Printer(stomp.ConnectionListener):
    def on_message(self, frame):
        print(json.dumps({"destination": frame.headers["destination"], "header": frame.headers, "body": frame.body}), flush=True)

    def on_receipt(self, frame):
        print(json.dumps({"subscribed": frame.headers["receipt-id"]}), flush=True)


conn = stomp.Connection12([(host, int(port))], vhost=vhost, reconnect_attempts_max=10)
conn.set_listener("", Printer())
conn.connect(user, password, wait=True)
for i, destination in enumerate(destinations):
    destination, *headers = destination.split()
    conn.subscribe(destination=destination, id=str(i), ack="auto", headers=dict(h.split(":") for h in headers) | {"receipt": str(i)})
sys.stdin.read()
