# op = "conv"
# rung = 5
# name = "fft"
# method = "fft"
# idea = "Multiplies spectra: the cost of an output no longer grows with the size of its window."
# side = true
# needs = {stride = 1, dilation = 1}
"""Y = F⁻¹(Σ over c of F(x) · conj F(w)): a cross-correlation is a product of spectra, a frequency at a time.

Transforms are as long as the padded image, so that what wraps round falls on outputs that are not kept. Per
frequency the sum over channels is a GEMM of complex numbers, (m / g, c / g) @ (c / g, images).
M. Mathieu, M. Henaff and Y. LeCun, "Fast Training of Convolutional Networks through FFTs", 2013
(arXiv:1312.5851). An element reaches every output of its image, and so do NaN and infinity.
"""

import numpy as np

from kernels.cpu.common import activation, carve, scratch_nbytes

BLOCK_NBYTES = 32 << 20  # spectra of a block of images


def _smooth(n):
    """The least length from n upwards whose only factors are 2, 3 and 5."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1


def _size(p):
    """Height and width of the transforms: the padded image, and no window reaches beyond."""
    height = max(p.h + p.pad_top + p.pad_bottom, p.out_h + p.kh - 1)
    width = max(p.w + p.pad_left + p.pad_right, p.out_w + p.kw - 1)
    return _smooth(height), _smooth(width)


def _images(p):
    height, width = _size(p)
    return max(1, min(p.n, BLOCK_NBYTES // (8 * (p.c + p.m) * height * (width // 2 + 1))))


def workspace(p):
    return scratch_nbytes((_images(p), p.c, *_size(p)))


def _spectra(p, weights):
    """conj F(w) as (frequencies, group, m / group, c / group), complex64."""
    size = _size(p)
    spectra = np.conj(np.fft.rfft2(weights.reshape(p.m, p.c // p.group, p.kh, p.kw), size))
    spectra = spectra.reshape(p.group, p.m // p.group, p.c // p.group, -1)
    return np.ascontiguousarray(spectra.transpose(3, 0, 1, 2), np.complex64)


def pack(p, inputs):
    return [inputs[0], None if inputs[1] is None else _spectra(p, inputs[1]), *inputs[2:]]


def bind(p, inputs, output, workspace):
    x = inputs[0].reshape(p.n, p.c, p.h, p.w)
    y = output.reshape(p.n, p.m, p.out_h, p.out_w)
    height, width = size = _size(p)
    (padded,) = carve(workspace, (_images(p), p.c, height, width))
    inside = padded[:, :, p.pad_top : p.pad_top + p.h, p.pad_left : p.pad_left + p.w]
    packed = inputs[1] if np.iscomplexobj(inputs[1]) else None
    after = activation(p.activation, output)

    def run():
        spectra = _spectra(p, inputs[1]) if packed is None else packed
        padded.fill(0)
        for first in range(0, p.n, len(padded)):
            block = y[first : first + len(padded)]
            images = len(block)
            np.copyto(inside[:images], x[first : first + images])
            f = np.fft.rfft2(padded[:images]).reshape(images, p.group, p.c // p.group, -1)
            f = np.ascontiguousarray(f.transpose(3, 1, 2, 0))  # (frequencies, group, c / group, images)
            products = np.matmul(spectra, f).transpose(3, 1, 2, 0)
            whole = np.fft.irfft2(products.reshape(images, p.m, height, width // 2 + 1), size)
            np.copyto(block, whole[:, :, : p.out_h, : p.out_w])
        if p.bias:
            np.add(y, inputs[2].reshape(p.m, 1, 1), out=y)
        for call in after:
            call()

    return run
