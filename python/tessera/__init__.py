# SPDX-License-Identifier: Apache-2.0
"""Tessera: deep-learning primitives as graphs that are planned, fused and explained. See docs/python.md."""
from ._fuse import fuse
from ._tessera import *
from ._tessera import __version__
