import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aws_lambda_powertools import Metrics

from functions.domain.metrics import DIMENSIONS, INCIDENTS, MUST_BE_ZERO, SILENT_AT_ZERO, Watching
from functions.runtime import observability
from functions.runtime.observability import PowertoolsJournal


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> PowertoolsJournal:
    monkeypatch.setattr(observability, "metrics", Metrics(namespace="Tickwheel", service="worker"))
    return PowertoolsJournal()


def test_an_event_is_one_line_with_its_name_for_a_message_and_its_keys(
    journal: PowertoolsJournal, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", logger=observability.logger.name)

    journal.event("job_settled", job_id="j1~x", attempt=2)

    record = caplog.records[-1]
    assert record.getMessage() == "job_settled"
    assert (vars(record)["job_id"], vars(record)["attempt"]) == ("j1~x", 2)


def test_a_key_that_is_declared_nowhere_is_not_written(journal: PowertoolsJournal, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", logger=observability.logger.name)

    journal.event("job_settled", job_id="j1~x", payload="4111")

    assert "4111" not in str(vars(caplog.records[-1]))


def test_counters_and_values_are_handed_over_with_their_units(
    journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
):
    journal.count("attempts")
    journal.count("attempts", 2)
    journal.observe("lag_ms", 12.5)
    journal.observe("lag_ms", 7)
    journal.observe("oldest_bucket_age_s", 60)

    journal.flush()

    blob = blobs(capsys)[0]
    assert blob["attempts"] == [3.0]
    assert blob["lag_ms"] == [12.5, 7.0]
    units = {metric["Name"]: metric["Unit"] for metric in blob["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert units == {"attempts": "Count", "lag_ms": "Milliseconds", "oldest_bucket_age_s": "Seconds"}


def test_a_metric_without_dimensions_of_its_own_has_the_service(
    journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
):
    journal.count("attempts")

    journal.flush()

    blob = blobs(capsys)[0]
    assert blob["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]
    assert blob["service"] == "worker"


def test_each_dimension_is_a_set_of_its_own_beside_the_service(
    journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
):
    journal.observe("lag_ms", 5, ring="far", priority="high", kind="retry")

    journal.flush()

    (blob,) = blobs(capsys)
    assert blob["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [
        ["service"],
        *(["service", dimension] for dimension in DIMENSIONS["lag_ms"]),
    ]
    assert {name: blob[name] for name in ("service", "ring", "priority", "kind", "lag_ms")} == {
        "service": "worker",
        "ring": "far",
        "priority": "high",
        "kind": "retry",
        "lag_ms": [5.0],
    }


def test_values_with_different_dimensions_do_not_mix(journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
    journal.count("attempts", 3)
    journal.observe("lag_ms", 1, ring="near", priority="high", kind="job")
    journal.observe("lag_ms", 2, ring="far", priority="high", kind="job")
    journal.observe("lag_ms", 3, ring="near", priority="high", kind="job")

    journal.flush()

    plain, near, far = blobs(capsys)
    assert (plain["attempts"], plain["_aws"]["CloudWatchMetrics"][0]["Dimensions"]) == ([3.0], [["service"]])
    assert (near["ring"], near["lag_ms"]) == ("near", [1.0, 3.0])
    assert (far["ring"], far["lag_ms"]) == ("far", [2.0])


def test_a_hundred_values_leave_no_dimension_behind(journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
    for value in range(100):
        journal.observe("lag_ms", value, priority="low")
    journal.flush()
    journal.count("attempts")
    journal.flush()

    full, plain = blobs(capsys)
    assert (len(full["lag_ms"]), full["priority"]) == (100, "low")
    assert plain["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]


def test_a_flush_begins_anew(journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
    journal.count("attempts")
    journal.flush()
    journal.count("rescues")
    journal.flush()

    first, second = blobs(capsys)
    assert "rescues" not in first
    assert "attempts" not in second


def test_an_invocation_that_counted_nothing_publishes_nothing(
    journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
):
    journal.flush()

    assert blobs(capsys) == []


def test_no_value_is_lost_when_there_are_more_than_a_blob_holds(
    journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
):
    for value in range(250):
        journal.observe("lag_ms", value)

    journal.flush()

    found = [value for blob in blobs(capsys) for value in blob.get("lag_ms", [])]
    assert sorted(found) == [float(value) for value in range(250)]


def test_threads_of_one_invocation_count_together(journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: journal.count("attempts"), range(400)))

    journal.flush()

    assert blobs(capsys)[0]["attempts"] == [400.0]


def blobs(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The EMF documents that were printed."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


class TestZeros:
    def test_a_counter_of_nothing_is_not_sent(self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
        journal.count("promoted", 0)
        journal.flush()

        assert lines(capsys) == []

    def test_a_zero_behind_a_value_is_sent_once(self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
        for count in (3, 0, 0):
            journal.count("promoted", count)
            journal.flush()

        assert [blob["promoted"] for blob in blobs(capsys)] == [[3.0], [0.0]]

    @pytest.mark.parametrize("gauge", SILENT_AT_ZERO)
    def test_a_gauge_that_stays_at_zero_is_not_sent_and_one_that_falls_to_it_is(
        self, gauge: str, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        for value in (0, 90, 90, 0, 0):
            journal.observe(gauge, value)
            journal.flush()

        assert [blob[gauge] for blob in blobs(capsys)] == [[90.0], [90.0], [0.0]]

    def test_zeros_of_shares_and_distributions_count(
        self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.observe("late", 0)
        journal.observe("lag_ms", 0, ring="near")
        journal.flush()

        share, distribution = blobs(capsys)
        assert (share["late"], distribution["lag_ms"]) == ([0.0], [0.0])


class TestIncidents:
    @pytest.mark.parametrize("what", MUST_BE_ZERO)
    def test_what_must_be_zero_is_counted_again_without_dimensions(
        self, what: str, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.count(what, 2)
        journal.flush()

        together, by_service = blobs(capsys)
        assert (by_service[what], by_service["service"]) == ([2.0], "worker")
        (directive,) = together["_aws"]["CloudWatchMetrics"]
        assert (directive["Namespace"], directive["Dimensions"]) == ("Tickwheel", [[]])
        assert together[INCIDENTS] == 2

    def test_all_kinds_are_one_value(self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
        journal.count("dead_lettered")
        journal.count("stragglers", 2)
        journal.count("attempts", 5)
        journal.flush()

        assert [blob[INCIDENTS] for blob in blobs(capsys) if INCIDENTS in blob] == [3]

    def test_nothing_is_counted_where_nothing_happened(
        self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.count("clock_skewed", 0)
        journal.count("attempts")
        journal.flush()

        assert not any(INCIDENTS in blob for blob in blobs(capsys))


class TestWatchedForTheEssential:
    @pytest.fixture
    def journal(self, monkeypatch: pytest.MonkeyPatch) -> PowertoolsJournal:
        monkeypatch.setattr(observability, "metrics", Metrics(namespace="Tickwheel", service="worker"))
        return PowertoolsJournal(Watching.ESSENTIAL)

    def test_one_line_has_what_alarms_look_at_as_metrics_and_the_rest_as_fields(
        self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.count("attempts", 2)
        journal.observe("late", 0.0)
        journal.observe("late", 1.0)
        journal.observe("lag_ms", 12.5, ring="near", priority="high", kind="job")
        journal.observe("target_ms", 104)
        journal.flush()

        (line,) = blobs(capsys)
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert directive == {
            "Namespace": "Tickwheel",
            "Dimensions": [["service"]],
            "Metrics": [{"Name": "late", "Unit": "Count"}],
        }
        assert (line["message"], line["service"], line["late"]) == ("observed", "worker", [0.0, 1.0])
        assert line["counts"] == {"attempts": 2}
        assert line["values"] == [
            {"target_ms": 104},
            {"lag_ms": 12.5, "ring": "near", "priority": "high", "kind": "job"},
        ]

    def test_what_no_alarm_looks_at_is_no_metric(self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
        journal.count("jobs_submitted", 3)
        journal.flush()

        assert blobs(capsys) == [{"message": "observed", "service": "worker", "counts": {"jobs_submitted": 3}}]

    def test_a_counter_with_an_alarm_is_a_metric(self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
        journal.count("requests_failed")
        journal.flush()

        (line,) = blobs(capsys)
        assert (line["requests_failed"], "counts" in line) == ([1.0], False)
        assert line["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "requests_failed", "Unit": "Count"}]

    def test_an_incident_pages_and_the_line_says_what_it_is(
        self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.count("dead_lettered")
        journal.flush()

        together, line = blobs(capsys)
        assert together[INCIDENTS] == 1
        assert line["counts"] == {"dead_lettered": 1}
        assert "_aws" not in line

    def test_nothing_is_written_where_nothing_was_observed(
        self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.count("audited", 0)
        journal.observe("promotion_lag_s", 0)
        journal.flush()
        journal.flush()

        assert blobs(capsys) == []

    def test_a_lag_that_is_over_ends_its_alarm(self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]):
        for value in (90, 0, 0):
            journal.observe("promotion_lag_s", value)
            journal.flush()

        assert [line["promotion_lag_s"] for line in blobs(capsys)] == [[90.0], [0.0]]

    def test_a_line_has_a_hundred_values_of_a_kind_and_each_value_is_in_one_line(
        self, journal: PowertoolsJournal, capsys: pytest.CaptureFixture[str]
    ):
        journal.count("attempts", 250)
        for number in range(250):
            journal.observe("late", float(number == 249))
            journal.observe("target_ms", number)
        journal.flush()

        lines = blobs(capsys)
        assert [len(line["late"]) for line in lines] == [100, 100, 50]
        assert [value["target_ms"] for line in lines for value in line["values"]] == list(range(250))
        assert [line.get("counts") for line in lines] == [{"attempts": 250}, None, None]
        assert sum(sum(line["late"]) for line in lines) == 1
