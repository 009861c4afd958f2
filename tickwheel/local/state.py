"""Which local cloud stays running, as a file that is not believed without a look at the process."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tickwheel.local.home import Home
from tickwheel.local.installation import find_home
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


def read_running(home: Home | None = None) -> Running | None:
    """The running cloud of the checkout or of the user, or None; a file left behind by one that is gone is removed."""
    home = home or find_home()
    try:
        running = Running(**json.loads(home.state_file.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    if running.is_alive:
        return running
    forget_running(home)
    return None


def write_running(home: Home, running: Running) -> None:
    """Writes the state file in one step, so that a reader never sees half of it."""
    file = home.state_file
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(f"{file}.{os.getpid()}")
    draft.write_text(json.dumps(asdict(running), indent=2) + "\n")
    draft.replace(file)


def forget_running(home: Home) -> None:
    """Removes the state file; no error when there is none."""
    home.state_file.unlink(missing_ok=True)
