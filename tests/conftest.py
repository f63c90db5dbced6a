"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Speed differs between machines and the first call of a kernel compiles it, so no deadlines.
settings.register_profile("local", deadline=None)
# In CI the same examples on every run: a failure there is one of the change's own making.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
