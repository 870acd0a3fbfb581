"""A small domain on the shared base: the executor writes a draft of words.

A draft is right if it has the word "good"; a revision after a failed check asks again.
Faults can be planned by task number: a verifier that raises, a score that is none.
"""

from dataclasses import replace

from jerp.bridge.executor import Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Feedback
from jerp.harness.actions import Action
from jerp.records import Criterion, ProcessStep, Task, Verdict


class FakeDomain(ControlledDomain):
    name = "fake"
    needs_evidence = False
    runs_code = False
    ladder = 2
    max_steps = 8

    def __init__(self, *, raises=(), bad_score=(), error=RuntimeError):
        self.raises, self.bad_score, self.error = set(raises), set(bad_score), error

    def generate(self, seed, num_tasks):
        return tuple(
            Task(
                f"fake/{seed}/{i:04d}", "fake", i % 3, f"write word {i}", {"number": i}
            )
            for i in range(num_tasks)
        )

    def request(self, workspace, action):
        task = workspace.task
        if action == Action.DRAFT:
            notes = " ".join(workspace.passages)
            text = f"{task.prompt} with {notes or 'nothing'}"
        elif action == Action.REVISE:
            text = f"{task.prompt}: {workspace.draft!r} is {workspace.feedback.text}"
        else:
            return None
        sampling = Sampling(temperature=0.7, max_tokens=8)
        return Request((Message("user", text),), sampling, workspace.sample_index)

    def verify(self, task, artefact, workspace):
        number = task.payload["number"]
        if number in self.raises:
            raise self.error(f"verifier broke on {number}")
        good = "good" in (artefact or "")
        score = float("nan") if number in self.bad_score else 0.5 + 0.5 * good
        return Verdict((Criterion("good", score, 1.0),), success=good)

    def _retrieve(self, workspace):
        note = f"note{len(workspace.passages)}"
        after = replace(workspace, passages=(*workspace.passages, note))
        return after, ProcessStep(""), note

    def _call_tool(self, workspace):
        return replace(workspace, tested=True), ProcessStep(""), "tested"

    def _write(self, workspace, action, completion):
        if completion.status not in ("ok", "truncated"):
            return workspace, ProcessStep("", error=True), "no usable answer"
        revises = action == Action.REVISE
        after = workspace.with_draft(completion.text, revises=revises)
        return after, ProcessStep("", revises=revises), completion.text

    def _check(self, workspace):
        failed = "good" not in workspace.draft
        feedback = Feedback("bad" if failed else "fine", failed)
        after = replace(workspace, checked=True, feedback=feedback)
        return after, ProcessStep(""), feedback.text


def answer(request):
    """Right for every third sample index, and always right to a revision."""
    text = request.messages[-1].content
    good = "is bad" in text or request.sample_index % 3 == 0
    return f"{'good' if good else 'poor'} {len(text)} {request.sample_index}"
