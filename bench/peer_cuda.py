"""The speed peer on a GPU: the networks of peer_torch.py in one of PyTorch's modes, with fused optimisers.

  peer_cuda.py paper|best eager|compile|reduce-overhead tf32|bf16     median seconds of a training step
"""
import os
import sys
import time

network_name, mode, precision = sys.argv[1:4]
sys.argv = [sys.argv[0], "none", network_name, "8", "wall"]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402

import peer_torch  # noqa: E402

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("high")
BATCH, ROWS = peer_torch.BATCH, peer_torch.ROWS

network = {"paper": peer_torch.Paper, "best": peer_torch.Best}[network_name]().cuda()
if network_name == "paper":
    optimiser = torch.optim.SGD(network.parameters(), lr=.01, momentum=.9, fused=True)
else:
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=5, fused=True)
X, *rest = peer_torch.made_up(ROWS, network.columns)
X, rest = [x.cuda() for x in X], [part.cuda() for part in rest]


def loss(batch_X, W, Y, G):
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
        return network.loss(batch_X, W, Y, G)


if mode == "compile":
    loss = torch.compile(loss)
elif mode == "reduce-overhead":
    loss = torch.compile(loss, mode="reduce-overhead")
batches = []


def step():
    if not batches:
        batches.extend(torch.randperm(ROWS, device="cuda")[:ROWS // BATCH * BATCH].split(BATCH))
    rows = batches.pop()
    if mode == "reduce-overhead":
        torch.compiler.cudagraph_mark_step_begin()
    value = loss([x[rows] for x in X], *[part[rows] for part in rest])
    value.backward()
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)  # gradients are memory of the captured graph, which writes them again
    if hasattr(network, "after_step"):
        network.after_step()


for _ in range(8):
    step()
torch.cuda.synchronize()
times = []
for _ in range(7):
    begin = time.perf_counter()
    for _ in range(27):
        step()
    torch.cuda.synchronize()
    times.append((time.perf_counter() - begin) / 27)
print(sorted(times)[3])
