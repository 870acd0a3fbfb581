"""The client openai on the scripted endpoint: chat.jsonl, a conversation a line.

Run it in an empty folder, see README.md beside it. The messages are what the client
returns; what stands beside them is ours, since there is no standard for it.
"""

import json
from pathlib import Path

import openai
from boxes_agent import TOOL, observation
from endpoint import BOX, CATEGORY, QUESTION, serve

MOST_TURNS = 4


def conversation(client, item):
    """The messages, whether the turns ran out, and what broke, if something did."""
    messages = [{"role": "user", "content": QUESTION.format(item=item)}]
    for _ in range(MOST_TURNS):
        try:
            answer = client.chat.completions.create(
                model="scripted-base", messages=messages, tools=[TOOL]
            )
        except openai.APIStatusError as error:
            return messages, False, error.message
        message = answer.choices[0].message.model_dump(exclude_none=True)
        messages.append(message)
        if not message.get("tool_calls"):
            return messages, answer.choices[0].finish_reason == "length", None
        messages += map(observation, message["tool_calls"])
    return messages, True, None


def main():
    client = openai.OpenAI(base_url=serve(), api_key="none", max_retries=0)
    lines = []
    for _ in range(4):
        for item, box in BOX.items():
            messages, truncated, error = conversation(client, item)
            line = {
                "task": item,
                "messages": messages,
                "truncated": truncated,
                "error": error,
                "metadata": {"category": CATEGORY[item]},
            }
            if error is None:
                line["reward"] = float(messages[-1]["content"] == f"ANSWER: {box}")
            lines.append(json.dumps(line) + "\n")
    Path("chat.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
