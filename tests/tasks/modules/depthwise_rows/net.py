from torch import nn


class Net(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv1d(c, c, 3, padding=1, groups=c)

    def forward(self, x):
        return self.conv(x)
