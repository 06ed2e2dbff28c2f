"""Work that workers are given in these tests, by name."""

import os
import signal
import time
from pathlib import Path


def square(number):
    return number * number


def fatal(number):
    """Ends its worker, whoever that is, for one number."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def fatal_once(unit):
    """Ends its worker the first time it is given this unit."""
    number, marks = unit
    mark = Path(marks) / str(number)
    if number % 3 == 0 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refused(number):
    raise ValueError(number)


def told(folder):
    """Says which process it is, and works on."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)
