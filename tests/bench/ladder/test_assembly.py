"""What a rung is compiled to: which line each instruction is of, what is said where a tool is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from bench.measure.ladder import assembly
from bench.questions import ladder_plan as plan
from bench.questions import rung_template as template
from bench.questions.ladder_questions import AssemblyAnswer, AssemblyQuestion, assembly_command
from bench.run import client
from kernels import nvrtc
from kernels.ops.softmax import Softmax
from kernels.registry import rungs

needs_nvrtc = pytest.mark.skipif(nvrtc.unavailable() is not None, reason="NVRTC is not installed")

PTX = """\
.version 9.0
.visible .entry relu(
)
{
\t.reg .b32 %r<3>;
\t.loc\t1 13 0
\tmov.u32 \t%r1, %tid.x;
\t.loc\t2 18 9, function_name $L__info_string0, inlined_at 1 21 13
\tsetp.lt.f32 \t%p1, %f1, 0f00000000;
\t.loc\t2 4 9, function_name $L__info_string1, inlined_at 2 18 9
\tselp.f32 \t%f2, %f1, 0f00000000, %p1;
\t.loc\t1 0 5
\tadd.s32 \t%r2, %r1, 1;
$L__BB0_2:
\t.loc\t3 7 1
\tret;
}
\t.file\t1 "/somewhere/01_mine.cu"
\t.file\t2 "/somewhere/common.cuh"
\t.file\t3 "/other/99_mine.cu"
\t.section\t.debug_str
\t{
$L__info_string0:
.b8 95,90,0
\t}
"""
SASS = """\
\t.target\tsm_90
\t//## File "/somewhere/01_mine.cu", line 13
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/somewhere/common.cuh", line 14 inlined at "/somewhere/01_mine.cu", line 21
\t//## File "/somewhere/01_mine.cu", line 21
        /*0010*/               @P1 EXIT ;
        /*0020*/                   NOP ;
\t//## File "/somewhere/other.cu", line 5
        /*0030*/                   BRA `(.L_x_1);
"""


def told(listing):
    return {
        text.split()[0]: line
        for text, line in zip(listing.text.split("\n"), listing.lines, strict=True)
        if text
    }


def test_a_line_of_ptx_is_of_the_line_that_it_was_inlined_at():
    listing = assembly.ptx(PTX, "01_mine.cu")
    found = told(listing)
    assert (found["mov.u32"], found["setp.lt.f32"], found["selp.f32"]) == (13, 21, 21)
    assert found["add.s32"] == 0, "the compiler says of it that it is of no line"
    assert found["ret;"] == 0, "a file of the same ending elsewhere is another's"
    assert found["$L__BB0_2:"] == found[".reg"] == 0
    assert ".loc" not in listing.text
    assert "debug" not in listing.text
    assert listing.text.endswith("}")


def test_a_line_of_sass_is_of_the_line_that_nvdisasm_says():
    listing = assembly.sass_listing(SASS.split("\n"), "01_mine.cu")
    assert list(zip(listing.text.split("\n"), listing.lines, strict=True)) == [
        (".target\tsm_90", 0),
        ("0000  LDC R1, c[0x0][0x28]", 13),
        ("0010  @P1 EXIT", 21),
        ("0020  NOP", 21),
        ("0030  BRA `(.L_x_1)", 0),
    ]


@pytest.fixture
def mine(tmp_path: Path) -> AssemblyQuestion:
    """A rung of the user's, as its template has it."""
    path = template.write("softmax", "cuda", tmp_path / "kernels")
    job = plan.job_of(Softmax(outer=64, axis=10, inner=1), "cuda", kernel_dirs=(str(path.parent),))
    return AssemblyQuestion(job=job, rung="mine", arch="sm_80")


def tool(folder: Path, name: str, prints: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "said").write_text(prints)
    path = folder / name
    path.write_text(f'#!/bin/sh\ncat "{folder}/said"\n')
    path.chmod(0o755)
    return path


@pytest.mark.sampled(4, "long")
@needs_nvrtc
def test_a_kernel_of_the_user_s_is_compiled_in_a_process_that_ends(mine, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    asked = msgspec.json.encode(mine) + b"\n"
    done = subprocess.run(
        assembly_command(),
        input=asked,
        capture_output=True,
        check=True,
        timeout=120,
        env=client.worker_environment(),
    )
    answer = msgspec.json.decode(done.stdout, type=AssemblyAnswer)
    assert not answer.error
    assert answer.arch == "sm_80"
    (listing,) = answer.listings
    assert (listing.name, ".target sm_80" in listing.text) == ("PTX", True)
    source = (tmp_path / "kernels" / "90_mine.cu").read_text().split("\n")
    written = {source[line - 1].strip() for line in listing.lines if line}
    assert any("=" in line for line in written), "lines of the body, and not of the header"
    assert not any(line.startswith(("#", "op =")) for line in written)
    if assembly.disassembler() is None:
        assert answer.missing == assembly.NO_TOOL


@needs_nvrtc
def test_sass_comes_where_a_disassembler_is(mine, tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    tool(folder, "nvdisasm", SASS.replace("01_mine.cu", "90_mine.cu"))
    answer = assembly.answer(mine)
    assert [listing.name for listing in answer.listings] == ["PTX", "SASS"]
    assert answer.listings[1].lines.count(21) == 2
    assert not answer.missing
    (folder / "nvdisasm").write_text("#!/bin/sh\necho broken cubin >&2\nexit 3\n")
    answer = assembly.answer(mine)
    assert [listing.name for listing in answer.listings] == ["PTX"]
    assert "broken cubin" in answer.missing


@needs_nvrtc
def test_a_kernel_that_does_not_compile_says_so_at_its_line(mine, tmp_path):
    path = tmp_path / "kernels" / "90_mine.cu"
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines, "nonsense;"]))
    answer = assembly.answer(mine)
    assert not answer.listings
    assert f"90_mine.cu:{len(lines) + 1}" in answer.error


def test_without_a_compiler_the_sentence_says_what_brings_it(mine, monkeypatch):
    monkeypatch.setattr(nvrtc, "unavailable", lambda: "the package cuda-bindings is not installed; so and so")
    answer = assembly.answer(mine)
    assert not answer.listings
    assert "pip install" in answer.error


def test_a_rung_of_the_user_s_knows_its_template(mine):
    (rung,) = (r for r in rungs("cuda", "softmax", [Path(mine.job.kernel_dirs[0])]) if r.user)
    assert template.of(rung) == rung.source, "nothing of it is changed yet"
