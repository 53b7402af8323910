"""The OpenEnv server and its client: a real process, a real socket, the real evaluator on the CPU."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from serving import GOOD, HANGING, KERNELS, ROOT, WRONG, Server, serving, survivors, wait_for_sleeper

pytest.importorskip("openenv.core", reason="needs the extra [openenv]")
pytest.importorskip("websockets")

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from gym_kernel import ConfigurationError, TaskError
from gym_kernel.envs.info import KernelInfo
from gym_kernel.integrations.openenv import (
    KernelAction,
    KernelClient,
    KernelEnvironment,
    KernelObservation,
    KernelState,
    ServerSettings,
    TurnRubric,
)
from gym_kernel.rewards import turn_reward

SESSIONS = 8
ANSWER_S = 120.0
SMOKE = ROOT / "examples" / "client_smoke.py"

HANGING_CLIENT = """
import sys
from gym_kernel.integrations.openenv import KernelAction, KernelClient
with KernelClient(sys.argv[1]).sync() as client:
    client.reset(task="relu")
    client.step(KernelAction(code=sys.argv[2]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, "--timeout", "6", "--max-sessions", str(SESSIONS)) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    wait_for_free_sessions(server, 1)
    with KernelClient(server.url, message_timeout_s=ANSWER_S).sync() as client:
        yield client


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def say(socket: ClientConnection, message: str | bytes) -> dict[str, Any]:
    """Send a frame and read the answer, which must be strict JSON."""
    socket.send(message)
    answer = json.loads(socket.recv(timeout=ANSWER_S), parse_constant=refuse_constant)
    assert set(answer) == {"type", "data"}
    return answer


def web_socket(server: Server) -> ClientConnection:
    return connect(server.url.replace("http", "ws") + "/ws", proxy=None)


def wait_for_free_sessions(server: Server, count: int) -> None:
    """Wait until so many sessions can be open at once: those of gone clients are put away in the background."""
    deadline = time.monotonic() + ANSWER_S
    while True:
        with ExitStack() as stack:
            sockets = [stack.enter_context(web_socket(server)) for _ in range(count)]
            if all(can_ask(socket) for socket in sockets):
                return
        assert time.monotonic() < deadline, server.log()
        time.sleep(0.1)


def can_ask(socket: ClientConnection) -> bool:
    try:
        return say(socket, '{"type": "state"}')["type"] == "state"
    except ConnectionClosed:
        return False


def test_an_episode_of_two_turns(client: Any) -> None:
    result = client.reset(task="relu", seed=0, episode_id="first")
    prompt: KernelObservation = result.observation
    assert prompt.text.startswith("# Task: ReLU (relu)")
    assert "You have 2 submissions" in prompt.text
    assert (result.reward, result.done) == (None, False)
    assert (prompt.task, prompt.status, prompt.turn, prompt.turns_left) == ("relu", "", 0, 2)
    assert prompt.runtime_us is None
    assert prompt.t_min_us is not None
    assert prompt.t_min_us > 0
    state: KernelState = client.state()
    assert (state.episode_id, state.step_count, state.task, state.turns_left) == ("first", 0, "relu", 2)

    # A text does for an action.
    result = client.step(WRONG)
    wrong: KernelObservation = result.observation
    assert (wrong.status, wrong.correct, result.reward, result.done) == ("incorrect", False, 0.0, False)
    assert (wrong.correctness_reward, wrong.speed_reward) == (0.0, 0.0)
    assert (wrong.turn, wrong.turns_left) == (1, 1)
    assert "Wrong values on hidden inputs" in wrong.text

    result = client.step(KernelAction(code=f"Better:\n```python\n{GOOD}\n```"))
    right: KernelObservation = result.observation
    assert (right.status, right.correct, result.done, right.truncated) == ("correct", True, True, False), (
        right.text
    )
    assert result.reward == turn_reward(True, right.t_min_us, right.runtime_us)
    assert right.correctness_reward + right.speed_reward == pytest.approx(result.reward)
    assert right.episode_return == pytest.approx(0.4 * result.reward)
    assert right.speedup == pytest.approx(right.reference_us / right.runtime_us)
    assert right.evaluation_id != wrong.evaluation_id
    state = client.state()
    assert (state.step_count, state.turns_left, state.status, state.done) == (2, 0, "correct", True)

    with pytest.raises(
        RuntimeError, match=r"Server error: .*call reset\(\) before step.*\(code: EXECUTION_ERROR\)"
    ):
        client.step(KernelAction(code=GOOD))
    assert client.reset(task="tanh").observation.turns_left == 2
    assert client.state().episode_id not in (None, "first")


def test_the_seed_decides_the_task(client: Any) -> None:
    drawn = [client.reset(seed=seed).observation.task for seed in range(4)]
    again = [client.reset(seed=seed).observation.task for seed in range(4)]
    assert drawn == again
    assert len(set(drawn)) > 1


def test_eight_sessions_at_once_each_see_their_own(server: Server) -> None:
    tasks = ["relu", "leaky_relu", "sigmoid", "tanh", "swish", "hard_sigmoid", "hard_tanh", "mingpt_gelu"]
    assert len(tasks) == SESSIONS
    wait_for_free_sessions(server, SESSIONS)
    together = threading.Barrier(SESSIONS)

    def play(number: int) -> list[KernelObservation]:
        own, foreign = (
            (KERNELS / f"{tasks[index % SESSIONS]}.py").read_text(encoding="utf-8")
            for index in (number, number + 3)
        )
        with KernelClient(server.url, message_timeout_s=ANSWER_S).sync() as session:
            seen = [session.reset(task=tasks[number]).observation]
            together.wait(ANSWER_S)
            seen += [session.step(KernelAction(code=code)).observation for code in (foreign, own)]
            together.wait(ANSWER_S)
            assert session.state().task == tasks[number]
            return seen

    with ThreadPoolExecutor(SESSIONS) as pool:
        played = list(pool.map(play, range(SESSIONS)))
    for task, (prompt, foreign, own) in zip(tasks, played, strict=True):
        assert f"({task})" in prompt.text.splitlines()[0]
        assert (foreign.task, foreign.status, foreign.turns_left) == (task, "incorrect", 1), foreign.text
        assert (own.task, own.status, own.done) == (task, "correct", True), own.text
    ids = {observation.evaluation_id for seen in played for observation in seen[1:]}
    assert len(ids) == 2 * SESSIONS


def test_one_session_too_many_is_told_so(server: Server) -> None:
    wait_for_free_sessions(server, SESSIONS)
    with ExitStack() as stack:
        inside = [stack.enter_context(web_socket(server)) for _ in range(SESSIONS)]
        assert all(can_ask(socket) for socket in inside)
        with web_socket(server) as outside:
            answer = json.loads(outside.recv(timeout=ANSWER_S))
            assert (answer["type"], answer["data"]["code"]) == ("error", "CAPACITY_REACHED")
        assert all(can_ask(socket) for socket in inside)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "no code",
        "\0\x1b[31m",
        "\ud800",
        "def",
        "x" * 1_000_000,
        "```python\n```",
        "\U0001d54f = '\u202e'",
    ],
)
def test_bad_code_gets_a_verdict(client: Any, code: str) -> None:
    client.reset(task="relu")
    result = client.step(KernelAction(code=code))
    assert (result.observation.status, result.reward, result.done) == ("rejected", 0.0, False)


