"""A ready queue: an SQS standard queue with delays, visibility, a limit of messages in flight, and fair delivery."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import count

from simulation.limits import Limits
from simulation.virtual_time import World

MAX_RECEIVE_COUNT = 10


@dataclass(slots=True)
class Parcel:
    """A message in a queue. hidden_until: of one that was received."""

    message_id: str
    body: str
    group: str
    queue: str = ""
    receive_count: int = 0
    order: int = 0
    hidden_until: float = 0.0


class Queue:
    """One queue. share: of the stage that is simulated; limits are scaled by it. wakes: called when there is something.

    Quiet groups first: a noisy one has more than a tenth of what is in flight (SQS fair queues). Within each, the
    oldest first; SQS itself promises no order.
    """

    def __init__(self, world: World, limits: Limits, *, share: float, visibility: float) -> None:
        self._world = world
        self._limits = limits
        self._share = share
        self._visibility = visibility
        self._visible: dict[str, deque[Parcel]] = {}
        self._in_flight: dict[str, Parcel] = {}
        self._of_group: Counter[str] = Counter()
        self._orders = count()
        self.wakes: Callable[[], None] = lambda: None
        self.delayed_count = 0
        self.visible_count = 0
        self.dead: list[Parcel] = []
        self.sends = 0
        self.receives = 0
        self.deletes = 0

    @property
    def in_flight_count(self) -> int:
        """Messages that are with a consumer."""
        return len(self._in_flight)

    @property
    def depth(self) -> int:
        """Messages: visible, delayed and in flight."""
        return self.visible_count + self.delayed_count + len(self._in_flight)

    def send(self, entries: Sequence[tuple[Parcel, int]], *, at: float) -> None:
        """Take a batch at an instant: each message with its delay in seconds."""
        self.sends += 1
        self._world.at(at, lambda: self._take(entries))

    def receive(self, limit: int) -> list[Parcel]:
        """Visible messages, hidden from others for the visibility timeout; none above the limit in flight."""
        most = max(1.0, self._limits.in_flight * self._share)
        limit = min(limit, int(most) - len(self._in_flight))
        if limit <= 0 or not self.visible_count:
            return []
        self.receives += 1
        received = self._pick(limit)
        hidden_until = self._world.now + self._visibility
        for parcel in received:
            parcel.receive_count += 1
            parcel.hidden_until = hidden_until
            self._in_flight[parcel.message_id] = parcel
            self._of_group[parcel.group] += 1
        self.visible_count -= len(received)
        self._world.at(hidden_until, lambda: self._show_again(received))
        return received

    def delete(self, message_ids: Sequence[str]) -> None:
        """Acknowledge messages, up to ten a request."""
        self.deletes += 1
        for message_id in message_ids:
            self._land(message_id)

    def hide(self, message_id: str, *, until: float) -> None:
        """Change the visibility of a message that is in flight."""
        parcel = self._in_flight[message_id]
        parcel.hidden_until = until
        self._world.at(until, lambda: self._show_again([parcel]))

    def _take(self, entries: Sequence[tuple[Parcel, int]]) -> None:
        by_delay: dict[int, list[Parcel]] = {}
        for parcel, delay in entries:
            by_delay.setdefault(delay, []).append(parcel)
        self.delayed_count += len(entries)
        for delay, parcels in by_delay.items():
            self._world.at(self._world.now + delay, lambda parcels=parcels: self._appear(parcels))

    def _appear(self, parcels: Sequence[Parcel]) -> None:
        self.delayed_count -= len(parcels)
        self._show(parcels)

    def _show(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            parcel.order = next(self._orders)
            self._visible.setdefault(parcel.group, deque()).append(parcel)
        self.visible_count += len(parcels)
        self.wakes()

    def _show_again(self, parcels: Sequence[Parcel]) -> None:
        back = [
            parcel
            for parcel in parcels
            if self._in_flight.get(parcel.message_id) is parcel and parcel.hidden_until <= self._world.now
        ]
        for parcel in back:
            self._land(parcel.message_id)
        self.dead += [parcel for parcel in back if parcel.receive_count >= MAX_RECEIVE_COUNT]
        alive = [parcel for parcel in back if parcel.receive_count < MAX_RECEIVE_COUNT]
        if alive:
            self._show(alive)

    def _land(self, message_id: str) -> None:
        parcel = self._in_flight.pop(message_id, None)
        if parcel is not None:
            self._of_group[parcel.group] -= 1

    def _pick(self, limit: int) -> list[Parcel]:
        turns = [(self._is_noisy(group), waiting[0].order, group) for group, waiting in self._visible.items()]
        heapify(turns)
        picked: list[Parcel] = []
        while turns and len(picked) < limit:
            is_noisy, _, group = turns[0]
            waiting = self._visible[group]
            picked.append(waiting.popleft())
            if waiting:
                heapreplace(turns, (is_noisy, waiting[0].order, group))
            else:
                del self._visible[group]
                turns[0] = turns[-1]
                turns.pop()
                heapify(turns)
        return picked

    def _is_noisy(self, group: str) -> bool:
        least = max(1.0, self._limits.noisy_least * self._share)
        held = self._of_group[group]
        return held >= least and held > self._limits.noisy_share * len(self._in_flight)
