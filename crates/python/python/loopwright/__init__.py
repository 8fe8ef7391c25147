"""Loopwright."""
from . import _core
