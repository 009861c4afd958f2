import http.client
from urllib.parse import urlsplit

from tickwheel.demo.sink import Sink, UsageTally
from tickwheel.demo.workload import DOOMED_ATTEMPTS, Fate


def post(connection: http.client.HTTPConnection, name: str, *, attempt: int) -> int:
    headers = {"Tickwheel-Attempt": str(attempt), "Tickwheel-Scheduled-At": "2027-01-31T09:00:00.000Z"}
    connection.request("POST", f"/etcd/{name}", body=b"{}", headers=headers)
    response = connection.getresponse()
    response.read()
    return response.status


def test_the_sink_fails_as_asked_and_remembers_every_arrival_of_a_kept_connection():
    fates = {"smooth": Fate.SUCCEEDS, "rough": Fate.STUMBLES, "doomed": Fate.DOOMED}
    with Sink(fates) as sink:
        connection = http.client.HTTPConnection(urlsplit(sink.url).netloc, timeout=10)
        connection.connect()
        connection.auto_open = 0  # one that is not kept would be opened again unseen

        statuses = [
            post(connection, "smooth", attempt=1),
            post(connection, "rough", attempt=1),
            post(connection, "rough", attempt=2),
            *(post(connection, "doomed", attempt=attempt) for attempt in range(1, DOOMED_ATTEMPTS + 1)),
            post(connection, "unknown", attempt=1),
        ]

        connection.close()
        assert statuses == [200, 503, 200, *[503] * DOOMED_ATTEMPTS, 404]
        assert sink.tally == UsageTally(delivered=2, retried=DOOMED_ATTEMPTS, given_up=1)
        assert [arrival.accepted for arrival in sink.arrivals if arrival.name == "rough"] == [False, True]
