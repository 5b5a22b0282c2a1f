import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return nn.functional.silu(x) * self.scale
