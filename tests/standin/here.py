"""The one device of this process."""

from __future__ import annotations

import functools

from tests.standin.device import Device


@functools.cache
def device() -> Device:
    return Device()
