"""An agent of one tool on the standard library: boxes_agent.py URL KEY MODEL PROMPT."""

import json
import sys
import urllib.request

from endpoint import BOX

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Says what is in a box.",
        "parameters": {"type": "object", "properties": {"box": {"type": "string"}}},
    },
}


def answer(url, key, model, messages):
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps({"model": model, "messages": messages, "tools": [TOOL]}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]


def observation(call):
    box = json.loads(call["function"]["arguments"])["box"]
    held = [item for item, place in BOX.items() if place == box]
    text = f"The {box} box holds: {', '.join(held)}."
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def main():
    url, key, model, prompt = sys.argv[1:]
    messages = [{"role": "user", "content": prompt}]
    while True:
        message = answer(url, key, model, messages)
        messages.append(message)
        if not message.get("tool_calls"):
            break
        messages += map(observation, message["tool_calls"])


if __name__ == "__main__":
    main()
