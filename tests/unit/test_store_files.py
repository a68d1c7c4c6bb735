"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from webmon.errors import DataError, StorageError
from webmon.store.files import storing, write, write_if_changed


def test_a_file_is_replaced_whole(tmp_path):
    """Nothing but the new file is left, readable by the web server whatever the umask."""
    file = tmp_path / "index.html"
    before = os.umask(0o077)
    try:
        write(file, b"old")
        write(file, b"new")
    finally:
        os.umask(before)
    assert os.listdir(tmp_path) == ["index.html"]
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_reader_of_the_old_file_keeps_the_old_file(tmp_path):
    """It is another file that takes its place."""
    file = tmp_path / "index.html"
    write(file, b"old")
    with file.open("rb") as reader:
        write(file, b"new")
        assert reader.read() == b"old"


def test_a_link_is_replaced_not_followed(tmp_path):
    """What it points to is somebody else's."""
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(other)
    write(tmp_path / "link", b"ours")
    assert (other.read_bytes(), (tmp_path / "link").read_bytes()) == (b"theirs", b"ours")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    """Here a folder stands where the file would go."""
    (tmp_path / "page").mkdir()
    with pytest.raises(OSError, match="directory"):
        write(tmp_path / "page", b"x")
    assert os.listdir(tmp_path) == ["page"]


def test_an_unchanged_file_is_not_written(tmp_path):
    """So its time stays, and whoever has it need not fetch it again."""
    file = tmp_path / "hosts" / "gpu01.html"
    assert write_if_changed(file, b"one") is True
    os.utime(file, (1, 1))
    assert write_if_changed(file, b"one") is False
    assert file.stat().st_mtime == 1
    assert write_if_changed(file, b"two") is True
    assert write_if_changed(file, b"three") is True
    assert file.read_bytes() == b"three"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_told_apart(tmp_path, number):
    """Full, over quota, or over the limit of a file: what was there before is as it was."""
    with (
        pytest.raises(StorageError, match=r"can't be written: .*Free some space") as raised,
        storing(tmp_path),
    ):
        raise OSError(number, os.strerror(number))
    assert raised.value.exit_code == 1


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOTDIR])
def test_a_folder_that_can_not_be_used_is_a_matter_of_configuration(tmp_path, number):
    """The remedy says so, and so does the exit code."""
    with (
        pytest.raises(DataError, match=r"can't be written: .*name another folder") as raised,
        storing(tmp_path),
    ):
        raise OSError(number, os.strerror(number))
    assert raised.value.exit_code == 2
