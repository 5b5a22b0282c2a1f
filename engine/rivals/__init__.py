"""Other libraries that a user could choose, as sessions of ours: PyTorch (`torch_net`: from our Graph to a
torch module; `torch_cpu`, `torch_cuda`), OpenVINO (`openvino_cpu`), and NVIDIA's libraries put together by
hand (`cudnn_net`: from our Graph to cuDNN graphs and products; `cudnn_cuda`), and TensorRT (`tensorrt_cuda`).

They run in isolated processes (engine.isolated), each in the environment that has the library
(kernels.environment). Only these processes import it.
"""
