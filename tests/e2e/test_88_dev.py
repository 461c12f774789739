"""`warmq dev` with a provider of the user's, whose key stands in an environment variable."""

import json
import os
import signal
import subprocess

import pytest

from fleet import BUILD, WARMQ, anthropic_body, digest, wait_until

KEY = "sk-a-key-of-mine"
CHAT = json.dumps({"model": "gpt-5.6", "max_tokens": 64,
                   "messages": [{"role": "user", "content": "Hello?"}]})


@pytest.fixture
def provider(tmp_path):
    """One that lets nobody in without the key; answers its URL."""
    config = tmp_path / "provider.json"
    config.write_text(json.dumps({"keys": [{"key": KEY, "workspace": "red", "account": "acme"}]}))
    process = subprocess.Popen([BUILD / "provider" / "warmq-provider", "--config", config],
                               stdout=subprocess.PIPE, text=True)
    yield json.loads(process.stdout.readline())["url"]
    process.terminate()
    process.wait()
    process.stdout.close()


def run(*words, env=None):
    done = subprocess.run([WARMQ, *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("dialect, body", [("anthropic", anthropic_body("Hello?")),
                                           ("openai-chat", CHAT)])
def test_a_provider_of_ones_own_is_asked_with_its_key_and_nothing_is_left(provider, dialect, body):
    process = subprocess.Popen(
        [WARMQ, "dev", "--json", "--upstream", provider, "--dialect", dialect, "--key-env",
         "MY_KEY"], stdout=subprocess.PIPE, text=True, env={**os.environ, "MY_KEY": KEY})
    up = json.loads(process.stdout.readline())
    try:
        assert up["upstream"] == provider
        code, out, err = run("enqueue", "--upstream", "main", "--body", body, "--wait", "--json",
                             "--redis", up["redis"])
        assert (code, err) == (0, "")
        assert digest("Hello?") in json.dumps(json.loads(out)["body"])
        for folder, _, names in os.walk(up["directory"]):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        assert KEY.encode() not in file.read(), path
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        process.stdout.close()
    wait_until(lambda: not os.path.exists(up["directory"]), "its directory to go")


@pytest.mark.parametrize("words, code, sentence", [
    (["--key-env", "NOT_SET_BY_ANYBODY"], 2, "The variable NOT_SET_BY_ANYBODY is not set"),
    (["--dialect", "nonsense"], 2, "anthropic, openai-chat or raw"),
    (["--upstream", "nonsense"], 2, "http(s)://host"),
    (["--dialect", "raw"], 2, "--upstream URL"),
])
def test_dev_says_what_is_wrong_before_it_starts_anything(words, code, sentence):
    got, out, err = run("dev", *words)
    assert (got, out) == (code, "") and sentence in err
    assert err.count("\n") == 1, err
