#!/usr/bin/env python3
"""Whatever runs in several threads, under the thread sanitizer: training, gaps that are filled, predictions from eight
threads, experiments in four processes, and the server under load while its model is replaced, until SIGTERM. Fails on any report.

usage: tools/test_threads.py BUILD      (a build with -DLACUNA_SANITIZE=thread)
"""
import http.client
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

SIZES = {"view0": 12, "view1": 9, "view2": 7}
ROWS = 3  # of a request


def quiet(work, *command):
    """Runs to its end; what it says is shown if it fails."""
    with open(work / "said", "wb") as said:
        code = subprocess.call(list(map(str, command)), stdout=said, stderr=said)
    if code != 0:
        print((work / "said").read_text(errors="replace"))
        raise SystemExit(f"{' '.join(map(str, command))} ended with {code}")


def simulate(lacuna, work):
    quiet(work, lacuna, "data", "simulate", work / "data.npz", "--rows", 400, "--views", 3, "--labels", 6,
          "--sizes", ",".join(map(str, SIZES.values())))


def train(lacuna, work, out, *more):
    quiet(work, lacuna, "train", work / "data.npz", "--out", work / out, "--threads", 4, *more)


def training(build, work):
    lacuna = build / "lacuna"
    simulate(lacuna, work)
    small = ["--epochs", 2, "--width", ".05", "--embedding", 20]  # of the paper's network: it would take an hour
    for preset, more in (("best", ["--epochs", 2]), ("repaired", small), ("authors", small)):
        for precision in ("f32", "bf16"):
            train(lacuna, work, "net.safetensors", "--preset", preset, "--precision", precision, *more)
            quiet(work, lacuna, "predict", work / "net.safetensors", work / "data.npz", "--out", work / "scores.npz",
                  "--threads", 4)
    train(lacuna, work, "net.safetensors", "--preset", "distilled", "--epochs", 1, "--members", 2)
    for method in ("dicnet", "c2ae"):
        train(lacuna, work, "net.safetensors", "--method", method, "--epochs", 1)
    for method in ("naim3l", "imvwl", "cdmm", "lvsl", "glocal", "dm2l", "linear", "mlknn"):
        train(lacuna, work, "net.safetensors", "--method", method)


def gaps(build, work):
    """Rows read ahead from files, candidates of a portfolio, views and labels filled in."""
    lacuna, data = build / "lacuna", work / "rows"
    simulate(lacuna, work)
    quiet(work, lacuna, "data", "mask", work / "data.npz", work / "folds.npz", "--repeats", 1)
    fold = ["--folds", work / "folds.npz", "--fold", 0]
    quiet(work, lacuna, "data", "convert", work / "data.npz", data)
    # The sanitizer's own memory counts: the limit is there to have rows in files, not to be reached.
    quiet(work, lacuna, "train", data, "--out", work / "net.safetensors", "--threads", 4, "--epochs", 2, "--memory-limit", "900T",
          "--shuffle-window", 64)
    train(lacuna, work, "net.safetensors", "--preset", "auto", "--epochs", 1, "--budget", "1h", *fold)
    train(lacuna, work, "net.safetensors", "--epochs", 2, "--memory", 1, "--keep-decoders", *fold)
    quiet(work, lacuna, "predict", work / "net.safetensors", work / "data.npz", "--known-labels", "--out", work / "scores.npz",
          "--threads", 4)
    quiet(work, lacuna, "explain", work / "net.safetensors", work / "data.npz", "--out", work / "why.csv", "--threads", 4)
    quiet(work, lacuna, "recover", work / "net.safetensors", work / "data.npz", *fold, "--out", work / "filled", "--threads", 4)
    quiet(work, lacuna, "complete", work / "data.npz", *fold, "--out", work / "labels.csv", "--epochs", 1, "--parts", 2,
          "--threads", 4)


def predictions(build, work):
    quiet(work, build / "tests/test_base", "--gtest_filter=Threads.*")
    quiet(work, build / "tests/test_model", "--gtest_filter=*Reentrant*")


def experiments(build, work):
    simulate(build / "lacuna", work)
    command = [build / "lacuna", "bench", "table", "--data", work / "data.npz", "--methods", "prior,naim3l,lacuna", "--set",
               "lacuna.epochs=2", "--repeats", 4, "--threads", 2, "--out", work / "table", "--resume"]
    running = []
    for k in range(4):
        said = open(work / f"bench{k}", "wb")
        running.append(subprocess.Popen(list(map(str, command)), stdout=said, stderr=said))
    for k, process in enumerate(running):
        if process.wait() != 0:
            print((work / f"bench{k}").read_text(errors="replace"))
            raise SystemExit(f"bench ended with {process.returncode}")


class Server:
    def __init__(self, build, work, models, *more):
        self.errors = work / "server.err"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen([str(build / "lacuna"), "serve", *models, "--listen", "127.0.0.1:0", *more],
                                            stderr=errors)
        while not (found := re.search(r"listening on http://127.0.0.1:(\d+)\n", self.said())):
            if self.process.poll() is not None:
                raise SystemExit(self.said())
            time.sleep(.05)
        self.port = int(found[1])

    def said(self):
        return self.errors.read_text(errors="replace")

    def ask(self, method, target, body=None, headers={}):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        return exchange(connection, method, target, body, headers)