GARBAGE: list[tuple[str | bytes, str]] = [
    ("", "not JSON"),
    ("hello", "not JSON"),
    ("null", "not null"),
    ("17", "not a number"),
    ('["reset"]', "not an array"),
    ('"reset"', "not a string"),
    ("[" * 200_000, "nested too deeply"),
    ("1" * 10_000, "not JSON"),
    (b"\xff\xfe\x00", "not JSON"),
    ("{}", "Unknown message type"),
    ('{"type": "dance"}', "dance"),
    ('{"type": ["reset"]}', "Unknown message type"),
    ('{"type": "\\ud800"}', "Unknown message type"),
    ('{"type": "reset", "data": 3}', "Invalid message"),
    ('{"type": "reset", "data": {"tsk": "relu"}}', "reset does not know 'tsk'"),
    ('{"type": "reset", "data": {"task": "nope"}}', "no task 'nope'"),
    ('{"type": "reset", "data": {"task": ["relu"]}}', "no task"),
    ('{"type": "reset", "data": {"seed": "1"}}', "seed must be"),
    ('{"type": "reset", "data": {"seed": -1}}', "seed must be"),
    ('{"type": "reset", "data": {"episode_id": 5}}', "episode_id must be"),
    ('{"type": "step", "data": {"code": "x = 1"}}', "call reset() before step"),
    ('{"type": "step"}', "Invalid message"),
    ('{"type": "step", "data": {"kode": "x"}}', "Invalid message"),
    ('{"type": "step", "data": {"code": null}}', "Invalid message"),
    ('{"type": "step", "data": {"code": "x", "\\udc00": "\\ud800"}}', "Invalid message"),
]


def test_garbage_gets_an_answer_on_a_socket_that_stays_open(server: Server) -> None:
    wait_for_free_sessions(server, 1)
    with web_socket(server) as socket:
        for message, said in GARBAGE:
            answer = say(socket, message)
            assert answer["type"] == "error", (message[:60], answer)
            assert said in answer["data"]["message"], (message[:60], answer)
        answer = say(socket, '{"type": "reset", "data": {"task": "relu"}}')
        assert answer["data"]["observation"]["task"] == "relu"
        assert answer["data"]["observation"]["runtime_us"] is None
        answer = say(socket, b'{"type": "step", "data": {"code": "\\ud83d\\ude00 \\ud83d"}}')
        assert answer["data"]["observation"]["status"] == "rejected"
    assert "Traceback" not in server.log()


