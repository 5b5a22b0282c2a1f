from torch import nn


class Net(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return nn.functional.relu(self.linear(x))
