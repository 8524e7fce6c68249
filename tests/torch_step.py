# Steps of the two-channel network in PyTorch: torch_step.py IN.npz OUT.npz ..., weights and a batch in, losses and all
# gradients out. Written from docs/math.md; run by test_torch.cc.
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def step(source, result):
    data = dict(np.load(source))
    options = json.loads(bytes(data.pop("options")).decode())
    weights = {k[2:]: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in data.items() if k.startswith("w:")}
    views = int(data["views"].item())
    clean = [torch.tensor(data[f"clean{v}"], dtype=torch.float64) for v in range(views)]
    masked = [torch.tensor(data[f"masked{v}"], dtype=torch.float64) for v in range(views)]
    W = torch.tensor(data["W"], dtype=torch.float64)
    Y = torch.tensor(data["Y"], dtype=torch.float64)
    G = torch.tensor(data["G"], dtype=torch.float64)
    b, c = Y.shape

    def chain(name, x):
        l = 0
        while f"{name}.{l}.weight" in weights:
            if l > 0:
                x = torch.relu(x)
            x = x @ weights[f"{name}.{l}.weight"] + weights[f"{name}.{l}.bias"]
            l += 1
        return x

    def norm(name, x, present):
        if options["end-norm"] == "none":
            return x
        gamma, beta = weights[name + ".norm.gamma"][0], weights[name + ".norm.beta"][0]
        if options["end-norm"] == "layer":
            return F.layer_norm(x, x.shape[1:], gamma, beta, 1e-5)
        if options["end-norm"] == "batch":
            return F.batch_norm(x, None, None, gamma, beta, True, 0.1, 1e-5)
        out = torch.zeros_like(x)
        out[present] = F.batch_norm(x[present], None, None, gamma, beta, True, 0.1, 1e-5)
        return out

    channels = ["shared", "private"][: options["channels"]]
    E = [[norm(f"{ch}.{v}", chain(f"{ch}.{v}", masked[v]), W[:, v] > 0) for v in range(views)] for ch in channels]
    k = W.sum(1, keepdim=True)
    means = [sum(E[i][v] * W[:, v : v + 1] for v in range(views)) / k for i in range(len(channels))]
    fused = means[0]
    if options["channels"] == 2:
        fused = means[0] * torch.sigmoid(means[1]) if options["gate"] else means[0] + means[1]
    Z = torch.relu(fused) if options["fused-relu"] else fused
    logits = Z @ weights["classifier.weight"] + weights["classifier.bias"]
    divisor = G.sum() if options["bce-divisor"] == "known" else b * c
    if options["bce-form"] == "log":
        P, e = torch.sigmoid(logits), options["bce-epsilon"]
        bce = (G * (Y * torch.log(P + e) + (1 - Y) * torch.log(1 - P + e)).abs()).sum() / divisor
    else:
        bce = (G * F.binary_cross_entropy_with_logits(logits, Y, reduction="none")).sum() / divisor
    losses = {"classification": bce}
    total = bce
    if options["alpha"] > 0:
        Q = F.normalize(Z, dim=1, eps=1e-12) if options["graph-normalise"] else Z
        product = (G @ G.T) * (Y @ Y.T)
        T = product / (product + options["graph-eta"])
        trace = torch.trace(Q.T @ (torch.diag(T.sum(1)) - T) @ Q) / b**2
        losses["graph"] = trace * (2 if options["graph-form"] == "pairwise" else 1)
        total = total + options["alpha"] * losses["graph"]
    if options["beta"] > 0:
        value = 0
        for i in range(b):
            own = [v for v in range(views) if W[i, v] > 0]
            n = len(own)
            if n < 2:
                continue
            Q = F.normalize(torch.stack([E[0][v][i] for v in own] + [E[1][v][i] for v in own]), dim=1)
            S = Q @ Q.T
            N = n if options["contrast-count"] == "views" else n * n
            negative = (S**2).sum() - (S[:n, :n] ** 2).sum() - torch.diag(S)[n:].pow(2).sum()
            positive = ((S[:n, :n] + 1 + options["contrast-epsilon"]) / 2).sum() - (
                (torch.diag(S)[:n] + 1 + options["contrast-epsilon"]) / 2
            ).sum()
            value = value + options["contrast-factor"] * (negative / (3 * N * N - N)) / (positive / (N * N - N))
        losses["contrastive"] = value
        total = total + options["beta"] * value
    if options["gamma"] > 0:
        value = 0
        for v in range(views):
            x = fused if options["decoder-input"] == "fused" else sum(E[i][v] for i in range(len(channels)))
            target = clean[v] if options["reconstruction-target"] == "clean" else masked[v]
            value = value + (W[:, v : v + 1] * (chain(f"decoder.{v}", x) - target) ** 2).sum() / (b * target.shape[1])
        losses["reconstruction"] = value
        total = total + options["gamma"] * value
    if options["view-weight"] > 0:
        teacher, value = torch.sigmoid(logits).detach(), 0
        for v in range(views):
            view = torch.relu(E[0][v]) @ weights[f"view_classifier.{v}.weight"] + weights[f"view_classifier.{v}.bias"]
            taught = F.binary_cross_entropy_with_logits(view, teacher, reduction="none")
            told = F.binary_cross_entropy_with_logits(view, Y, reduction="none") * G / G.mean()
            share = options["view-teacher"]
            value = value + (W[:, v : v + 1] * (share * taught + (1 - share) * told)).sum()
        losses["view"] = value / (W.sum() * c)
        total = total + options["view-weight"] * losses["view"]
    losses["total"] = total
    total.backward()
    out = {"loss:" + name: np.array([[float(value)]]) for name, value in losses.items()}
    for name, w in weights.items():
        out["g:" + name] = (w.grad if w.grad is not None else torch.zeros_like(w)).numpy()
    np.savez(result, **out)


for source, result in zip(sys.argv[1::2], sys.argv[2::2]):
    step(source, result)
