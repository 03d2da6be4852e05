import pytest

from tb_tpuprof.analysis.inference.names import (
    Annotation,
    Pass,
    Phase,
    annotation_of,
    pass_of,
    predicting_function,
    trains,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("execute_context_3(410)_generation_5(6)", Pass(Phase.MIXED, 3, 5, 410, 6)),
        ("execute_context_2(77)_generation_0(0)", Pass(Phase.PREFILL, 2, 0, 77, 0)),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq33sk55086sqsq32sqsk55086)",
            Pass(Phase.DECODE, 0, 32, 0, 33),
        ),
        ("execute_new_4_cached_0", Pass(Phase.PREFILL, 4, 0)),
        ("execute_new_0_cached_9", Pass(Phase.DECODE, 0, 9)),
        ("execute_new_1_cached_2", Pass(Phase.MIXED, 1, 2)),
        ("step[DECODE bs=32]", Pass(Phase.DECODE, 0, 32, 0, 32)),
        ("step[EXTEND bs=2 toks=9]", Pass(Phase.PREFILL, 2, 0, 9, 0)),
        ("step[PREFILL bs=3]", Pass(Phase.PREFILL, 3, 0, -1, 0)),
        ("step[TARGET_VERIFY bs=4]", Pass(Phase.DECODE, 0, 4, 0, -1)),
        ("step[MIXED bs=5]", Pass(Phase.MIXED, -1, -1)),
        ("execute_context_1(99999999999)_generation_0(0)", Pass(Phase.PREFILL, 1, 0, -1, 0)),
        ("execute_context_1(2147483647)_generation_0(0)", Pass(Phase.PREFILL, 1, 0, 2**31 - 1, 0)),
        ("execute_context_1(2147483648)_generation_0(0)", Pass(Phase.PREFILL, 1, 0, -1, 0)),
        ("execute_context_1(0000000007)_generation_0(0)", Pass(Phase.PREFILL, 1, 0, 7, 0)),
        ("execute_context_1(00000000007)_generation_0(0)", Pass(Phase.PREFILL, 1, 0, -1, 0)),
        ("step[DECODE bs=1]", Pass(Phase.DECODE, 0, 1, 0, 1)),
        ("execute_context_0(0)_generation_0(0)", None),
        ("step[IDLE bs=0]", None),
        ("step[DECODE]", None),
        ("execute_model", None),
        ("predict", None),
    ],
)
def test_passes(name: str, expected: Pass | None) -> None:
    assert pass_of(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("predict", Annotation("predict", Phase.NONE)),
        ("predict 17", Annotation("predict", Phase.NONE)),
        ("predict_iteration_12", Annotation("predict_iteration", Phase.NONE)),
        ("Serve_Request#3", Annotation("Serve_Request", Phase.NONE)),
        ("prefill", Annotation("prefill", Phase.PREFILL)),
        ("decode_step 4", Annotation("decode_step", Phase.DECODE)),
        ("train", None),
        ("predictor", None),
        ("PjitFunction(predict)", None),
        ("$server.py:3 predict", None),
        ("predict/dense", None),
    ],
)
def test_annotations(name: str, expected: Annotation | None) -> None:
    assert annotation_of(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("EagerLocalExecute: __inference_one_step_on_data_distributed_81", "one_step_on_data_distributed"),
        ("one_step_on_data_distributed", "one_step_on_data_distributed"),
        ("__inference_multi_step_on_data_7", "multi_step_on_data"),
        ("__inference_serving_default_5", "serving_default"),
        ("__inference_predict_function_5", "predict_function"),
        ("__inference_signature_wrapper_serve_5", "signature_wrapper_serve"),
        ("__inference_one_step_on_iterator_5", ""),
        ("__inference_train_step_5", ""),
        ("EagerLocalExecute: one_step_on_data", ""),
    ],
)
def test_functions_that_predict(name: str, expected: str) -> None:
    assert predicting_function(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gradients/dense/MatMul_grad:MatMul", True),
        ("model/gradients/x:Mul", True),
        ("ResourceApplyAdam", True),
        ("Adam/update:ResourceApplyAdam", True),
        ("sgd/GradientDescentUpdate", True),
        ("__inference_train_step_7", True),
        ("dense/MatMul:MatMul", False),
        ("my_gradients_cache", False),
        ("Apply", False),
    ],
)
def test_names_of_training(name: str, expected: bool) -> None:
    assert trains(name) is expected
