"""No cheat earns more than 0.15 on average, in any domain."""

import pytest

from jerp.bridge.sandbox import Sandbox
from jerp.domains.controlled.coding import CodingDomain
from jerp.domains.controlled.knowledge_work import KnowledgeWorkDomain
from jerp.domains.controlled.long_memory import LongMemoryDomain
from jerp.domains.controlled.multi_tool import MultiToolDomain
from jerp.domains.controlled.planning import PlanningDomain
from jerp.domains.controlled.research import ResearchDomain
from tests.domains.cheats import (
    CHEATS,
    LIMIT,
    TEMPLATES,
    constant,
    mean_score,
    thorough,
)

NUM_TASKS = 60
DOMAINS = {
    "coding": lambda: CodingDomain(Sandbox()),
    "knowledge-work": KnowledgeWorkDomain,
    "long-memory": LongMemoryDomain,
    "multi-tool": MultiToolDomain,
    "planning": PlanningDomain,
    "research": ResearchDomain,
}


@pytest.fixture(scope="module", params=sorted(DOMAINS))
def domain(request):
    return DOMAINS[request.param]()


@pytest.fixture(scope="module")
def tasks(domain):
    return domain.generate(0, NUM_TASKS)


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_cheat_earns_next_to_nothing(domain, tasks, name):
    answer, choose = CHEATS[name]
    assert mean_score(domain, tasks, answer, choose) < LIMIT


def test_no_constant_template_earns_anything_to_speak_of(domain, tasks):
    earned = {
        text: mean_score(domain, tasks[::4], constant(text), thorough)
        for text in TEMPLATES[domain.name]
    }
    assert max(earned.values()) < LIMIT, earned


@pytest.mark.parametrize("artefact", [None, "", "{prompt}", "{key}"])
def test_verifier_pays_nothing_for_what_is_no_work(domain, tasks, artefact):
    for task in tasks:
        text = artefact and artefact.format(prompt=task.prompt, key=task.key)
        verdict = domain.verify(task, text, domain.begin(task, 0))
        assert verdict.score == 0 and not verdict.success
