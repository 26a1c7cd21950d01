"""Configuration of all tests."""

import gc

gc.set_threshold(100_000, 20, 100)
"""The programs under mocks create hundreds of thousands of objects that exist until the end of their test. Python's
default frequency of garbage collection would take a third of the time.
"""
