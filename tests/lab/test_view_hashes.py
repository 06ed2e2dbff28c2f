"""The hash over views is the same for the same code, and another for another policy."""

import json

from lab import view_hashes


def recorded(folder):
    messages = [{"role": "user", "content": "Which port does it use?"}]
    for number in range(12):
        call = {"id": f"c{number}", "type": "function"}
        call["function"] = {
            "name": "read",
            "arguments": json.dumps({"page": number}),
        }
        lines = "\n".join(f"{number}.{line}: some text" for line in range(400))
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": lines},
        ]
    messages.append({"role": "assistant", "content": "8080."})
    file = folder / "run.json"
    file.write_text(json.dumps({"model": "gpt-5", "messages": messages}))
    return file


def hashes(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["view_hashes", *map(str, words)])
    view_hashes.main()
    return capsys.readouterr().out


def test_the_same_views_have_the_same_hash(monkeypatch, capsys, tmp_path):
    file = recorded(tmp_path)
    first = hashes(monkeypatch, capsys, file, "--window", 16_000)
    assert first.startswith("1 runs, 17 views: warm=")
    assert hashes(monkeypatch, capsys, file, "--window", 16_000) == first


def test_other_views_have_another(monkeypatch, capsys, tmp_path):
    file = recorded(tmp_path)
    roomy = hashes(monkeypatch, capsys, file, "--window", 400_000)
    assert hashes(monkeypatch, capsys, file, "--window", 16_000) != roomy
