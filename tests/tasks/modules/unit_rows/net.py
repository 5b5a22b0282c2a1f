from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return nn.functional.normalize(x, dim=1)