def test_a_client_killed_during_an_evaluation_leaves_nothing(server: Server) -> None:
    wait_for_free_sessions(server, SESSIONS)
    seconds = "976"
    gone = subprocess.Popen(
        [sys.executable, "-c", HANGING_CLIENT, server.url, HANGING.format(seconds=seconds)], cwd=ROOT
    )
    try:
        sleeper = wait_for_sleeper(server, seconds)
    finally:
        gone.send_signal(signal.SIGKILL)
        gone.wait()
    with KernelClient(server.url, message_timeout_s=ANSWER_S).sync() as other:
        other.reset(task="relu")
        assert other.step(KernelAction(code=GOOD)).observation.correct
    # The evaluation that nobody waits for ends with its own limit.
    assert not survivors({sleeper}, limit_s=60.0)
    wait_for_free_sessions(server, SESSIONS)
    assert "Traceback" not in server.log()


def get(server: Server, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """A plain HTTP request; returns status and decoded answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ANSWER_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_plain_http_answers_what_it_can(server: Server) -> None:
    assert get(server, "/health") == (200, {"status": "healthy"})
    assert "relu" in get(server, "/metadata")[1]["description"]
    schema = get(server, "/schema")[1]
    assert schema["action"]["required"] == ["code"]
    assert set(schema["observation"]["properties"]) >= {"text", "status", "roofline_fraction", "turns_left"}
    status, answer = get(server, "/reset", {"task": "relu", "seed": 1})
    assert (status, answer["observation"]["task"]) == (200, "relu")
    status, answer = get(server, "/reset", {"task": "nope"})
    assert (status, "no task 'nope'" in answer["detail"]) == (400, True)
    status, answer = get(server, "/step", {"action": {"code": GOOD}})
    assert (status, "/ws" in answer["detail"]) == (409, True)


def test_openenv_finds_the_server_in_order(server: Server) -> None:
    validation = pytest.importorskip("openenv.cli._validation")
    report = validation.validate_running_environment(server.url, timeout_s=ANSWER_S)
    assert report["passed"], report["summary"]


def smoke(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SMOKE), *words], capture_output=True, text=True, timeout=ANSWER_S, cwd=folder
    )


def test_the_smoke_client_passes_a_good_kernel_and_fails_with_a_sentence(
    server: Server, tmp_path: Path
) -> None:
    wait_for_free_sessions(server, 2)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    other = ("--out", str(tmp_path / "other.txt"))
    cases = [
        (("--url", server.url), 0, "relu.py is correct on cpu"),
        (("--url", server.url, "--kernel", str(wrong), *other), 1, "was judged 'incorrect' and not correct."),
        (("--url", server.url, "--kernel", "missing.py", *other), 1, "Cannot use missing.py"),
        (("--url", "http://127.0.0.1:9", *other), 1, "No server answers at http://127.0.0.1:9"),
    ]
    with ThreadPoolExecutor(len(cases)) as pool:
        finished = list(pool.map(lambda case: smoke(*case[0], folder=tmp_path), cases))
    for (words, code, said), done in zip(cases, finished, strict=True):
        assert done.returncode == code, (words, done.stderr)
        assert said in (done.stderr if code else done.stdout)
        assert "Traceback" not in done.stderr
    assert (tmp_path / "task_prompt.txt").read_text(encoding="utf-8").startswith("# Task: ReLU (relu)")


def test_every_key_of_the_info_is_a_field() -> None:
    declared = set(KernelObservation.model_fields)
    assert {*get_type_hints(KernelInfo), "turn", "turns_left", "episode_return"} <= declared


def test_the_rubric_is_the_turn_reward_and_shows_its_parts() -> None:
    rubric = TurnRubric()
    action = KernelAction(code="")
    for correct, t_min_us, runtime_us in ((True, 3.0, 7.0), (True, 9.0, 8.0), (False, 3.0, 7.0)):
        fraction = min(t_min_us / runtime_us, 1.0)
        observation = KernelObservation(text="", task="relu", correct=correct, roofline_fraction=fraction)
        assert rubric(action, observation) == turn_reward(correct, t_min_us, runtime_us)
        scores = {name: part.last_score for name, part in rubric.named_rubrics()}
        assert scores == {"correctness": float(correct), "speed": fraction if correct else 0.0}


def test_settings_and_arguments_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="max_sessions"):
        ServerSettings(max_sessions=0)
    with pytest.raises(ConfigurationError, match="timeout_s"):
        ServerSettings(timeout_s=-1.0)
    with pytest.raises(TaskError, match="relux"):
        KernelEnvironment(ServerSettings(tasks=("relux",)))
    session = KernelEnvironment(ServerSettings(tasks=("relu",), device="cpu"))
    assert session.state.episode_id is None
    with pytest.raises(ConfigurationError, match="serve --timeout"):
        session.step(KernelAction(code=""), timeout_s=5.0)
    session.close()
    session.close()


def test_a_missing_openenv_is_named_with_its_extra() -> None:
    code = "import sys; sys.modules['openenv'] = None; import gym_kernel.integrations.openenv"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 1
    assert "pip install gym-kernel[openenv]" in done.stderr
