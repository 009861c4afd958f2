"""Whose processor time the bench counts: that of a stack that this process has started, and of what the stack has started."""

import subprocess
import sys

from bench.processor_time import processor_time

BURN = "sum(range(10_000_000))"
EMULATOR = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{BURN}; print(1, flush=True); input()']); input()"


def test_an_emulator_and_its_functions_are_told_apart_from_who_asks():
    before = processor_time()
    command = [sys.executable, "-c", EMULATOR, "tickwheel.local.gateway"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        emulator.stdout.readline()  # its function has worked
        used = processor_time().since(before)
        emulator.communicate("\n\n")

    assert before.emulator == before.functions == 0
    assert used.functions > 0.05
    assert used.emulator > 0
    assert used.client >= 0
