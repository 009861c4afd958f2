"""Which local cloud stays running in this checkout, as a file that is not believed without a look at the process."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tickwheel.errors import NotACheckout
from tickwheel.local.checkout import Checkout, find_checkout
from tickwheel.local.processes import command_of

GATEWAY_MODULE = "tickwheel.local.gateway"


@dataclass(frozen=True, kw_only=True)
class Running:
    """A local cloud that outlives the command that started it; `api_endpoint` is None until it is deployed."""

    pid: int
    port: int
    log: str
    api_endpoint: str | None = None

    @property
    def is_alive(self) -> bool:
        """Whether that process still is a local cloud: after a restart of the machine its id may be another's."""
        return is_local_cloud(self.pid)


def is_local_cloud(pid: int) -> bool:
    """Whether the process with that id is a local cloud."""
    return GATEWAY_MODULE in command_of(pid)


def read_running(checkout: Checkout | None = None) -> Running | None:
    """The running cloud of the checkout, or None; a file left behind by one that is gone is removed."""
    try:
        checkout = checkout or find_checkout()
    except NotACheckout:
        return None
    try:
        running = Running(**json.loads(checkout.state_file.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    if running.is_alive:
        return running
    forget_running(checkout)
    return None


def write_running(checkout: Checkout, running: Running) -> None:
    """Writes the state file in one step, so that a reader never sees half of it."""
    file = checkout.state_file
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(f"{file}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(running), indent=2) + "\n")
    draft.replace(file)


def forget_running(checkout: Checkout) -> None:
    """Removes the state file; no error when there is none."""
    checkout.state_file.unlink(missing_ok=True)