def exchange(connection, method, target, body=None, headers={}):
    connection.request(method, target, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def values(view, row):
    return [((7 * k + 3 * row + len(view)) % 11 - 5) / 4 for k in range(SIZES[view])]


def json_request():
    return json.dumps({"inputs": [{"name": view, "datatype": "FP32", "shape": [ROWS, size],
                                   "data": sum((values(view, row) for row in range(ROWS)), [])}
                                  for view, size in SIZES.items()], "outputs": [{"name": "scores"}]}).encode()


def binary_request():
    inputs, tensors = [], b""
    for view, size in SIZES.items():
        inputs.append({"name": view, "datatype": "FP32", "shape": [ROWS, size],
                       "parameters": {"binary_data_size": 4 * ROWS * size}})
        tensors += struct.pack(f"<{ROWS * size}f", *sum((values(view, row) for row in range(ROWS)), []))
    head = json.dumps({"inputs": inputs, "outputs": [{"name": "scores"}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + tensors, {"Inference-Header-Content-Length": str(len(head))}


def json_scores(answer):
    return json.loads(answer[2])["outputs"][0]["data"]


def binary_scores(answer):
    tensors = answer[2][int(answer[1]["Inference-Header-Content-Length"]):]
    return struct.unpack(f"<{len(tensors) // 4}f", tensors)


class Load:
    """Clients that ask until the door is closed; every answer must be whole and one of the two models'."""

    def __init__(self, server):
        self.server, self.faults, self.answered = server, [], 0
        self.leaving = False
        binary, headers = binary_request()
        self.truths = [json_scores(server.ask("POST", f"/v2/models/{name}/infer", json_request())) for name in "ab"]
        item = json.dumps({"id": "x", "views": {view: values(view, 0) for view in SIZES}}).encode()
        infer = "/v2/models/photos/infer"
        kinds = [[("POST", infer, json_request(), {}, json_scores)],
                 [("POST", infer, binary, headers, binary_scores)],
                 [("POST", infer, json_request(), {}, json_scores), ("POST", infer, binary, headers, binary_scores)],
                 [("POST", "/v1/suggest?model=photos&top=3", item, {}, None),
                  ("POST", "/v1/suggest?model=photos&explain=true", item, {}, None),
                  ("POST", "/v1/suggest-batch?model=photos", item + b"\n" + item, {}, None)],
                 [("GET", target, None, {}, None)
                  for target in ("/metrics", "/v2/models/photos", "/v2/models", "/", "/openapi.json")]]
        self.threads = [threading.Thread(target=self.work, args=(kinds[k % len(kinds)],)) for k in range(10)]
        for thread in self.threads:
            thread.start()

    def right(self, scores):
        return any(len(scores) == len(truth) and all(abs(x - y) < 1e-5 for x, y in zip(scores, truth))
                   for truth in self.truths)

    def work(self, requests):
        connection, k = None, 0
        while True:
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
                try:
                    connection.connect()
                except OSError as error:
                    if not self.leaving:
                        self.faults.append(f"no connection: {error}")
                    return
            method, target, body, headers, scores = requests[k % len(requests)]
            k += 1
            try:
                answer = exchange(connection, method, target, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.faults.append(f"{target}: {error!r}")
                return
            self.answered += 1
            if answer[0] != 200 or (scores and not self.right(scores(answer))):
                self.faults.append(f"{target}: {answer[0]} {answer[2][:300]}")
            if answer[1].get("Connection") == "close":
                connection = None

    def passes(self, more):
        aim = self.answered + more
        while self.answered < aim and not self.faults:
            time.sleep(.02)

    def end(self):
        for thread in self.threads:
            thread.join()
        if self.faults:
            raise SystemExit("\n".join(self.faults[:10]) + "\n" + self.server.said())


def replace(source, target):
    shutil.copy(source, f"{target}.new")
    os.rename(f"{target}.new", target)


def serving(build, work):
    simulate(build / "lacuna", work)
    train(build / "lacuna", work, "a.safetensors", "--epochs", 2)
    train(build / "lacuna", work, "b.safetensors", "--epochs", 2, "--seed", 7)
    served = work / "photos.safetensors"
    shutil.copy(work / "a.safetensors", served)
    server = Server(build, work, [str(work / "a.safetensors"), str(work / "b.safetensors"), str(served)],
                    "--threads", "4")
    load = Load(server)
    for version, model in ((2, "b"), (3, "a"), (4, "b")):
        load.passes(200)
        replace(work / f"{model}.safetensors", served)
        while f"version {version} loaded" not in server.said() and not load.faults:
            time.sleep(.05)
    load.passes(400)
    load.leaving = True
    server.process.send_signal(signal.SIGTERM)
    code = server.process.wait()
    load.end()
    if code != 0 or " 0 abandoned" not in server.said():
        raise SystemExit(f"the server ended with {code}:\n{server.said()}")


def faults(build, work):
    quiet(work, build / "tests/test_serve")
    quiet(work, build / "tests/test_serve_faults")


STEPS = {"training with four threads": training,
         "gaps filled and rows in files": gaps,
         "predictions from eight threads": predictions,
         "experiments in four processes": experiments,
         "the server under load": serving,
         "what clients do to a server": faults}


def main(build):
    work = build / "threads"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    # Forked children of a process with threads are ours to test as well. A report does not end the process: the files
    # are counted.
    os.environ["TSAN_OPTIONS"] = f"log_path={work}/report:die_after_fork=0:exitcode=66"
    for name, step in STEPS.items():
        begun = time.monotonic()
        try:
            step(build, work)
        finally:
            reports = sorted(work.glob("report.*"))
            print(f"{name}: {len(reports)} processes with reports, {time.monotonic() - begun:.0f} s", flush=True)
            for report in reports[:3]:
                print(report.read_text(errors="replace")[:6000])
        if reports:
            return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
