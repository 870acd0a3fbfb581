"""Run as a program by test_store: puts numbered records into a store.

python -m tests.bridge.store_writer FOLDER NAME COUNT [FILE_SIZE_LIMIT]

After every flush it says up to which number everything is on disk.
"""

import resource
import sys

from jerp.bridge.store import ResponseStore
from jerp.errors import StorageError


def record(name, number):
    return {"name": name, "number": number, "text": f"{name}\u2028{number}" * 20}


def main():
    folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if len(sys.argv) > 4:
        limit = int(sys.argv[4])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    store = ResponseStore(folder)
    print("started", flush=True)
    for number in range(count):
        store.put("verdict", f"{name}/{number}", record(name, number))
        if number % 5 == 4:
            try:
                store.flush()
            except StorageError as error:
                print("error", error, flush=True)
                return
            print(number, flush=True)
    store.close()
    print("closed", flush=True)


if __name__ == "__main__":
    main()
