"""The queue: delays, visibility, what is in flight, and whose turn it is."""

from simulation.limits import Limits
from simulation.queues import Parcel, Queue
from simulation.virtual_time import World


class Given:
    def __init__(self, *, share: float = 1.0, limits: Limits | None = None) -> None:
        self.world = World()
        self.queue = Queue(self.world, limits or Limits(), share=share, visibility=30.0)
        self.numbers = 0

    def send(self, group: str = "acme", *, count: int = 1, delay: int = 0) -> None:
        parcels = [Parcel(f"{group}-{self.numbers + number}", "body", group) for number in range(count)]
        self.numbers += count
        self.queue.send([(parcel, delay) for parcel in parcels], at=self.world.now)
        self.world.run(until=self.world.now)

    def is_empty_until(self, at: float) -> None:
        self.world.run(until=at - 0.1)
        assert self.receive() == []
        self.world.run(until=at)

    def receive(self, limit: int = 10) -> list[str]:
        return [parcel.message_id for parcel in self.queue.receive(limit)]


def test_a_message_is_seen_when_its_delay_is_over() -> None:
    given = Given()
    given.send(delay=5)

    given.is_empty_until(5.0)

    assert given.receive() == ["acme-0"]


def test_a_batch_that_is_sent_later_is_not_there_yet() -> None:
    given = Given()
    given.queue.send([(Parcel("later", "body", "acme"), 0)], at=3.0)

    given.world.run(until=2.0)

    assert given.queue.depth == 0


def test_the_depth_counts_delayed_visible_and_in_flight() -> None:
    given = Given()
    given.send(count=3)
    given.send(delay=60)
    given.receive(2)

    assert (given.queue.visible_count, given.queue.delayed_count, given.queue.in_flight_count) == (1, 1, 2)
    assert given.queue.depth == 4


def test_a_message_that_is_not_deleted_comes_back() -> None:
    given = Given()
    given.send()
    given.receive()

    given.is_empty_until(30.0)

    (parcel,) = given.queue.receive(10)
    assert parcel.receive_count == 2


def test_a_deleted_message_does_not_come_back() -> None:
    given = Given()
    given.send()
    given.queue.delete(given.receive())

    given.world.run(until=60.0)

    assert given.queue.depth == 0


def test_a_message_can_be_hidden_for_longer() -> None:
    given = Given()
    given.send()
    given.queue.hide(given.receive()[0], until=50.0)

    given.is_empty_until(50.0)

    assert given.receive() == ["acme-0"]


def test_ten_receives_make_a_dead_message() -> None:
    given = Given()
    given.send()

    for number in range(10):
        assert given.receive() == ["acme-0"]
        given.world.run(until=30.0 * (number + 1))

    assert given.receive() == []
    assert [parcel.message_id for parcel in given.queue.dead] == ["acme-0"]


def test_nothing_is_received_above_the_limit_in_flight() -> None:
    given = Given(share=0.001)
    for _ in range(13):
        given.send(count=10)

    received = [message for _ in range(13) for message in given.receive()]

    assert len(received) == 120
    given.queue.delete(received[:1])
    assert len(given.receive()) == 1


def test_a_quiet_group_goes_before_a_noisy_one() -> None:
    given = Given()
    given.send("noisy", count=100)
    for _ in range(4):
        given.receive()
    given.send("quiet", count=2)

    assert given.receive(3) == ["quiet-100", "quiet-101", "noisy-40"]


def test_groups_that_are_not_noisy_are_served_in_order() -> None:
    given = Given()
    given.send("a", count=2)
    given.send("b", count=1)

    assert given.receive() == ["a-0", "a-1", "b-2"]
