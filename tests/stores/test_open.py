import pytest

from ullage.core.errors import ConfigError
from ullage.stores import MemoryStore, SqliteStore, open_store
from ullage.stores.threaded import Threaded


@pytest.mark.parametrize("spec", [None, "memory"])
def test_nothing_on_disk_unless_asked(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ULLAGE_STORE", str(tmp_path / "a.db"))
    assert isinstance(open_store(spec), MemoryStore)
    assert list(tmp_path.iterdir()) == []


def test_sqlite_lives_with_the_users_data(tmp_path, monkeypatch):
    monkeypatch.delenv("ULLAGE_STORE", raising=False)
    monkeypatch.setattr(
        "platformdirs.user_data_dir", lambda *_, **__: str(tmp_path / "ours")
    )
    open_store("sqlite").close()
    assert (tmp_path / "ours" / "ullage.db").is_file()
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o700


def test_the_environment_says_where_else(tmp_path, monkeypatch):
    monkeypatch.setenv("ULLAGE_STORE", str(tmp_path / "else.db"))
    open_store("sqlite").close()
    assert (tmp_path / "else.db").is_file()


def test_a_path_of_either_kind_is_a_file(tmp_path):
    for path in (tmp_path / "a.db", str(tmp_path / "b.db")):
        store = open_store(path)
        assert isinstance(store, SqliteStore)
        store.close()
    assert {place.name for place in tmp_path.iterdir()} == {"a.db", "b.db"}


def test_a_home_folder_is_found_and_the_working_folder_remembered(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in ("~/home.db", "here.db"):
        open_store(path).close()
    assert {place.name for place in tmp_path.iterdir()} == {
        "home.db",
        "here.db",
    }


def test_a_store_is_itself():
    store = MemoryStore()
    assert open_store(store) is store


@pytest.mark.parametrize(
    "spec",
    [
        "",
        ":memory:",
        "a\x00b",
        "redis://localhost",
        "redis",
        "SQLite",
        3,
        object(),
        MemoryStore,
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_remedy(spec):
    with pytest.raises(ConfigError, match=r"Use|Name"):
        open_store(spec)


def test_a_bare_word_makes_no_file_and_the_error_says_how_one_is_meant(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"memory.*sqlite.*\./redis"):
        open_store("redis")
    assert list(tmp_path.iterdir()) == []
    open_store("./redis").close()
    assert [place.name for place in tmp_path.iterdir()] == ["redis"]


def test_an_asynchronous_store_is_refused():
    with pytest.raises(ConfigError, match="asynchronous"):
        open_store(Threaded(MemoryStore()))
