from hypothesis import settings

# A busy machine must not fail a test: what a property may cost is a matter of the benchmarks.
settings.register_profile("tickwheel", deadline=None)
settings.load_profile("tickwheel")
