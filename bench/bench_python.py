"""What Python adds: training and predicting Corel5k through the package and through the program, in turns.

Each is a process of its own that reads the file, learns, writes the model and the scores; wall time (the least of the
rounds) and the largest resident memory of whole processes are compared. LACUNA_BUILD is the build folder.
"""
import json
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("LACUNA_BUILD") or os.path.join(ROOT, "build/bench")
DATA = os.path.join(ROOT, "../shared/data/corel5k/corel5k_six_view.mat")
SCRIPT = """
import sys, numpy, lacuna
data = lacuna.read(sys.argv[1])
clf = lacuna.Classifier(epochs=int(sys.argv[2])).fit({fit})
clf.save("model.safetensors")
numpy.save("scores.npy", clf.predict_proba({use}))
"""
EPOCHS, ROUNDS = os.environ.get("EPOCHS", "20"), int(os.environ.get("ROUNDS", "3"))


def run(folder, *commands):
    """Seconds and MiB of some commands in a row."""
    begun, most = time.monotonic(), 0
    for command in commands:
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.environ.update(LACUNA_LIBRARY=f"{BUILD}/liblacuna.so", PYTHONPATH=f"{ROOT}/python")
            os.execv(command[0], command)
        _, status, usage = os.wait4(child, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)} ended with {status}")
        most = max(most, usage.ru_maxrss / 1024)
    return time.monotonic() - begun, most


def main():
    if not os.path.exists(DATA):
        print(f"bench_python: {DATA} is not there", file=sys.stderr)
        return
    data, program, python = os.path.abspath(DATA), f"{BUILD}/lacuna", "/usr/bin/python3"
    whole = SCRIPT.format(fit="data", use="data")
    arrays = SCRIPT.format(fit="data.Xs, data.Y, classes=data.label_names", use="data.Xs")
    peers = {"program": [[program, "train", data, "--epochs", EPOCHS, "--quiet", "--out", "model.safetensors"],
                         [program, "predict", "model.safetensors", data, "--out", "scores.npy"]],
             "arrays": [[python, "-c", arrays, data, EPOCHS]], "dataset": [[python, "-c", whole, data, EPOCHS]]}
    found, bytes_ = {name: [] for name in peers}, {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, commands in peers.items():
                found[name].append(run(folder, *commands))
                with open(f"{folder}/scores.npy", "rb") as file:
                    bytes_[name] = file.read()
    if len(set(bytes_.values())) != 1:
        sys.exit("bench_python: the scores differ")
    for k, (what, unit, limit) in enumerate((("seconds", "s", 1.02), ("memory", "MiB", 1.1))):
        peer = min(values[k] for values in found["program"])
        for name in ("dataset", "arrays"):
            value = min(values[k] for values in found[name])
            print(json.dumps({"name": f"python_{what}/corel5k_{name}", "value": value, "unit": unit, "peer": peer,
                              "ratio": value / peer, "limit": limit}))


main()
