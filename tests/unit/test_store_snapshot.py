"""Saving a snapshot, swapping it in, and clearing away the old ones."""

from __future__ import annotations

import os
import shutil
import stat
from datetime import timedelta

import pytest
from snapshots import FULL, GPU, HOST, NOW, PROCESS, at

from webmon.errors import DataError
from webmon.model import Snapshot
from webmon.store import snapshot


def _names(folder):
    return sorted(os.listdir(folder / "snapshots"))


def _minutes(folder):
    """Return the minutes of the snapshots that are kept, oldest name first."""
    return [name[9:13] for name in _names(folder)]


def test_latest_is_a_link_to_the_snapshots_folder(tmp_path):
    """A relative one, so that the data folder can be moved."""
    saved = snapshot.save(tmp_path, FULL, keep=3)
    assert os.readlink(tmp_path / "latest") == "snapshots/20260102T030405.678Z"
    assert saved == tmp_path / "snapshots" / "20260102T030405.678Z"
    assert sorted(os.listdir(saved)) == ["gpus.csv", "hosts.csv", "processes.csv"]
    moved = tmp_path.rename(tmp_path.with_name(tmp_path.name + "-moved"))
    assert snapshot.load(moved) == FULL


def test_a_snapshot_can_be_read_from_its_own_folder(tmp_path):
    """Its name says when it was taken, to the millisecond."""
    first = snapshot.save(tmp_path, FULL, keep=3)
    snapshot.save(tmp_path, at(5), keep=3)
    assert snapshot.read(first) == FULL


def test_the_newest_snapshots_are_kept(tmp_path):
    """So many as were asked for; the one just saved is always one of them."""
    for minute in range(6):
        snapshot.save(tmp_path, at(minute), keep=3)
    assert _minutes(tmp_path) == ["0307", "0308", "0309"]
    snapshot.save(tmp_path, at(6), keep=1)
    assert _minutes(tmp_path) == ["0310"]


def test_after_the_clock_went_back_the_latest_is_the_one_just_saved(tmp_path):
    """Those that seem to come from the future are the oldest, and the first to go."""
    for minute in (10, 11, 12):
        snapshot.save(tmp_path, at(minute), keep=3)
    snapshot.save(tmp_path, at(5, "back"), keep=3)
    assert snapshot.load(tmp_path).hosts[0].host == "back"
    assert _minutes(tmp_path) == ["0309", "0315", "0316"]
    snapshot.save(tmp_path, at(6, "again"), keep=3)
    assert snapshot.load(tmp_path).hosts[0].host == "again"
    assert _minutes(tmp_path) == ["0309", "0310", "0316"]


def test_two_snapshots_of_the_same_moment_are_two(tmp_path):
    """The second is filed a millisecond later; neither is lost."""
    snapshot.save(tmp_path, at(0, "first"), keep=3)
    snapshot.save(tmp_path, at(0, "second"), keep=3)
    assert _names(tmp_path) == ["20260102T030405.678Z", "20260102T030405.679Z"]
    assert snapshot.load(tmp_path).hosts[0].host == "second"


def test_what_a_killed_run_left_is_cleared_away(tmp_path):
    """By the next one; nothing else is touched."""
    snapshot.save(tmp_path, FULL, keep=3)
    for leftover in (".new-0123abcd", ".old-20260101T000000.000Z"):
        (tmp_path / "snapshots" / leftover).mkdir()
        (tmp_path / "snapshots" / leftover / "hosts.csv").touch()
    (tmp_path / ".latest-0123abcd").symlink_to("snapshots/nowhere")
    (tmp_path / "snapshots" / "notes").mkdir()
    (tmp_path / "mask.key").touch()
    snapshot.save(tmp_path, at(1), keep=1)
    assert _names(tmp_path) == ["20260102T030505.678Z", "notes"]
    assert sorted(os.listdir(tmp_path)) == ["latest", "mask.key", "snapshots"]


def test_a_save_that_fails_leaves_nothing_behind(tmp_path):
    """Here half a character, which no file can hold; whatever it is, the old snapshot stays."""
    snapshot.save(tmp_path, FULL, keep=3)
    with pytest.raises(UnicodeEncodeError):
        snapshot.save(tmp_path, at(1, "\ud800"), keep=3)
    assert snapshot.load(tmp_path) == FULL
    assert _names(tmp_path) == ["20260102T030405.678Z"]


def test_others_may_read_it_whatever_the_umask(tmp_path):
    """cron may run with a umask that lets nobody in; the pages are made by another user."""
    folder = tmp_path / "deep" / "data"
    before = os.umask(0o077)
    try:
        snapshot.save(folder, FULL, keep=3)
    finally:
        os.umask(before)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder.parent, folder, *folder.rglob("*")]
    }
    assert {modes.pop(f"{name}.csv") for name in ("hosts", "gpus", "processes")} == {0o644}
    assert set(modes.values()) == {0o755}


def test_folders_that_are_there_keep_their_mode(tmp_path):
    """They are the administrator's."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    snapshot.save(folder, FULL, keep=3)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_copied_folder_can_be_read_and_written(tmp_path):
    """`cp -rL` and many a backup turn the link into a folder."""
    snapshot.save(tmp_path / "data", FULL, keep=3)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "data", copy, symlinks=False)
    assert not (copy / "latest").is_symlink()
    # When it was taken can no longer be told from the link, but from the hosts.
    assert snapshot.load(copy) == FULL._replace(taken_at=HOST.checked_at)
    snapshot.save(copy, at(1), keep=3)
    assert (copy / "latest").is_symlink()
    assert snapshot.load(copy) == at(1)


def test_a_copied_folder_without_any_time_is_refused(tmp_path):
    """Without hosts nobody can say how old it is."""
    snapshot.save(tmp_path / "data", Snapshot(NOW), keep=3)
    shutil.copytree(tmp_path / "data", tmp_path / "copy", symlinks=False)
    with pytest.raises(DataError, match="does not say when it was taken"):
        snapshot.load(tmp_path / "copy")


def test_a_data_folder_without_a_snapshot_says_what_to_do(tmp_path):
    """Whether it is empty or not there at all."""
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=r"has no snapshot yet\. Run `webmon fetch` first"):
            snapshot.load(folder)


def test_a_data_folder_that_is_a_file_is_refused(tmp_path):
    """To read from and to write to."""
    file = tmp_path / "data"
    file.touch()
    with pytest.raises(DataError, match="Not a directory"):
        snapshot.load(file)
    with pytest.raises(DataError, match=r"can't be written: .*Make it writable"):
        snapshot.save(file, FULL, keep=3)


def test_the_usual_time_between_two_polls(tmp_path):
    """The one in the middle: a pause over a weekend does not make it longer."""
    assert snapshot.period(tmp_path) is None
    for minute in (0, 4, 9, 15, 22, 4000):
        snapshot.save(tmp_path, at(minute), keep=9)
        if minute == 0:
            assert snapshot.period(tmp_path) is None
    (tmp_path / "snapshots" / "99999999T999999.999Z").mkdir()
    assert snapshot.period(tmp_path) == timedelta(minutes=6)


def test_the_tables_are_texts_as_they_are_saved():
    """Nothing is guessed: a column of numbers with one unknown does not become 0.0 and nan."""
    frames = snapshot.frames(Snapshot(NOW, (HOST,), (GPU, GPU._replace(memory_used_mib=None)), (PROCESS,)))
    assert list(frames) == ["hosts", "gpus", "processes"]
    assert list(frames["gpus"]["memory_used_mib"]) == ["3000", ""]
    assert all(isinstance(cell, str) for frame in frames.values() for cell in frame.to_numpy().flat)
