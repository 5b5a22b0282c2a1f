"""What else a user could pick, as sessions of ours: PyTorch (`torch_net`: from our Graph to a torch module,
`torch_cpu`, `torch_cuda`), OpenVINO (`openvino_cpu`).

They run in processes apart (engine.apart), in an environment of their own where there is one (`environment`);
what a module here imports of a rival is imported there alone.
"""
