"""Rungs named for nodes, of one model or of any, on one device or on any."""

from bench.run import chosen_rungs

MODELS = ("lenet5-digits", "nets/mine.onnx")
NODES = {"conv1", "/a/b:0"}


def of(rungs, model="lenet5-digits", models=MODELS, device="cpu"):
    return chosen_rungs.of_model(rungs, model, models, NODES, device)


def test_a_rung_holds_where_it_is_meant():
    assert of({"conv1": "im2col"}) == {"conv1": "im2col"}
    assert of({"conv1": "cpu/im2col"}) == {"conv1": "im2col"}
    assert of({"conv1": "cuda/tiled"}) == {}
    mine = {chosen_rungs.key("nets/mine.onnx", "conv1"): chosen_rungs.value("cpu", "im2col")}
    assert mine == {"mine:conv1": "cpu/im2col"}
    assert of(mine) == {}
    assert of(mine, "nets/mine.onnx") == {"conv1": "im2col"}


def test_a_node_s_name_may_hold_a_colon_and_slashes():
    assert of({"/a/b:0": "cpu/im2col"}) == {"/a/b:0": "im2col"}
    assert chosen_rungs.parts("mine:/a/b:0", "cpu/im2col", MODELS) == ("mine", "/a/b:0", "cpu", "im2col")


def test_a_rung_of_a_model_that_is_not_compared_is_left_out():
    rungs = {"lenet5-digits:conv1": "cpu/im2col", "mine:conv1": "cpu/fft", "conv2": "im2col"}
    assert chosen_rungs.compared(rungs, ("nets/mine.onnx",), MODELS) == {
        "mine:conv1": "cpu/fft",
        "conv2": "im2col",
    }
    assert chosen_rungs.compared(rungs, MODELS, MODELS) == rungs


def test_a_name_that_no_node_has_is_kept_where_it_can_be_told():
    assert of({"conv9": "im2col"}) == {}  # the other model may have it
    assert of({"conv9": "im2col"}, models=("lenet5-digits",)) == {"conv9": "im2col"}
    assert of({"lenet5-digits:conv9": "im2col"}) == {"conv9": "im2col"}
