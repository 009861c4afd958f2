"""What a scanner is made of, by the names of the fields that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from functions.scanner.budgets import Budgets
from functions.scanner.fair_scan import FairScan
from functions.scanner.leases import Leases
from functions.scanner.promote import Promoter
from functions.scanner.renew import Renewer
from functions.scanner.schedule_alarms import ScheduleAlarms
from functions.scanner.unsendable_rows import UnsendableRows
from functions.scanner.warm import Warmer

PARTS: Mapping[str, type] = MappingProxyType(
    {
        "alarms": ScheduleAlarms,
        "budgets": Budgets,
        "fair_scan": FairScan,
        "leases": Leases,
        "promoter": Promoter,
        "renewer": Renewer,
        "unsendable": UnsendableRows,
        "warmer": Warmer,
    }
)
