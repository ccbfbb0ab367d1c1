"""Trains a small transformer language model for a few steps: PyTorch and nothing else.

    python transformer.py [--steps N] [--graph] [--check]

--graph   captures a whole step (forward, backward, optimizer) in a CUDA graph, and replays it
--check   fails unless the loss falls: for devices that run kernels, which a double of the driver does not
"""

import argparse
import gc

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, BLOCKS, CONTEXT, BATCH = 1024, 256, 8, 2, 128, 16


class Block(nn.Module):
    """Attention and a perceptron, each on normalized input and added to it."""

    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attention(self, x):
        batch, length, _ = x.shape
        heads = self.projections(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.logits = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.logits(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def batch(step):
    """Sequences that count up from a random token, in pinned memory: each token follows from the last."""
    generator = torch.Generator().manual_seed(step)
    first = torch.randint(VOCABULARY, (BATCH, 1), generator=generator)
    return ((first + torch.arange(CONTEXT + 1)) % VOCABULARY).pin_memory()


def one_step(model, optimizer, tokens):
    """Forward, loss, backward, optimizer; gives the loss."""
    optimizer.zero_grad(set_to_none=True)
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


def eager(model, optimizer, steps):
    """Each step by itself; gives the losses."""
    return [one_step(model, optimizer, batch(step).to("cuda", non_blocking=True)).item() for step in range(steps)]


def graphed(model, optimizer, steps):
    """Captures a step after three that warm up on another stream, and replays it."""
    tokens = batch(0).to("cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            one_step(model, optimizer, tokens)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = one_step(model, optimizer, tokens)
    losses = []
    for step in range(steps):
        tokens.copy_(batch(step), non_blocking=True)
        graph.replay()
        losses.append(loss.item())
    return losses


def train(steps, with_graph):
    """Trains a new model, of which nothing is left afterwards; gives the losses."""
    torch.manual_seed(0)
    model = Transformer().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=with_graph)
    losses = (graphed if with_graph else eager)(model, optimizer, steps)
    torch.cuda.synchronize()
    return losses


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    losses = train(options.steps, options.graph)
    gc.collect()
    if options.check:
        assert losses[-1] < 0.9 * losses[0], losses
    print(f"transformer: {options.steps} steps {'by a graph ' if options.graph else ''}done")


if __name__ == "__main__":
    main()
