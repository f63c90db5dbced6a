"""A linkage kernel looked up once, so that calls do not pay for it.

Handing a kernel to another kernel as an argument costs some 25 microseconds a call, which is as
much as an insert's work on the tree; a struct that holds the function costs one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.experimental import structref

from clustering.linkage import LINKAGE_TYPE


@structref.register
class _BoundLinkageType(types.StructRef):
    """numba's type of `BoundLinkage`."""


class BoundLinkage(structref.StructRefProxy):
    """A struct with one field; keep the kernel itself alive while using it."""

    linkage: Callable[..., float]


structref.define_boxing(_BoundLinkageType, BoundLinkage)  # type: ignore[no-untyped-call]
BOUND_LINKAGE_TYPE = _BoundLinkageType(  # type: ignore[no-untyped-call]
    [("linkage", LINKAGE_TYPE)]
)


@njit(BOUND_LINKAGE_TYPE(LINKAGE_TYPE), cache=True)
def bind(linkage: Callable[..., float]) -> BoundLinkage:
    """The struct for a kernel that was compiled with LINKAGE_SIGNATURE."""
    bound: Any = structref.new(BOUND_LINKAGE_TYPE)  # type: ignore[call-arg]
    bound.linkage = linkage
    return bound
