"""An endpoint of this machine that answers from a script: a stand-in for a model."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

MODEL = "scripted-model"


@contextmanager
def scripted_endpoint(answer, *, models=(MODEL,)):
    """Serves `answer`, a function of the messages; yields the address and the bodies.

    Args:
      answer: `(messages) -> text`.
      models: that are listed.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send({"object": "list", "data": [{"id": name} for name in models]})

        def do_POST(self):
            size = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(size))
            asked.append(body)
            text = answer(body["messages"])
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            self._send(
                {
                    "id": f"answer-{len(asked)}",
                    "object": "chat.completion",
                    "created": 0,
                    "model": body["model"],
                    "choices": [choice],
                    "usage": usage,
                }
            )

        def _send(self, document):
            data = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
