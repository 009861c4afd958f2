"""Dead letters are found newest first, page by page, by whatever their jobs are known by."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.dead_letters.finder import MOST_QUERIES, Bookmark, DeadLetterFilter, DeadLetterFinder, DeadLetterPage
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE, DeadLetterId
from functions.domain.errors import DeadLetterNotFound, InvalidInput
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.instants import EPOCH, HOUR, MILLISECOND
from functions.domain.jobs.job import Payload
from functions.domain.jobs.occurrence import Occurrence
from functions.ports.dead_letters import DeadLetter
from testkit.builders import LOCAL_WHEEL, NOON, a_dead_letter, a_schedule, a_template, a_timer, an_occurrence_timer
from testkit.fakes import InMemoryDeadLetters
from testkit.scheduler import World

ACME = DeadLetterFilter(tenant="acme")


def hour_of(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)


class CountingDeadLetters(InMemoryDeadLetters):
    """Counts queries. largest_page: of letters, as a store cuts one whose rows are large. marked: as of a store with marks.

    asked: the hours that were read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[datetime] = []
        self.query_count = 0
        self.largest_page = 1_000
        self.marked: set[datetime] = set()

    def put(self, letter: DeadLetter) -> None:
        self.marked.add(hour_of(letter.dead_at))
        self.put_unmarked(letter)

    def put_unmarked(self, letter: DeadLetter) -> None:
        """As a release before does."""
        super().put(letter)

    def hours(self, tenant: str, *, since: datetime, until: datetime, limit: int) -> tuple[list[datetime], bool]:
        self.query_count += 1
        found = sorted((hour for hour in self.marked if hour_of(since) <= hour <= until), reverse=True)
        return found[:limit], len(found) > limit

    def page(self, hour: datetime, *, before: DeadLetterId, limit: int) -> tuple[list[DeadLetter], bool]:
        self.query_count += 1
        self.asked.append(hour)
        return super().page(hour, before=before, limit=min(limit, self.largest_page))


