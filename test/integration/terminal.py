# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)
"""A terminal that a test reads."""

import os
import re


def read_terminal(master, until=None):
    """Output of a program to a terminal: to its end, or until a pattern is seen."""
    shown = b""
    while until is None or not re.search(until, shown):
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
        if len(shown) > 1 << 20:
            raise AssertionError(f"there is no end of it: {shown[:1000]}")
    return shown
