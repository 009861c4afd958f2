"""What the rules need from the world, by role. The adapters say how; the fakes of `testkit` say it in memory.

Every write here is safe to repeat, and a refused conditional write is a result, not an error.
"""
