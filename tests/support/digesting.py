"""``python -m tests.support.digesting INPUT`` prints a digest of what resolving a file gives."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from tests.support.files import outputs, resolve
from tests.support.rig import small_config


def digest(path: Path) -> str:
    """SHA-256 of all output files, after refits that fit weights and searches of both kinds."""
    config = small_config(
        model={"refit_at": [100, 400]},
        neighbours={"exact_below": 500, "dimension": 96},
        state={"batch_records": 50},
    )
    with tempfile.TemporaryDirectory() as folder:
        resolve(config, Path(folder), path)
        digest = hashlib.sha256()
        for name, content in outputs(Path(folder)).items():
            digest.update(name.encode() + content)
        return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest(Path(sys.argv[1])))
