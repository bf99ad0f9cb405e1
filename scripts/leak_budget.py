"""How much the suppressions of the leak sanitizer (lsan.supp) may hide.

A suppression can name a library only, and so would hide what we ourselves forget to give back to it
as well. The sanitizer tells at the end how many bytes each has hidden: an abandoned lookup of a
name costs libcurl 16, a forgotten handle or list of ours thousands.
"""

import re

ALLOWED_BYTES = {"libcurl": 1024}


def excesses(text):
    """One line for each suppression that hid too much, in what a program wrote at its end."""
    found = re.findall(r"^ *\d+ +(\d+) (\S+)$", text.rpartition("Suppressions used:")[2], re.M)
    return [f"{size} bytes of leaks are hidden by '{name}'" for size, name in found
            if int(size) > ALLOWED_BYTES.get(name, int(size))]
