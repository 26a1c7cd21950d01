"""What all tests share."""

from __future__ import annotations

import gc

gc.set_threshold(100_000, 20, 100)
"""The programs under mocks make hundreds of thousands of objects that all live until the end of their test: looking
for cycles among them as often as Python does by default takes a third of the time.
"""
