"""Other libraries that a user could choose, as sessions of ours: PyTorch (`torch_net`: from our Graph to a
torch module; `torch_cpu`, `torch_cuda`) and OpenVINO (`openvino_cpu`).

They run in isolated processes (engine.isolated), each in the environment that has the library
(kernels.environment). Only these processes import it.
"""
