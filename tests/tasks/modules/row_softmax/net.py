from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return nn.functional.softmax(x, dim=1)
