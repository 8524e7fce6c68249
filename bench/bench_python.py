"""What Python adds: training on Corel5k and predicting it, through the package and through the program, in turns.

Each is a process of its own that reads the file, does its work and writes what the program writes. Compared are wall time,
processor time (which others' work on the machine disturbs less) and the largest resident memory of whole processes, the
least of the rounds. LACUNA_BUILD is the build folder, EPOCHS and ROUNDS are 20 and 3 unless said otherwise.
"""
import json
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("LACUNA_BUILD") or os.path.join(ROOT, "build/bench"))
DATA = os.path.abspath(os.path.join(ROOT, "../shared/data/corel5k/corel5k_six_view.mat"))
HEAD = "import sys, numpy, lacuna\ndata = lacuna.read(sys.argv[1])\n"
TRAIN = HEAD + "lacuna.Classifier(epochs=int(sys.argv[2])).fit({}).save('model.safetensors')"
PREDICT = HEAD + "numpy.save('scores.npy', lacuna.Classifier.load('model.safetensors').predict_proba({}))"
EPOCHS, ROUNDS = os.environ.get("EPOCHS", "20"), int(os.environ.get("ROUNDS", "3"))
PROGRAM, PYTHON = f"{BUILD}/lacuna", "/usr/bin/python3"
PEERS = {"train": {"program": [PROGRAM, "train", DATA, "--epochs", EPOCHS, "--quiet", "--out", "model.safetensors"],
                   "dataset": [PYTHON, "-c", TRAIN.format("data"), DATA, EPOCHS],
                   "arrays": [PYTHON, "-c", TRAIN.format("data.Xs, data.Y, classes=data.label_names"), DATA, EPOCHS]},
         "predict": {"program": [PROGRAM, "predict", "model.safetensors", DATA, "--quiet", "--out", "scores.npy"],
                     "dataset": [PYTHON, "-c", PREDICT.format("data"), DATA],
                     "arrays": [PYTHON, "-c", PREDICT.format("data.Xs"), DATA]}}
MEASURES = (("seconds", "s", 1.02), ("processor", "s", 1.02), ("memory", "MiB", 1.1))


def run(folder, command):
    """Seconds, seconds of the processors and MiB of a command."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.environ.update(LACUNA_LIBRARY=f"{BUILD}/liblacuna.so", PYTHONPATH=f"{ROOT}/python")
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"bench_python: {' '.join(command)} ended with {status}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    if not os.path.exists(DATA):
        print(f"bench_python: {DATA} is not there", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        for what, written in (("train", "model.safetensors"), ("predict", "scores.npy")):
            found, bytes_ = {name: [] for name in PEERS[what]}, {}
            for _ in range(ROUNDS):
                for name, command in PEERS[what].items():
                    found[name].append(run(folder, command))
                    with open(f"{folder}/{written}", "rb") as file:
                        bytes_[name] = file.read() if written == "scores.npy" else b""
            if len(set(bytes_.values())) != 1:
                sys.exit("bench_python: the scores differ")
            for k, (measure, unit, limit) in enumerate(MEASURES):
                peer = min(values[k] for values in found["program"])
                for name in ("dataset", "arrays"):
                    value = min(values[k] for values in found[name])
                    print(json.dumps({"name": f"python_{what}_{measure}/corel5k_{name}", "value": value, "unit": unit,
                                      "peer": peer, "ratio": value / peer, "limit": limit}), flush=True)


main()
