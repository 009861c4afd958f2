"""Every check there is."""

from smoke import billed, chains, deployed, executions, front_door, neighbours, patience, troubles, watching
from smoke.check import Check

CHECKS: tuple[Check, ...] = (
    *deployed.CHECKS,
    *front_door.CHECKS,
    *executions.CHECKS,
    *troubles.CHECKS,
    *chains.CHECKS,
    *neighbours.CHECKS,
    *watching.CHECKS,
    *billed.CHECKS,
    *patience.CHECKS,
)
