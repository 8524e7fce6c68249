"""The peer of training under mpirun: the paper's network in PyTorch's DistributedDataParallel over gloo, on this machine.
Every process has the whole network and a share of the batch; gradients are averaged.

  peer_ddp.py THREADS RANKS STEPS     mean seconds of a step, the first left out
"""
import os
import sys
import time

os.environ.setdefault("PEER_DDP", " ".join(sys.argv[1:4]))  # processes that are spawned see other arguments
THREADS, RANKS, STEPS = (int(word) for word in os.environ["PEER_DDP"].split())
sys.argv = ["peer_torch.py", "step", "paper", str(THREADS), "wall"]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import peer_torch


class Loss(torch.nn.Module):
    """The loss as the forward pass, so that gradients are exchanged while the backward pass goes on."""

    def __init__(self):
        super().__init__()
        self.network = peer_torch.Paper()

    def forward(self, *batch):
        return self.network.loss(*batch)


def work(rank, times):
    torch.set_num_threads(THREADS)
    peer_torch.BATCH //= RANKS
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    model = DistributedDataParallel(Loss(), gradient_as_bucket_view=True)
    optimiser = model.module.network.optimiser()
    batch = peer_torch.made_up(peer_torch.BATCH, peer_torch.Paper.columns)
    for step in range(STEPS + 1):
        begun = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        model(*batch).backward()
        optimiser.step()
        dist.barrier()
        if rank == 0 and step > 0:
            times.put(time.perf_counter() - begun)
    dist.destroy_process_group()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    times = context.SimpleQueue()
    processes = mp.spawn(work, args=(times,), nprocs=RANKS, join=False)
    seconds = [times.get() for _ in range(STEPS)]
    while not processes.join():
        pass
    print(sum(seconds) / STEPS)
