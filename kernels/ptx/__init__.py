"""CUDA kernels without a GPU: PTX is read (`reader`), its control flow ordered (`flow`), a kernel translated
to LLVM for this machine (`translate`, `instructions`), and launched (`program`) by a machine that watches
every access to memory (`machine`)."""
