"""What the guard's process asks of the operating system, and what it does without when that is refused."""

from __future__ import annotations

import subprocess
import sys

MIB = 1 << 20

UNDER_A_LIMIT = f"""
import os, resource
from edgeguard.runtime.realtime import request_real_time
most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
most = 256 * {MIB} if most == resource.RLIM_INFINITY else min(most, 256 * {MIB})
resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(request_real_time().memory)
allocated = bytearray(512 * {MIB})
"""


def test_a_limit_on_locked_memory_is_none_on_what_may_be_allocated() -> None:
    """A lock of all that is to come would be granted under it, and the guard end at the next large allocation."""
    done = subprocess.run([sys.executable, "-c", UNDER_A_LIMIT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kB may be" in done.stdout
    assert "LimitMEMLOCK=infinity" in done.stdout