class Archive(World):
    """The scheduler on fakes, with dead letters to be found."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = CountingDeadLetters()
        self.marked_since: datetime | None = EPOCH

    @property
    def dead_letter_finder(self) -> DeadLetterFinder:
        return self.build(DeadLetterFinder, marked_since=lambda: self.marked_since)

    def put(self, *, dead_at: datetime = NOON, error_class: str = "timeout", **job: Any) -> DeadLetter:
        timer = job.pop("timer", None) or a_timer(**job)
        letter = a_dead_letter(timer, dead_at=dead_at, error_class=error_class)
        self.letters.put(letter)
        return letter

    def find(self, wanted: DeadLetterFilter = ACME, *, after: str = "", limit: int = 50) -> DeadLetterPage:
        return self.dead_letter_finder.find(
            wanted, begin=self.dead_letter_finder.begin(wanted, after=after), limit=limit
        )

    def find_all(self, wanted: DeadLetterFilter = ACME, *, limit: int = 50) -> list[DeadLetterPage]:
        """Every page, as somebody reads who follows them."""
        pages = [self.find(wanted, limit=limit)]
        while (goes_on := pages[-1].goes_on) is not None:
            pages.append(self.find(wanted, after=str(goes_on), limit=limit))
        return pages


@pytest.fixture
def world() -> Archive:
    return Archive()


def test_the_dead_letters_of_the_last_day_are_found_newest_first(world: Archive):
    letters = [world.put(dead_at=NOON - age) for age in (timedelta(0), MILLISECOND, HOUR, 23 * HOUR, 24 * HOUR)]
    world.put(dead_at=NOON - 24 * HOUR - MILLISECOND)
    world.put(tenant="globex")

    found = world.find()

    assert (found.letters, found.goes_on, found.examined_until) == (letters, None, NOON - 24 * HOUR)


def test_a_dead_letter_by_a_clock_that_is_ahead_is_found_too(world: Archive):
    letter = world.put(dead_at=NOON + LOCAL_WHEEL.skew - MILLISECOND)

    assert world.find().letters == [letter]


def test_since_is_the_first_instant_and_until_the_first_that_is_not_intended(world: Archive):
    since, until = NOON - timedelta(minutes=100), NOON - timedelta(minutes=80)
    world.put(dead_at=until)
    letters = [world.put(dead_at=until - MILLISECOND), world.put(dead_at=since)]
    world.put(dead_at=since - MILLISECOND)

    found = world.find(replace(ACME, since=since, until=until))

    assert (found.letters, found.goes_on, found.examined_until) == (letters, None, since)


def test_without_since_a_day_before_until_is_selected(world: Archive):
    letter = world.put(dead_at=NOON - 49 * HOUR)

    assert world.find(replace(ACME, until=NOON - 25 * HOUR)).letters == [letter]
    assert world.find(replace(ACME, until=NOON - 24 * HOUR)).letters == []


def test_nothing_is_looked_for_beyond_the_life_of_a_dead_letter_or_in_the_future(world: Archive):
    world.marked_since = None
    found = world.find_all(replace(ACME, since=NOON - 10 * DEAD_LETTER_LIFE, until=NOON + 10 * DEAD_LETTER_LIFE))

    assert found[-1].examined_until == NOON - DEAD_LETTER_LIFE
    assert (max(world.letters.asked), min(world.letters.asked)) == (NOON, NOON - DEAD_LETTER_LIFE)
    assert world.find(replace(ACME, until=NOON - 2 * DEAD_LETTER_LIFE)).goes_on is None


@pytest.mark.parametrize("since", [NOON - DEAD_LETTER_LIFE, EPOCH])
def test_however_far_back_a_page_reaches_only_hours_that_had_dead_letters_are_read(world: Archive, since: datetime):
    oldest = world.put(dead_at=NOON - DEAD_LETTER_LIFE)
    newest = world.put(dead_at=NOON - timedelta(minutes=1))

    found = world.find(replace(ACME, since=since))

    assert (found.letters, found.goes_on, found.examined_until) == ([newest, oldest], None, NOON - DEAD_LETTER_LIFE)
    assert world.letters.query_count == 3


def test_a_tenant_without_dead_letters_costs_one_query_however_far_back_a_page_reaches(world: Archive):
    found = world.find(replace(ACME, since=EPOCH))

    assert (found.letters, found.goes_on, world.letters.query_count) == ([], None, 1)


def test_a_page_is_at_most_20_queries_and_the_next_goes_on_behind_them(world: Archive):
    letters = [world.put(dead_at=NOON - number * 3 * HOUR) for number in range(100)]
    pages: list[DeadLetterPage] = []
    after = ""
    while not pages or pages[-1].goes_on is not None:
        world.letters.query_count = 0
        pages.append(world.find(replace(ACME, since=EPOCH), after=after, limit=500))
        after = str(pages[-1].goes_on)
        assert world.letters.query_count <= MOST_QUERIES == 20

    assert [letter for page in pages for letter in page.letters] == letters
    assert len(world.letters.asked) == len(set(world.letters.asked)) == 100


def test_dead_letters_of_a_release_that_marked_nothing_are_found_hour_by_hour(world: Archive):
    world.marked_since = NOON - 10 * HOUR
    letters = [world.put(dead_at=NOON - HOUR)]
    # Those of functions that were begun before the new release among them.
    for age in (8.5 * HOUR, 9 * HOUR, 10 * HOUR, 11 * HOUR, 50 * HOUR, DEAD_LETTER_LIFE):
        letters.append(replace(letters[0], dead_at=NOON - age))
        world.letters.put_unmarked(letters[-1])

    pages = world.find_all(replace(ACME, since=EPOCH))

    assert [letter for page in pages for letter in page.letters] == letters
    unmarked_hours = 90 * 24 + 1 - 9
    assert len(pages) == -(-(unmarked_hours + 1) // (MOST_QUERIES - 1))
    assert len(world.letters.asked) == len(set(world.letters.asked)) == unmarked_hours + 1


def test_where_it_is_not_known_since_when_hours_are_marked_each_is_read(world: Archive):
    world.marked_since = None
    letter = world.put(dead_at=NOON - 24 * HOUR)

    pages = world.find_all()

    assert [letter for page in pages for letter in page.letters] == [letter]
    assert len(world.letters.asked) == 25


def test_every_dead_letter_is_on_one_page_however_they_are_cut(world: Archive):
    letters = [world.put(dead_at=NOON - number * timedelta(minutes=17)) for number in range(60)]
    same_instant = [world.put(dead_at=NOON - 40 * HOUR, identity=f"same-{number}") for number in range(5)]
    expected = [*letters, *same_instant[::-1]]

    for limit in (1, 2, 7, 50):
        pages = world.find_all(replace(ACME, since=NOON - 40 * HOUR), limit=limit)
        assert [letter for page in pages for letter in page.letters] == expected
        assert all(len(page.letters) <= limit for page in pages)


def test_an_hour_with_more_dead_letters_than_a_query_gives_is_read_to_its_end(world: Archive):
    letters = [world.put(dead_at=NOON - number * timedelta(seconds=1)) for number in range(1, 251)]

    assert world.find(limit=500).letters == letters


def test_an_hour_that_is_too_busy_for_one_request_is_read_by_several(world: Archive):
    letters = [world.put(dead_at=NOON - number * timedelta(seconds=1)) for number in range(1, MOST_QUERIES + 2)]
    world.letters.largest_page = 1

    pages = world.find_all(replace(ACME, since=NOON - HOUR), limit=500)

    assert len(pages) == 2
    assert pages[0].examined_until > NOON - HOUR
    assert [letter for page in pages for letter in page.letters] == letters


def test_dead_letters_that_come_while_somebody_reads_do_not_move_the_pages(world: Archive):
    old = [world.put(dead_at=NOON - number * HOUR) for number in (1, 2)]
    first = world.find(limit=1)
    world.put(dead_at=NOON)
    world.clock.tick(HOUR)

    second = world.find(after=str(first.goes_on), limit=1)

    assert [*first.letters, *second.letters] == old


def test_the_whole_range_is_that_of_the_first_request(world: Archive):
    letter = world.put(dead_at=NOON - 24 * HOUR)
    world.put(dead_at=NOON - HOUR)
    first = world.find(limit=1)
    world.clock.tick(HOUR)

    assert world.find(after=str(first.goes_on)).letters == [letter]


@pytest.mark.parametrize(
    "wanted",
    [
        {"target": "https://example.com/a"},
        {"target": "https://example.com"},
        {"error_class": "http_500"},
        {"schedule_id": "nightly"},
        {"tag": "team:billing"},
        {"target": "https://example.com/a", "error_class": "http_500", "schedule_id": "nightly", "tag": "eu"},
    ],
)
def test_dead_letters_are_found_by_what_is_known_of_their_jobs(world: Archive, wanted: dict[str, str]):
    fire = Occurrence(schedule_id="nightly", fire_at=NOON, nominal_at=NOON)
    tags = ("team:billing", "eu")
    letter = world.put(target="https://example.com/a", error_class="http_500", occurrence=fire, tags=tags)
    world.put(target="https://example.org/a", tags=("team:sales",))
    world.letters.put(DeadLetter(tenant="acme", identity="m", dead_at=NOON, error="undecodable", raw="?"))

    assert world.find(replace(ACME, **wanted)).letters == [letter]


def test_a_target_is_matched_as_a_whole_or_by_its_destination(world: Archive):
    world.put(target="https://example.com/abc")

    for other in ("https://example.com/ab", "https://example.co", "https://example.com:444", "example.com"):
        assert world.find(replace(ACME, target=other)).letters == []


def test_what_tickwheel_did_not_write_is_found_by_its_own_sign_and_error_class(world: Archive):
    foreign = DeadLetter(
        tenant=NO_TENANT, identity="m", dead_at=NOON, error="undecodable", error_class="undecodable", raw="?"
    )
    world.letters.put(foreign)

    assert world.find().letters == []
    assert world.find(DeadLetterFilter(tenant=NO_TENANT, error_class="undecodable")).letters == [foreign]
    assert world.find(DeadLetterFilter(tenant=NO_TENANT, tag="x")).letters == []


def test_a_range_that_runs_backwards_is_refused(world: Archive):
    with pytest.raises(InvalidInput, match="since must be before until"):
        world.find(replace(ACME, since=NOON, until=NOON))


@pytest.mark.parametrize("after", ["x", "~~~", "a~b", "-1~1~~x", "1~1~é~x", "z" * 40 + "~1~~x", "1~1~~" + "x" * 1_200])
def test_an_after_that_was_made_up_is_refused(world: Archive, after: str):
    with pytest.raises(InvalidInput, match="after is not the `next` of an answer"):
        world.find(after=after)


def test_an_after_that_was_made_up_reads_no_more_than_there_can_be(world: Archive):
    far_ahead = DeadLetterId(tenant="acme", dead_at=NOON + 100 * DEAD_LETTER_LIFE, identity="x")
    made_up = Bookmark(since=NOON - 100 * DEAD_LETTER_LIFE, before=far_ahead)

    world.find(after=str(made_up))

    assert world.dead_letter_finder.begin(ACME, after=str(made_up)).since == NOON - DEAD_LETTER_LIFE
    assert world.letters.query_count <= MOST_QUERIES


def test_a_dead_letter_is_inspected_with_the_payload_that_its_target_is_given(world: Archive):
    payload = Payload(text='{"n":1}')
    inspected = world.dead_letter_finder.inspect(world.put(payload=payload).letter_id)

    assert (inspected.payload, inspected.is_payload_gone) == ('{"n":1}', False)


def test_the_payload_of_a_fire_is_filled_in(world: Archive):
    schedule = a_schedule(job=a_template(payload=Payload(text='{"at":"{{tickwheel.fire_time}}"}')))
    letter = world.put(timer=an_occurrence_timer(schedule))

    assert world.dead_letter_finder.inspect(letter.letter_id).payload == '{"at":"2027-03-01T12:00:00.000Z"}'


def test_a_large_payload_is_fetched_and_missed_when_it_is_gone(world: Archive):
    world.payloads.objects["jobs/acme/x"] = '"large"'
    letter = world.put(payload=Payload(pointer="jobs/acme/x"))

    assert world.dead_letter_finder.inspect(letter.letter_id).payload == '"large"'
    world.payloads.delete("jobs/acme/x")
    inspected = world.dead_letter_finder.inspect(letter.letter_id)
    assert (inspected.payload, inspected.is_payload_gone) == (None, True)


def test_a_job_without_a_payload_misses_none(world: Archive):
    inspected = world.dead_letter_finder.inspect(world.put(payload=Payload()).letter_id)

    assert (inspected.payload, inspected.is_payload_gone) == (None, False)


def test_a_dead_letter_that_is_not_there_cannot_be_inspected(world: Archive):
    with pytest.raises(DeadLetterNotFound, match="there is no dead letter d1~acme~"):
        world.dead_letter_finder.inspect(DeadLetterId(tenant="acme", dead_at=NOON, identity="x"))
