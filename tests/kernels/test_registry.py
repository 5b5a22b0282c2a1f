"""The ladder's folders: ours are in order, and a file that breaks a rule is named in the error."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernels import registry
from kernels.errors import InputError, KernelError
from kernels.ops import OPS, sized
from kernels.ops.cast import Cast
from kernels.ops.conv import Conv
from kernels.ops.gemm import Gemm
from kernels.ops.lrn import Lrn
from kernels.ops.pool import Pool
from kernels.ops.softmax import Softmax
from kernels.ops.transpose import Transpose
from kernels.ops.unary import Unary
from kernels.precision import NAMES

CPU = """# op = "unary"
# rung = {number}
# name = "{name}"
# idea = "Mine."
{more}
def bind(p, inputs, output, workspace):
    return lambda: None
"""
CUDA = """/*
op = "conv"
rung = 71
name = "mine"
idea = "Mine."
launch = "some_shape"
{more}
*/
extern "C" __global__ void conv() {{}}
"""
CONV = Conv(2, 4, 8, 8, 4, 3, 3, 6, 6)


def write(folder: Path, number: int = 71, name: str = "mine", more: str = "", file: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (file or f"{number:02d}_{name}.py")
    path.write_text(CPU.format(number=number, name=name, more=more))
    return path


def write_cuda(folder: Path, more: str = "", text: str | None = None) -> Path:
    path = folder / "71_mine.cu"
    path.write_text(CUDA.format(more=more) if text is None else text)
    return path


@pytest.mark.parametrize("device", registry.SUFFIX)
@pytest.mark.parametrize("op", OPS)
def test_every_operator_has_a_ladder_in_order(device: str, op: str) -> None:
    ladder = registry.rungs(device, op)
    assert ladder
    of_files = {rung.path: rung.number for rung in ladder}  # of several precisions they are several rungs
    assert [rung.number for rung in ladder] == sorted(rung.number for rung in ladder)
    assert len({*of_files.values()}) == len(of_files)
    assert len({rung.name for rung in ladder}) == len(ladder)
    for rung in ladder:
        assert rung.idea.endswith(".")
        ending = ".py" if rung.language else registry.SUFFIX[device]
        first = next(r for r in ladder if r.path == rung.path)
        assert rung.path.name == f"{rung.number:02d}_{first.name}{ending}"
        assert (rung.launch != "") == (device == "cuda")
        assert not rung.user


def test_find_by_name_number_and_text(tmp_path: Path) -> None:
    rung = registry.find("cpu", "conv", "im2col")
    assert rung.number == 2
    assert registry.find("cpu", "conv", 2) == rung == registry.find("cpu", "conv", "02")
    with pytest.raises(InputError, match=r"no rung 'im2cal' of conv on cpu \(did you mean 'im2col'"):
        registry.find("cpu", "conv", "im2cal")
    with pytest.raises(
        InputError, match=r"no rung 'triton' of gemm on cpu \(there is one on cuda\); there are: 1"
    ):
        registry.find("cpu", "gemm", "triton")
    with pytest.raises(InputError, match=r"no operator or task 'cnov' in the ladder \(did you mean 'conv'"):
        registry.rungs("cpu", "cnov")
    with pytest.raises(InputError, match="nowhere does not exist"):
        registry.rungs("cpu", "conv", [tmp_path / "nowhere"])


@pytest.mark.parametrize("below", ["", "unary", "cpu/unary"])
def test_a_folder_of_ones_own(tmp_path: Path, below: str) -> None:
    path = write(tmp_path / below)
    (tmp_path / "setup.py").write_text("not a rung")
    (path.parent / "_helper.py").write_text("not a rung")
    ladder = registry.rungs("cpu", "unary", [tmp_path])
    assert [rung.name for rung in ladder if rung.user] == ["mine"]
    assert registry.find("cpu", "unary", 71, [tmp_path]).path == path.resolve()
    assert not any(rung.user for rung in registry.rungs("cpu", "conv", [tmp_path]))
    assert not registry.default("cpu", Unary("relu", 4)).user


def test_a_side_rung_is_found_and_never_taken_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    write(tmp_path / "cpu" / "unary", 1, "plain")
    write(tmp_path / "cpu" / "unary", 2, "beside", "# side = true")
    write(tmp_path / "cpu" / "unary", 3, "library", "# yardstick = true")
    assert registry.default("cpu", Unary("relu", 4)).name == "plain"
    for name in ("beside", "library"):
        assert registry.find("cpu", "unary", name).side


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert registry.find("cpu", "unary", 71, [tmp_path]).idea == "Mine."
    path.write_text(path.read_text().replace("Mine.", "Now better."))
    os.utime(path, ns=(1, 1))
    assert registry.find("cpu", "unary", 71, [tmp_path]).idea == "Now better."


def test_a_folder_is_listed_each_time_and_a_file_read_once(tmp_path: Path, monkeypatch) -> None:
    path = write(tmp_path)
    assert len(registry.rungs("cpu", "unary", [tmp_path])) > 1
    parsed: list[Path] = []
    parse = registry.parse
    monkeypatch.setattr(registry, "parse", lambda path, *rest: parsed.append(path) or parse(path, *rest))
    resolve = Path.resolve
    monkeypatch.setattr(Path, "resolve", lambda self: pytest.fail(f"{self} was resolved again"))
    for _ in range(3):
        assert registry.find("cpu", "unary", "mine", [tmp_path]).path == path
    assert not parsed
    monkeypatch.setattr(Path, "resolve", resolve)
    write(tmp_path, number=72, name="more")
    assert registry.find("cpu", "unary", "more", [tmp_path]).number == 72
    assert parsed == [tmp_path / "72_more.py"]
    before = path.stat()
    other = tmp_path / "new"
    other.write_text(path.read_text().replace("Mine.", "Ours."))
    os.utime(other, ns=(before.st_mtime_ns, before.st_mtime_ns))
    other.replace(path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert registry.find("cpu", "unary", "mine", [tmp_path]).idea == "Ours.", "as long and as old, replaced"
    path.unlink()
    with pytest.raises(InputError, match="no rung 'mine'"):
        registry.find("cpu", "unary", "mine", [tmp_path])


def test_two_files_with_one_number_or_one_name(tmp_path: Path) -> None:
    write(tmp_path, 71, "mine")
    second = write(tmp_path, 71, "other")
    with pytest.raises(
        KernelError, match=r"71_other.py: rung 71 of unary is already .*71_mine.py; 72 is free"
    ):
        registry.rungs("cpu", "unary", [tmp_path])
    second.unlink()
    write(tmp_path, 72, "ufunc")
    with pytest.raises(KernelError, match=r"72_ufunc.py: the name 'ufunc' is already taken by .*01_ufunc.py"):
        registry.rungs("cpu", "unary", [tmp_path])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('# author = "me"', "unknown key 'author' in the header"),
        ('# neds = ""', r"unknown key 'neds' in the header \(did you mean 'needs'"),
        ('# launch = "x"', "'launch' means nothing for a cpu rung"),
        ("# [needs]\n# groups = 1", "unknown need 'groups' for unary on cpu"),
        ("# [needs]\n# group = 1", "unknown need 'group' for unary on cpu"),
        ("# [needs]\n# kinds = 1", r"unknown need 'kinds' for unary on cpu \(did you mean 'kind'"),
        ('# [needs]\n# kind = "relu"', r"need kind = 'relu' is not a list out of relu, tanh"),
        ('# [needs]\n# kind = ["max"]', r"need kind = .* is not a list out of relu, tanh"),
        ('# [needs]\n# dtype = ["float31"]', "need dtype = .* is not a list out of float32"),
        ("# [needs]\n# multiple_of = {sise = 4}", "need multiple_of = .* is not a table"),
        ('# [needs]\n# compute_capability = "8.0"', "unknown need 'compute_capability' for unary on cpu"),
        ("# what is this", "the header is not valid TOML"),
    ],
)
def test_a_header_outside_the_vocabulary(tmp_path: Path, more: str, message: str) -> None:
    path = write(tmp_path, more=more)
    with pytest.raises(KernelError, match=message) as caught:
        registry.rungs("cpu", "unary", [tmp_path])
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("more", "text", "message"),
    [
        ("[defines]\nTILE = [1, 2]", None, "define TILE = .* is not a name with a number"),
        ('[defines]\n"A B" = 1', None, "define A B = 1 is not a name"),
        ("[needs]\nbias = 1", None, "need bias = 1 is not true or false"),
        ("[needs]\ngroup = true", None, "need group = True is not a whole number"),
        ("[needs]\ncompute_capability = 8", None, 'is not a string such as "8.0"'),
        ("", '/*\nop = "conv"\nrung = 71\nname = "mine"\nidea = "x"\n*/', "the header lacks 'launch'"),
        ("", "__global__ void f() {}", "must begin with its header, a comment"),
        ("", '/*\nop = "conv"\nrung = "71"\n*/', "rung must be a whole number, not '71'"),
        ("", '/*\nop = "konv"\nrung = 71\nname = "mine"\nidea = "x"\nlaunch = "y"\n*/', "unknown op 'konv'"),
    ],
)
def test_a_cuda_header_outside_the_vocabulary(
    tmp_path: Path, more: str, text: str | None, message: str
) -> None:
    path = write_cuda(tmp_path, more, text)
    with pytest.raises(KernelError, match=message) as caught:
        registry.rungs("cuda", "conv", [tmp_path])
    assert str(path) in str(caught.value)


def test_the_name_of_the_file_agrees_with_its_header(tmp_path: Path) -> None:
    write(tmp_path, 71, "mine", file="72_mine.py")
    with pytest.raises(KernelError, match=r"the header says rung 71 'mine', the file's name 72 'mine'"):
        registry.rungs("cpu", "unary", [tmp_path])
    (tmp_path / "72_mine.py").unlink()
    write(tmp_path / "unary", file="mine.py")
    with pytest.raises(KernelError, match=r"is called NN_name.py, such as 04_tiled.py"):
        registry.rungs("cpu", "unary", [tmp_path])
    (tmp_path / "unary" / "mine.py").unlink()
    write(tmp_path / "conv")
    with pytest.raises(
        KernelError, match="op is 'unary' in the header, but the file lies in the folder conv/"
    ):
        registry.rungs("cpu", "conv", [tmp_path])


@pytest.mark.parametrize(
    ("needs", "params", "capability", "reason"),
    [
        ("", CONV, None, None),
        ("", Gemm(2, 2, 2), None, "is no kernel for gemm"),
        ("", Conv(2, 4, 8, 8, 4, 3, 3, 6, 6, dtype="float16"), None, "takes dtype float32, not float16"),
        ("group = 1\nkernel = 3\nstride = 1\npad = 0\ndilation = 1\nbias = false", CONV, None, None),
        ("group = 2", CONV, None, "needs group = 2, and group is 1"),
        ("stride = 2", CONV, None, "needs stride = 2, and stride is 1"),
        ("pad = 0", replace(CONV, pad_left=3), None, "needs pad = 0, and pad_left is 3"),
        ("kernel_max = 2", CONV, None, "takes kernel up to 2, not 3"),
        ("bias = true", CONV, None, "needs bias = true, and bias is false"),
        ('activation = ["none", "relu"]', CONV, None, None),
        ('activation = ["relu", "tanh"]', CONV, None, "takes activation relu or tanh, not none"),
        ("multiple_of = {c = 4, m = 4}", CONV, None, None),
        ("multiple_of = {c = 3}", CONV, None, "needs c to be a multiple of 3, and it is 4"),
        ('compute_capability = "8.0"', CONV, None, None),
        ('compute_capability = "8.0"', CONV, (9, 0), None),
        (
            'compute_capability = "8.0"',
            CONV,
            (7, 5),
            "needs compute capability 8.0 or newer, and this device has 7.5",
        ),
    ],
)
def test_refusal_in_words(
    tmp_path: Path, needs: str, params: object, capability: object, reason: str | None
) -> None:
    write_cuda(tmp_path, f"[needs]\n{needs}")
    answer = registry.find("cuda", "conv", 71, [tmp_path]).refusal(params, capability)  # type: ignore[arg-type]
    assert answer == (None if reason is None else f"conv 71 mine {reason}")


def test_needs_fit_their_operator() -> None:
    assert "rank_max" in registry.needs_of("transpose")
    assert "axis_max" in registry.needs_of("softmax")
    assert "size_max" in registry.needs_of("lrn")
    assert "size_max" not in registry.needs_of("unary")
    assert "group" not in registry.needs_of("gemm")
    # Of two operators in one record it is properties that are asked for.
    asked = {"kernel_max", "weights_max", "image_max", "m_max", "kind", "group", "bias", "dtype"}
    assert asked <= set(registry.needs_of("conv_pool"))


@pytest.mark.parametrize(
    "params",
    [CONV, Gemm(2, 3, 4), Pool("max", 1, 1, 4, 4, 2, 2, 2, 2, 2, 2), Lrn(1, 4, 9, 5), Softmax(2, 3, 1),
     Transpose((2, 3), (1, 0)), Cast(3, "int64", "float32")],
    ids=lambda params: params.op,
)  # fmt: skip
def test_the_default_is_the_highest_rung_that_applies(params: object) -> None:
    rung = registry.default("cpu", params)  # type: ignore[arg-type]
    able = [r for r in registry.rungs("cpu", rung.op) if r.refusal(params) is None]  # type: ignore[arg-type]
    assert rung == [r for r in able if not r.side and r.suits(params)][-1]  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("precision", NAMES)
def test_convolutions_of_single_channels_have_a_rung_of_their_own(device: str, precision: str) -> None:
    """And no other has: neither of groups of several channels, nor of one channel alone."""
    if precision not in registry.precisions(device):
        pytest.skip(f"{device} does not compute in it")
    own = sized(Conv(2, 8, 14, 14, 8, 3, 3, 0, 0, 1, 1, 1, 1, 1, 1, group=8))
    for p in (own, replace(own, m=24), sized(replace(own, kh=5, kw=5, stride_h=2, stride_w=2))):
        assert _uncompiled(device, p, precision).name == "depthwise"
    for p in (replace(own, group=4), replace(own, c=1, group=1)):
        assert _uncompiled(device, p, precision).name != "depthwise"


def _uncompiled(device: str, p: Conv, precision: str) -> registry.Rung:
    """The default; on the CPU where nothing can be compiled, since what is compiled takes all."""
    taken = registry.candidates(device, p.op, precision)
    return next(rung for rung in taken if not rung.compiled and rung.refusal(p, (9, 0)) is None)


@pytest.mark.parametrize("device", registry.SUFFIX)
@pytest.mark.parametrize("op", OPS)
def test_without_a_priority_later_rungs_are_taken_first(device: str, op: str) -> None:
    """Exact in the precision asked for, then those of a finer one that say so, then those of fp32."""
    for rung in registry.rungs(device, op):
        assert rung.priority == rung.number or "priority = " in rung.source
    for precision in NAMES:
        for taken in (registry.candidates(device, op, precision), registry.side_rungs(device, op, precision)):
            kinds = [2 if r.precision == precision else 1 if precision in r.also else 0 for r in taken]
            assert kinds == sorted(kinds, reverse=True)
            assert all(kind or rung.precision == "fp32" for rung, kind in zip(taken, kinds, strict=True))
            for kind in set(kinds):
                turns = [(r.priority, r.number) for r, its in zip(taken, kinds, strict=True) if its == kind]
                assert turns == sorted(turns, reverse=True)


def test_a_finer_rung_is_tried_in_a_coarser_precision_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    folder = tmp_path / "cpu" / "unary"
    write(folder, 1, "plain")
    write(folder, 2, "half", '# precision = "fp16"')
    write(folder, 3, "fine", '# precision = "tf32"\n# side = true\n# also = ["fp16"]')
    write(folder, 4, "finer", '# precision = "tf32"\n# side = true')
    assert [rung.name for rung in registry.side_rungs("cpu", "unary", "fp16")] == ["fine"]
    assert [rung.name for rung in registry.side_rungs("cpu", "unary", "tf32")] == ["finer", "fine"]
    assert not registry.side_rungs("cpu", "unary", "fp32-tc")
    for said, fault in (
        ('["fp32"]', "is no coarser precision than 'tf32'"),
        ('["tf32"]', "is no coarser precision than 'tf32'"),
        ('["fp8"]', "precision 'fp8' is unknown"),
        ('"fp16"', "also must be a list"),
    ):
        write(folder, 4, "finer", f'# precision = "tf32"\n# also = {said}')
        with pytest.raises(KernelError, match=fault):
            registry.rungs("cpu", "unary")


def test_a_file_of_two_precisions_is_a_rung_of_each(tmp_path: Path) -> None:
    """Told apart by name, layouts and what the compiler is told; a number means the one that is asked for."""
    header = (
        'op = "unary"\nrung = 91\nname = "columns"\nidea = "In float16."\nlaunch = "one_thread_an_output"\n'
        'precision = %s\nalso = %s\nwrites = ["nchw float32", "nhwc float16"]\n[defines]\nWRITES = 0\n'
    )
    file = tmp_path / "91_columns.cu"
    file.write_text(f"/*\n{header % (['fp16', 'bf16'], [])}*/\n".replace("'", '"'))
    half, brief = (r for r in registry.rungs("cuda", "unary", [tmp_path]) if r.user)
    assert (half.name, brief.name) == ("columns", "columns_bf16")
    assert (half.precision, brief.precision) == ("fp16", "bf16")
    assert (half.writes[-1], brief.writes[-1]) == ("nhwc float16", "nhwc bfloat16")
    assert "BF16" not in half.defines
    assert brief.defines["BF16"] == 1
    assert brief.idea == "In bfloat16."
    for precision, meant in (("", half), ("fp16", half), ("bf16", brief), ("tf32", half)):
        assert registry.find("cuda", "unary", 91, [tmp_path], precision=precision) == meant
    assert registry.find("cuda", "conv", "nhwc_bf16").path == registry.find("cuda", "conv", "nhwc_fp16").path
    both = ["fp16", "bf16"]
    for said, also in ((both[::-1], []), (["fp16", "tf32"], []), ([], []), (both, ["bf16"])):
        file.write_text(f"/*\n{header % (said, also)}*/\n".replace("'", '"'))
        with pytest.raises(KernelError, match=r"is no list that|is no coarser precision"):
            registry.rungs("cuda", "unary", [tmp_path])


def test_a_priority_puts_a_rung_before_later_ones_and_leaves_the_story_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    for number, more in ((1, ""), (2, "# priority = 4"), (3, ""), (4, ""), (5, "# priority = 0")):
        write(tmp_path / "cpu" / "unary", number, f"rung_{number}", more)
    assert [rung.number for rung in registry.rungs("cpu", "unary")] == [1, 2, 3, 4, 5]
    assert [rung.number for rung in registry.candidates("cpu", "unary")] == [4, 2, 3, 1, 5]
    assert registry.default("cpu", Unary("relu", 3)).number == 4
    write(tmp_path / "cpu" / "unary", 2, "rung_2", "# priority = 40")
    assert registry.default("cpu", Unary("relu", 3)).number == 2
    write(tmp_path / "cpu" / "unary", 2, "rung_2", '# priority = "high"')
    with pytest.raises(KernelError, match="priority must be a whole number, not 'high'"):
        registry.candidates("cpu", "unary")


def test_no_rung_that_applies() -> None:
    with pytest.raises(KernelError, match=r"no cpu kernel for this conv: .*takes dtype float32, not float16"):
        registry.default("cpu", Conv(2, 4, 8, 8, 4, 3, 3, 6, 6, dtype="float16"))
