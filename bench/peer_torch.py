"""The speed peer: both networks in PyTorch, written as one would who cares for speed (batched losses, no Python loop over
rows or pairs, fused multi-tensor optimiser, one optimiser step a batch). Made-up numbers in the shape of Corel5k.

  peer_torch.py step    paper|best THREADS wall|cpu [bf16]   best and mean seconds of a training step
  peer_torch.py serve   paper|best THREADS wall|cpu [bf16]   reads numbers from stdin; for each, makes so many steps and
                                                             prints their best and mean seconds
  peer_torch.py predict paper|best THREADS wall|cpu ROWS     best seconds of a prediction of ROWS rows
  peer_torch.py latency paper|best THREADS wall|cpu          median and 99th percentile seconds of one row
"""
import os
import sys
import time

os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")  # the packaged OpenBLAS does not know newer CPUs
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = sys.argv[3]

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(int(sys.argv[3]))
torch.manual_seed(1)
BATCH, LABELS, WIDTH = 128, 260, 512
now = time.process_time if sys.argv[4] == "cpu" else time.perf_counter
BF16 = sys.argv[-1] == "bf16"


def chain(widths):
    layers = []
    for a, b in zip(widths[:-1], widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class Paper(nn.Module):
    """MTD as its authors' program computes it."""

    columns = [100, 1000, 4096, 4096, 4096, 512]

    def __init__(self):
        super().__init__()
        h = [round(.8 * d) for d in self.columns]
        encoder = lambda d, w: nn.Sequential(chain([d, w, w, 1500, WIDTH]), nn.BatchNorm1d(WIDTH))
        self.shared = nn.ModuleList(encoder(d, w) for d, w in zip(self.columns, h))
        self.own = nn.ModuleList(encoder(d, w) for d, w in zip(self.columns, h))
        self.decoders = nn.ModuleList(chain([WIDTH, WIDTH, 1500, w, w, d]) for d, w in zip(self.columns, h))
        self.classifier = nn.Linear(WIDTH, LABELS)

    def fuse(self, X, W):
        S = torch.stack([e(x) for e, x in zip(self.shared, X)], 1)
        O = torch.stack([e(x) for e, x in zip(self.own, X)], 1)
        k = W.sum(1, keepdim=True)
        mean = lambda A: (A * W.unsqueeze(2)).sum(1) / k
        return S, O, F.relu(mean(S) * torch.sigmoid(mean(O)))

    def forward(self, X, W):
        return torch.sigmoid(self.classifier(self.fuse(X, W)[2]))

    def loss(self, X, W, Y, G):
        X = [fragment_mask(x) for x in X]
        S, O, Z = self.fuse(X, W)
        P = torch.sigmoid(self.classifier(Z))
        bce = (G * (Y * torch.log(P + 1e-5) + (1 - Y) * torch.log(1 - P + 1e-5)).abs()).sum() / G.sum()
        graph = (G @ G.T) * (Y @ Y.T)
        T = graph / (graph + 100)
        Zn = F.normalize(Z)
        gc = (Zn * (T.sum(1, keepdim=True) * Zn - T @ Zn)).sum() / BATCH**2
        m = len(X)
        Q = F.normalize(torch.cat([S, O], 1), dim=2)
        C = Q @ Q.transpose(1, 2)
        w2 = torch.cat([W, W], 1)
        pairs = w2.unsqueeze(2) * w2.unsqueeze(1) * (1 - torch.eye(2 * m, device=W.device))
        positive = pairs.clone()
        positive[:, m:, :] = 0
        positive[:, :, m:] = 0
        k = W.sum(1)
        negatives = (C.square() * (pairs - positive)).sum((1, 2)) / (3 * k * k - k)
        positives = ((C + 1 + 1e-6) / 2 * positive).sum((1, 2)) / (k * k - k).clamp(min=1)
        ccc = torch.where(k > 1, .5 * negatives / positives.clamp(min=1e-12), torch.zeros_like(k)).sum()
        re = sum((((d(S[:, v] + O[:, v]) - x).square()).sum(1) * W[:, v]).sum() / (BATCH * x.shape[1])
                 for v, (d, x) in enumerate(zip(self.decoders, X)))
        return bce + 1e-4 * gc + 1e-4 * ccc + .1 * re

    def optimiser(self):
        return torch.optim.SGD(self.parameters(), lr=.01, momentum=.9, foreach=True)


class Best(nn.Module):
    """The small network of preset `best`."""

    columns = [96] * 6

    def __init__(self):
        super().__init__()
        K = self.columns[0]
        self.encoders = nn.ModuleList(nn.Sequential(nn.Linear(K, 1024), nn.ReLU(inplace=True), nn.Dropout(.5),
                                                    nn.Linear(1024, WIDTH), nn.LayerNorm(WIDTH)) for _ in self.columns)
        self.view_classifiers = nn.ModuleList(nn.Linear(WIDTH, LABELS) for _ in self.columns)
        self.decoders = nn.ModuleList(chain([WIDTH, WIDTH, K]) for _ in self.columns)
        self.classifier = nn.Linear(WIDTH, LABELS)
        self.average = None

    def fuse(self, X, W):
        S = torch.stack([e(x) for e, x in zip(self.encoders, X)], 1)
        return S, (S * W.unsqueeze(2)).sum(1) / W.sum(1, keepdim=True)

    def forward(self, X, W):
        return torch.sigmoid(self.classifier(F.relu(self.fuse(X, W)[1])))

    def loss(self, X, W, Y, G):
        left = W * (torch.rand_like(W) > .3)
        left = torch.where(left.sum(1, keepdim=True) == 0, W, left)
        S, z = self.fuse([fragment_mask(x) for x in X], left)
        logits = self.classifier(F.dropout(F.relu(z), .3))
        bce = lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none")
        total = (G * bce(logits, Y)).sum() / G.sum()
        V = F.dropout(F.relu(S), .3)
        view_logits = torch.stack([c(V[:, v]) for v, c in enumerate(self.view_classifiers)], 1)
        teacher = torch.sigmoid(logits.detach()).unsqueeze(1).expand_as(view_logits)
        labels = Y.unsqueeze(1).expand_as(view_logits)
        per = .9 * bce(view_logits, teacher) + .1 * bce(view_logits, labels) * (G / G.mean()).unsqueeze(1)
        total = total + 3 * (per * left.unsqueeze(2)).sum() / (left.sum() * LABELS)
        for v, (d, x) in enumerate(zip(self.decoders, X)):
            total = total + .01 * ((d(z) - x).square() * W[:, v:v + 1]).mean()
        return total

    def optimiser(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4, weight_decay=5, foreach=True)

    def after_step(self):
        parameters = list(self.parameters())
        if self.average is None:
            self.average = [p.detach().clone() for p in parameters]
        torch._foreach_mul_(self.average, .99)
        torch._foreach_add_(self.average, [p.detach() for p in parameters], alpha=.01)


def fragment_mask(x):
    """Zeroes a run of a quarter of the columns in every row."""
    d = x.shape[1]
    length = d // 4
    start = torch.randint(0, max(1, d - length - 1), (x.shape[0], 1), device=x.device)
    at = torch.arange(d, device=x.device)
    return x * ~((at >= start) & (at < start + length))


def made_up(rows, columns):
    W = (torch.rand(rows, len(columns)) < .5).float()
    W[torch.arange(rows), torch.randint(0, len(columns), (rows,))] = 1
    X = [(torch.rand(rows, d) * 3.4 - 1.7) * W[:, v:v + 1] for v, d in enumerate(columns)]
    G = (torch.rand(rows, LABELS) < .5).float()
    return X, W, (torch.rand(rows, LABELS) < .013).float() * G, G


def all_of(work, least, seconds, warm_up=True):
    """Seconds of each of at least so many runs."""
    if warm_up:
        work()
    times, begin = [], now()
    while len(times) < least or now() - begin < seconds:
        start = now()
        work()
        times.append(now() - start)
    return times


ROWS = 3500


def train(network, serve):
    """Consecutive steps over fresh batches, epoch after epoch; a step gathers its rows and draws its masks."""
    optimiser, data = network.optimiser(), made_up(ROWS, network.columns)
    X, rest = data[0], data[1:]
    batches = []

    def step():
        if not batches:
            batches.extend(torch.randperm(ROWS)[:ROWS // BATCH * BATCH].split(BATCH))
        rows = batches.pop()
        batch = [[x[rows] for x in X]] + [part[rows] for part in rest]
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            loss = network.loss(*batch)
        loss.backward()
        optimiser.step()
        if hasattr(network, "after_step"):
            network.after_step()

    def report(times):
        print(min(times), sum(times) / len(times), flush=True)

    if not serve:
        return report(all_of(step, 3, 4))
    step()
    for line in sys.stdin:
        report(all_of(step, int(line), 0, warm_up=False))


def main():
    what, network = sys.argv[1], {"paper": Paper, "best": Best}[sys.argv[2]]()
    if what in ("step", "serve"):
        return train(network, what == "serve")
    network.eval()
    rows = int(sys.argv[5]) if what == "predict" else 1
    X, W, _, _ = made_up(rows, network.columns)

    @torch.inference_mode()
    def predict():
        for begin in range(0, rows, 512):
            network([x[begin:begin + 512] for x in X], W[begin:begin + 512])

    times = sorted(all_of(predict, 3, 2))
    print(times[0] if what == "predict" else f"{times[len(times) // 2]} {times[int(len(times) * .99)]}")


if __name__ == "__main__":
    main()
