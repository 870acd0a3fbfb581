"""verifiers 0.4.0 on the scripted endpoint: traces.jsonl.

Run it in an empty folder, see README.md beside it.
"""

import linecache
import os
from pathlib import Path

from endpoint import serve
from verifiers.v1.cli.eval.main import main as evaluate


def main():
    # Tracebacks without lines of other people's code.
    linecache.getlines = lambda filename, module_globals=None: []
    url = serve()
    os.environ["SCRIPTED_API_KEY"] = "none"
    options = {
        "model": "scripted-base",
        "client.base-url": url,
        "client.api-key-var": "SCRIPTED_API_KEY",
        "num-rollouts": 4,
        "max-concurrent": 1,
        "env.agent.runtime.type": "subprocess",
        "env.agent.max-turns": 4,
        "run.name": "boxes",
        "output-dir": "outputs",
    }
    words = [w for name, value in options.items() for w in (f"--{name}", str(value))]
    evaluate(["boxes-study", *words, "--no-rich", "--no-push"])
    # Where the runs' folders were is a path of one machine.
    text = Path("outputs/boxes/traces.jsonl").read_text()
    Path("traces.jsonl").write_text(text.replace(f"{Path.home()}/", ""))


if __name__ == "__main__":
    main()
