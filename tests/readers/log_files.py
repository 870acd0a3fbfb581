"""Made-up logs, the smallest that each reader takes, to be broken one way at a time."""

import copy
import json
import zipfile
from pathlib import Path

from jerp.readers.log_options import LogOptions
from jerp.readers.logs import read_runs

CALL = {"role": "assistant", "tool_calls": [{"id": "1"}]}
SAID = {"role": "assistant", "content": "done"}
ASKED = {"role": "user", "content": "do"}


def inspect_sample(task="a", epoch=1, value="C", **changes):
    sample = {
        "id": task,
        "epoch": epoch,
        "messages": [ASKED, CALL, {"role": "tool"}, SAID],
        "scores": {"right": {"value": value}},
        "metadata": {"kind": "x"},
        "model_usage": {"m": {"output_tokens": 12}},
        "working_time": 1.5,
        "turn_count": 2,
    }
    return changed(sample, changes)


def inspect_header(ids=("a",), epochs=1, **changes):
    header = {
        "version": 2,
        "status": "success",
        "eval": {
            "model": "m",
            "dataset": {"sample_ids": list(ids)},
            "config": {"epochs": epochs},
        },
    }
    return changed(header, changes)


def tau2_results(simulations, tasks=("a",), trials=1):
    return {
        "info": {"num_trials": trials},
        "tasks": [{"id": task, "kind": "x"} for task in tasks],
        "simulations": simulations,
    }


def simulation(task="a", trial=0, reward=1.0, **changes):
    run = {
        "task_id": task,
        "trial": trial,
        "termination_reason": "user_stop",
        "reward_info": {"reward": reward},
        "duration": 2.0,
        "agent_cost": 0.25,
        "messages": [SAID, ASKED, CALL, {"role": "tool"}, SAID],
    }
    return changed(run, changes)


def trace(score=1.0, name="agent", **changes):
    made = {
        "agent": {"name": name, "trainable": True},
        "nodes": [
            {"message": ASKED, "sampled": False},
            {"message": CALL, "sampled": True},
            {"message": SAID, "sampled": True},
        ],
        "calls": [{"finish_reason": "stop", "usage": {"completion_tokens": 5}}],
        "rewards": {"right": {"score": score, "weight": 1.0}},
        "metrics": {"length": 3.0},
        "stop_condition": "agent_completed",
        "ok": True,
        "errors": [],
        "timing": {"agent": {"start": 100.0, "end": 101.5}},
    }
    return changed(made, changes)


def episode(*traces, task="a", **changes):
    made = {
        "task": {"key": task, "data": {"kind": "x"}},
        "ok": all(each["ok"] for each in traces),
        "errors": [],
        "traces": list(traces),
    }
    return changed(made, changes)


def chat(task="a", reward=1, **changes):
    line = {"task": task, "messages": [ASKED, CALL, SAID], "reward": reward}
    line |= {"error": None, "truncated": False}
    return changed(line, changes)


def changed(record, changes):
    """The record with some fields set, or taken out where the change is `...`."""
    record = {**copy.deepcopy(record), **changes}
    return {name: value for name, value in record.items() if value is not ...}


def eval_log(path: Path, samples, header=None, journal=False):
    name = "_journal/start.json" if journal else "header.json"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for i, sample in enumerate(samples):
            file.writestr(f"samples/a_epoch_{i}.json", json.dumps(sample))
        file.writestr(name, json.dumps(header or inspect_header()))
    return path


def document(path: Path, value):
    path.write_text(json.dumps(value))
    return path


def lines(path: Path, *values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def outcomes(path, **asked):
    """Outcome and spent of each run, in the order of the file."""
    table = read_runs(path, options=LogOptions(**asked))
    return table.outcome.tolist(), table.spent.tolist()
