"""Numbers and arrays as one checked run of bytes.

Layout: magic (8 bytes), length of the header (uint64, little endian), header (JSON: the scalars,
and name, dtype and shape of each array), the arrays one after the other, BLAKE2b digest (16 bytes)
of all before. Nothing in it is executed when read, and damage anywhere is found.
"""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clustering.errors import StoreError

MAGIC = b"graftdN1"
DIGEST = 16
START = len(MAGIC) + 8


class State(NamedTuple):
    """What an index is made of, by name."""

    scalars: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]

    def under(self, prefix: str) -> State:
        """The same with ``prefix`` before every name, to be part of a larger state."""
        return State(
            {prefix + name: value for name, value in self.scalars.items()},
            {prefix + name: array for name, array in self.arrays.items()},
        )

    def part(self, prefix: str) -> State:
        """What ``under`` put in with this prefix."""
        return State(
            {k.removeprefix(prefix): v for k, v in self.scalars.items() if k.startswith(prefix)},
            {k.removeprefix(prefix): v for k, v in self.arrays.items() if k.startswith(prefix)},
        )


def pack(state: State) -> bytes:
    """The bytes of a state; scalars must be JSON values."""
    arrays = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in state.arrays.items()
    }
    shapes = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    header = json.dumps({"scalars": state.scalars, "arrays": shapes}).encode()
    parts: list[bytes | memoryview] = [MAGIC, len(header).to_bytes(8, "little"), header]
    parts += [array.reshape(-1).view(np.uint8).data for array in arrays.values()]
    digest = blake2b(digest_size=DIGEST)
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def unpack(data: bytes) -> State:
    """The state that ``pack`` made these bytes of; its arrays are read-only views of ``data``.

    Raises StoreError when the bytes are not what ``pack`` wrote.
    """
    if len(data) < START + DIGEST or not data.startswith(MAGIC):
        raise StoreError("not a snapshot of a neighbour index; rebuild it from the live vectors")
    view = memoryview(data)
    if blake2b(view[:-DIGEST], digest_size=DIGEST).digest() != view[-DIGEST:]:
        raise StoreError(
            "the snapshot of the neighbour index is damaged; rebuild it from the live vectors"
        )
    end = START + int.from_bytes(view[len(MAGIC) : START], "little")
    header = json.loads(bytes(view[START:end]))
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        count = math.prod(shape)
        arrays[name] = np.frombuffer(data, dtype, count, end).reshape(shape)
        end += arrays[name].nbytes
    return State(header["scalars"], arrays)
