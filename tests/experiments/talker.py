"""Says so many bytes, waits for so many seconds, and ends with a status."""

import sys
import time

size, status, *wait = sys.argv[1:]
sys.stderr.write("x" * int(size))
time.sleep(float(*wait) if wait else 0)
if int(status):
    sys.stderr.write("\nerror: the reason\n")
sys.exit(int(status))
