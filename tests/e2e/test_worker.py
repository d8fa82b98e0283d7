"""`fila worker` as a person runs it: a program with tasks, a real Redis, a real terminal's signals."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from fila.testing import RedisProcess

LONG = 60.0

PROGRAM = """
import pathlib, time
from fila.jobs import App

app = App()
platform = app.breaker("platform")

@app.task(queue="files")
def write(name, text):
    pathlib.Path(name).write_text(text)

@app.task(queue="files")
def slow(name):
    pathlib.Path(name + ".started").touch()
    time.sleep(1.0)
    pathlib.Path(name).touch()

@app.task
def fail():
    raise ValueError("\\x1b[31mbroken")

if __name__ == "__main__":
    write.enqueue("one.txt", "1")
    fail.enqueue()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def env(tmp_path_factory):
    with RedisProcess(tmp_path_factory.mktemp("redis")) as server:
        yield os.environ | {"FILA_JOBS_URL": server.url, "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def fila(folder, env):
    """Runs `fila` in the folder; what is still running at the end is killed."""
    processes = []

    def start(*arguments):
        log = (folder / "worker.log").open("ab")
        with log:
            processes.append(
                subprocess.Popen([sys.executable, "-m", "fila.cli.main", *arguments], cwd=folder, env=env, stderr=log)
            )
        return processes[-1]

    yield start
    for process in processes:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    print((folder / "worker.log").read_text())


def until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def run(folder, env, code):
    subprocess.run([sys.executable, "-c", f"import shop\n{code}"], cwd=folder, env=env, check=True, timeout=LONG)


def test_a_worker_runs_what_a_program_enqueued_and_shows_it(folder, env, fila):
    subprocess.run([sys.executable, "shop.py"], cwd=folder, env=env, check=True, timeout=LONG)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        metrics = f"127.0.0.1:{holder.getsockname()[1]}"
    worker = fila("worker", "shop:app", "--concurrency", "2", "--metrics", metrics)
    log = folder / "worker.log"
    until(lambda: "done" in log.read_text() and "retried" in log.read_text())
    assert (folder / "one.txt").read_text() == "1"
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=LONG) as answer:
        shown = answer.read().decode()
    assert 'fila_jobs_total{queue="files",outcome="done"} 1' in shown
    assert "\nfila_jobs_redis_health 1\n" in shown, "while all is well"
    assert '\nfila_jobs_breaker_state{platform="platform"} 0\n' in shown, "while all is well"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(LONG) == 0
    text = log.read_text()
    assert "shop:app: 3 tasks on redis" in text
    assert "shop.write" in text
    assert "ValueError: \\x1b[31mbroken" in text, "what a job says cannot colour the terminal"
    assert "Stopped after" in text


def test_stopping_finishes_the_job_that_is_being_run(folder, env, fila):
    run(folder, env, "shop.slow.enqueue('late')")
    worker = fila("worker", "shop:app", "-q", "files")
    until((folder / "late.started").exists)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(LONG) == 0
    assert (folder / "late").exists()
    assert "Stopping: 1 job to finish" in (folder / "worker.log").read_text()


def test_a_changed_file_is_loaded_again(folder, env, fila):
    worker = fila("worker", "shop:app", "--reload")
    log = folder / "worker.log"
    until(lambda: "Waiting for jobs" in log.read_text())
    (folder / "shop.py").write_text(PROGRAM.replace("write_text(text)", "write_text(text + ' again')"))
    until(lambda: log.read_text().count("Waiting for jobs") == 2)
    run(folder, env, "shop.write.enqueue('two.txt', '2')")
    until(lambda: (folder / "two.txt").exists() and (folder / "two.txt").read_text() == "2 again")
    worker.send_signal(signal.SIGINT)
    assert worker.wait(LONG) == 0


def test_a_worker_without_a_job_stops_without_any_grace(folder, fila):
    worker = fila("worker", "shop:app", "--grace", "0")
    log = folder / "worker.log"
    until(lambda: "Waiting for jobs" in log.read_text())
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(LONG) == 0
    assert "before these jobs" not in log.read_text()


def test_jobs_are_run_and_finished_when_nobody_reads_the_log_any_more(folder, env):
    command = [sys.executable, "-m", "fila.cli.main", "worker", "shop:app", "-c", "1"]
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE) as worker:
        try:
            while b"Waiting for jobs" not in worker.stderr.readline():
                pass
            worker.stderr.close()
            run(folder, env, "for n in range(3): shop.write.enqueue(f'{n}.txt', 'x')\nshop.slow.enqueue('late')")
            until((folder / "late.started").exists)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(LONG) == 0
        finally:
            worker.kill()
    assert all((folder / name).exists() for name in ("0.txt", "1.txt", "2.txt", "late"))


@pytest.mark.parametrize(
    "target, code, text",
    [
        ("shop", 2, "is not of the form MODULE:APP"),
        ("nowhere:app", 1, "module 'nowhere' is neither in the current folder nor installed"),
        ("shop:nothing", 1, "is nothing, not a fila.jobs.App"),
        ("shop:write", 1, "is a Task, not a fila.jobs.App"),
        ("bad:app", 1, "cannot import bad: ZeroDivisionError"),
        ("needy:app", 1, "imports the module missing_thing, which is not installed"),
    ],
)
def test_an_app_that_cannot_be_run_is_one_clear_line(folder, target, code, text):
    (folder / "bad.py").write_text("1 / 0")
    (folder / "needy.py").write_text("import missing_thing")
    command = [sys.executable, "-m", "fila.cli.main", "worker", target]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONG, check=False)
    assert result.returncode == code
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_a_service_that_does_not_answer_is_exit_code_3(folder):
    env = os.environ | {"USE_FILA_QUEUE": "true", "FILA_ADDR": "127.0.0.1:1"}
    command = [sys.executable, "-m", "fila.cli.main", "worker", "shop:app"]
    result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LONG, check=False)
    assert result.returncode == 3
    assert "Traceback" not in result.stderr


def test_an_app_that_does_not_say_where_its_jobs_are_kept_is_refused_on_both_sides(folder):
    env = {name: text for name, text in os.environ.items() if not name.startswith(("FILA_", "USE_"))}
    for command in ([sys.executable, "shop.py"], [sys.executable, "-m", "fila.cli.main", "worker", "shop:app"]):
        result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LONG, check=False)
        assert result.returncode == 1
        assert "does not say where its jobs are kept" in result.stderr
