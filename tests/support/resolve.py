"""Records in, entities out, in one call and in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stream.config import Config
from tests.support.people import Fields
from tests.support.rig import Rig, upserts


def resolve(
    records: Iterable[tuple[str, Fields]],
    fields: Mapping[str, Any],
    refit: bool = False,
    **sections: Any,
) -> list[set[str]]:
    """The entities of the records as sets of their ids, those with the smallest ids first.

    fields: type of each field. refit: whether the model is fitted again when all are in, as at the
    end of an input. sections: of the configuration, besides the fields.
    """
    config = Config.model_validate_json(json.dumps({"fields": fields, **sections}))
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(config, Path(folder))
        rig.feed(upserts(records))
        if refit:
            rig.engine.refit()
        rig.engine.resolver.check()
        return sorted((set(members) for members in rig.clusters()), key=min)


__all__ = ["resolve"]
