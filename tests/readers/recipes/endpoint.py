"""A scripted chat endpoint: `/v1/chat/completions` on this machine, with fixed answers.

Nothing here is a language model. The model's name chooses a column of `EPISODES`, the
item that the conversation is about chooses a row, and the episodes of a row are played
one after the other, an assistant message a turn. Start no two conversations at once.

    look BOX   a call of the tool `look`
    look BOX+BOX   two calls in one message
    say BOX    the text `ANSWER: BOX`
    mumble     a text in no format
    cut        a text that ends at the length limit
    break      HTTP 400, which no client tries again
    code TEXT  the text, for HumanEval
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BOX = {"key": "oak", "coin": "pine", "ring": "elm", "lamp": "fir"}
"""Where each item is."""

CATEGORY = {"key": "wood", "coin": "wood", "ring": "glass", "lamp": "glass"}

QUESTION = "In which box is the {item}? Boxes: oak, pine, elm, fir. Say ANSWER: BOX."

EPISODES = {
    "scripted-base": {
        "key": [
            ["look oak", "say oak"],
            ["say pine"],
            ["look pine", "look oak", "say oak"],
            ["look pine+oak", "say oak"],
        ],
        "coin": [
            ["say oak"],
            ["look oak", "look pine", "say pine"],
            ["look pine", "say pine"],
            ["look oak", "break"],
        ],
        "ring": [
            ["look oak", "say oak"],
            ["say elm"],
            ["look oak", "look pine", "look fir", "look oak", "look pine", "say elm"],
            ["mumble"],
        ],
        "lamp": [
            ["say oak"],
            ["look oak", "say oak"],
            ["look oak", "look pine", "say pine"],
            ["cut"],
        ],
    },
    "scripted-trained": {
        "key": [["look oak", "say oak"]] * 4,
        "coin": [["look oak", "look pine", "say pine"]] * 3 + [["say oak"]],
        "ring": [
            ["look oak", "look elm", "say elm"],
            ["look elm", "say elm"],
            ["say oak"],
            ["look oak", "look pine", "look elm", "say elm"],
        ],
        "lamp": [
            ["look fir", "say fir"],
            ["say oak"],
            ["look oak", "break"],
            ["look pine", "look fir", "say fir"],
        ],
    },
}

TOKENS = {"look": 7, "say": 3, "mumble": 2, "cut": 16, "code": 9}
"""What the endpoint says it generated, by kind of turn; each prompt has 20."""


def tool_calls(turn, boxes):
    return [
        {
            "id": f"call_{turn}_{i}",
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps({"box": box})},
        }
        for i, box in enumerate(boxes)
    ]


def message_of(turn, number):
    """The assistant message of a turn, and why it ends."""
    kind, _, rest = turn.partition(" ")
    if kind == "look":
        calls = tool_calls(number, rest.split("+"))
        return {"role": "assistant", "content": "", "tool_calls": calls}, "tool_calls"
    text = {
        "say": f"ANSWER: {rest}",
        "mumble": "Somewhere.",
        "cut": "It may be in the",
        "code": rest,
    }
    reason = "length" if kind == "cut" else "stop"
    return {"role": "assistant", "content": text[kind]}, reason


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return content


class Script:
    """Plays the episodes of each model and item in order, and then again."""

    def __init__(self, episodes):
        self.episodes, self.begun, self.lock = episodes, {}, threading.Lock()

    def next_turn(self, model, messages):
        """What the model says now, and how many messages it has said before."""
        rows = self.episodes[model]
        asked = [text_of(m) for m in messages if m["role"] in ("system", "user")]
        item = next(item for item in rows if f"the {item}" in " ".join(asked))
        user = next(i for i, m in enumerate(messages) if m["role"] == "user")
        number = sum(m["role"] == "assistant" for m in messages[user:])
        with self.lock:
            begun = self.begun.get((model, item), -1) + (number == 0)
            self.begun[model, item] = begun
        turns = rows[item][begun % len(rows[item])]
        return turns[min(number, len(turns) - 1)], number


class Handler(BaseHTTPRequestHandler):
    script: Script

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(size))
        model = request["model"].rpartition("/")[2]
        turn, number = self.script.next_turn(model, request["messages"])
        if turn == "break":
            self.answer(400, {"error": {"message": "the script breaks here"}})
            return
        message, reason = message_of(turn, number)
        generated = TOKENS[turn.split()[0]]
        self.answer(
            200,
            {
                "id": f"scripted-{number}",
                "object": "chat.completion",
                "created": 0,
                "model": model,
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {
                    "prompt_tokens": 20,
                    "completion_tokens": generated,
                    "total_tokens": 20 + generated,
                },
            },
        )

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


def serve(episodes=EPISODES, port=8765):
    """Answers from a thread of this process; returns the base URL."""
    handler = type("ScriptedHandler", (Handler,), {"script": Script(episodes)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{port}/v1"
