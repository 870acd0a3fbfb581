"""A taskset and a harness of our own for verifiers, named by make_verifiers.py."""

import sys
from pathlib import Path

import verifiers.v1 as vf
from endpoint import BOX, CATEGORY, QUESTION

PROGRAM = str(Path(__file__).with_name("boxes_agent.py"))


class BoxesData(vf.TaskData):
    category: str
    answer: str


class BoxesTask(vf.Task[BoxesData]):
    @property
    def key(self) -> str:
        return self.data.name

    @vf.reward(weight=1.0)
    async def found(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == f"ANSWER: {self.data.answer}")

    @vf.metric
    async def words(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply.split()))


class BoxesTaskset(vf.Taskset[BoxesTask, vf.TasksetConfig]):
    def load(self):
        return [
            BoxesTask(
                BoxesData(
                    name=item,
                    prompt=QUESTION.format(item=item),
                    category=CATEGORY[item],
                    answer=box,
                ),
                self.config.task,
            )
            for item, box in BOX.items()
        ]


class BoxesHarness(vf.Harness[vf.HarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx,
        trace,
        runtime,
        endpoint,
        secret,
        mcp_urls,
        data,
        tool_interception_url=None,
    ):
        words = [sys.executable, PROGRAM, endpoint, secret, ctx.model, data.prompt]
        return await runtime.run(words, {})


__all__ = ["BoxesHarness", "BoxesTaskset"]
