"""Whatever is wrong with a configuration: which line, what is wrong, and what was meant."""

from __future__ import annotations

import pytest

from webmon import config
from webmon.errors import ConfigError

START = "[common]\nhosts = gpu01\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        # names
        ("[comon]\nhosts = a", "config.ini:1: there is no section [comon]. Did you mean 'common'?"),
        ("[Common]\nhosts = a", "config.ini:1: there is no section [Common]. Did you mean 'common'?"),
        (
            START + "[xyz]\na = 1",
            "config.ini:3: there is no section [xyz]. It can be: host, common, free, data, site, privacy,",
        ),
        (
            START + "[hosts.gpu01]\nuser = x",
            "config.ini:3: there is no section [hosts]. Did you mean 'host'?",
        ),
        (START + "xyz.abc = 1", "config.ini:3: [common] has no key 'xyz'. It can be: hosts, user, port"),
        ("[common]\nhost = a", "config.ini:2: [common] has no key 'host'. Did you mean 'hosts'?"),
        (START + "usr = x", "config.ini:3: [common] has no key 'usr'. Did you mean 'user'?"),
        (START + "title = x", "config.ini:3: [common] has no key 'title'. It belongs under [site]"),
        (
            START + "q = 1",
            "config.ini:3: [common] has no key 'q'. It can be: hosts, user, port, key_filename,",
        ),
        (
            START + '[host."gpu01"]\nlable = x',
            "config.ini:4: [host.gpu01] has no key 'lable'. Did you mean 'label'?",
        ),
        (
            START + '[host."gpu01"]\njobs = 3',
            "config.ini:4: [host.gpu01] has no key 'jobs'. It belongs under [common]",
        ),
        ("hosts = a", "config.ini:1: hosts stands outside of any section. Put it under [common]"),
        (
            "\nx = 1",
            "config.ini:2: x stands outside of any section. Every key belongs under a section, such as",
        ),
        ("common = 5", "config.ini:1: common is a section, not a key. Write [common] above its keys"),
        (
            "\n[[common]]\nhosts = 'a'",
            "config.ini:2: common is a section, not a key. Write [common] above its keys",
        ),
        (START + "[[site]]\ntitle = 'a'", "config.ini:3: site is a section, not a key. Write [site] above"),
        ("host = 5", 'config.ini:1: host is a section, not a key. Write [host."gpu01"]'),
        (
            START + "[host]\ngpu01 = 5",
            'config.ini:4: host.gpu01 is a section, not a key. Write [host."gpu01"] above',
        ),
        # hosts
        ("", 'config.ini: [common] has no hosts. Name them: hosts = ["gpu[01-16].lab", '),
        ("\n[common]\nuser = x", "config.ini:2: [common] has no hosts. Name them: "),
        ("[common]\nhosts =", 'config.ini:2: common.hosts is empty. Name at least one host, or "self" for'),
        ("[common]\nhosts = []", "config.ini:2: common.hosts is empty. Name at least one host"),
        ("[common]\nhosts = 5", "config.ini:2: common.hosts is a number, not a list of names. Write ["),
        ("[common]\nhosts = [1, 2]", "config.ini:2: common.hosts is a list, not a list of names. Write ["),
        ("[common]\nhosts = gpu[3-1]", "config.ini:2: common.hosts: 'gpu[3-1]' counts down; write [1-3]"),
        (
            "[common]\nhosts = gpu[a-b]",
            "config.ini:2: common.hosts: 'gpu[a-b]' is not a range; a range is written gpu",
        ),
        (
            "[common]\nhosts = gpu[1-20001]",
            "config.ini:2: common.hosts: 'gpu[1-20001]' stands for more than 20000",
        ),
        ("[common]\nhosts = a[1-20000], b", "config.ini:2: common.hosts stands for more than 20000 hosts"),
        (
            "[common]\nhosts = a:0",
            "config.ini:2: common.hosts: 'a:0' has no port number after the colon (1 to 65535)",
        ),
        (
            "[common]\nhosts = -oProxyCommand=x",
            "config.ini:2: common.hosts: '-oProxyCommand=x' is not a host name",
        ),
        ("[common]\nhosts = a, bob@a", "config.ini:2: common.hosts names a twice, with different users"),
        (
            START + "[host.gpu02]\nuser = x",
            "config.ini:3: [host.\"gpu02\"]: gpu02 is not in hosts. Did you mean 'gpu01'?",
        ),
        (
            START + "[host.zzz]\nuser = x",
            'config.ini:3: [host."zzz"]: zzz is not in hosts. Add it to hosts, or remove',
        ),
        (START + '[host."gpu[2-1]"]\nuser = x', "config.ini:3: 'gpu[2-1]' counts down; write [1-2]"),
        # values
        (START + "user =", "config.ini:3: common.user is empty. Give it a value, or remove the line"),
        (START + 'user = "  "', "config.ini:3: common.user is empty. Give it a value, or remove the line"),
        (
            START + "user = 1000",
            'config.ini:3: common.user is a number, not a text. Write it in quotes, "1000"',
        ),
        (
            START + "user = true",
            "config.ini:3: common.user is true or false, not a text. Write it in quotes,",
        ),
        (START + "user = 2026-01-02", "config.ini:3: common.user is a date or time, not a text. Write it in"),
        (START + "user = ['a']", "config.ini:3: common.user is a list, not a text"),
        (
            START + 'user = "a\\nb"',
            "config.ini:3: common.user has a control character in it. It has to be one line",
        ),
        (START + "port = x", "config.ini:3: common.port is a text, not a whole number"),
        (START + 'port = "22"', "config.ini:3: common.port is a text, not a whole number. Write 22"),
        (START + "port = 22.5", "config.ini:3: common.port is a number, not a whole number"),
        (START + "port = true", "config.ini:3: common.port is true or false, not a whole number"),
        (START + "port = 65536", "config.ini:3: common.port is 65536; it goes from 1 to 65535"),
        (
            START + f"port = {'1' * 5000}",
            "config.ini:3: common.port is a text, not a whole number. Write 111",
        ),
        (START + "timeout = 20 seconds", "config.ini:3: common.timeout is a text, not a number. Write 20"),
        (START + "timeout = false", "config.ini:3: common.timeout is true or false, not a number"),
        (START + "timeout = 0.5", "config.ini:3: common.timeout is 0.5; it goes from 1 to 600"),
        (START + "timeout = nan", "config.ini:3: common.timeout is nan; it goes from 1 to 600"),
        (
            START + "host_keys = no",
            'config.ini:3: common.host_keys is \'no\'; it can be "strict" or "accept-new" or',
        ),
        (START + "host_keys = false", "config.ini:3: common.host_keys is False; it can be"),
        (
            START + "nvidia_smi = x; rm -rf /",
            "config.ini:3: common.nvidia_smi may only have letters, digits, spaces",
        ),
        (START + 'nvidia_smi = "$(id)"', "config.ini:3: common.nvidia_smi may only have letters"),
        (START + "nvidia_smi = -x", "config.ini:3: common.nvidia_smi may only have letters"),
        (START + "proxy_jump = a b", "config.ini:3: common.proxy_jump: 'a b' is not a host name"),
        (START + "[host.gpu01]\nport = x", "config.ini:4: host.gpu01.port is a text, not a whole number"),
        (START + "[free]\nignore = 5", 'config.ini:4: free.ignore is a number, not a list. Write ["a", "b"]'),
        (
            START + "[free]\nignore = [5]",
            'config.ini:4: free.ignore is a number, not a text. Write it in quotes, "5"',
        ),
        (
            START + "[free]\nmax_memory_pct = 5%",
            "config.ini:4: free.max_memory_pct is a text, not a number. Write 5",
        ),
        (
            START + "[free]\nmax_memory_pct = 101",
            "config.ini:4: free.max_memory_pct is 101; it goes from 0 to 100",
        ),
        (
            START + "[free]\nheld_after_min = inf",
            "config.ini:4: free.held_after_min is inf; it goes from 0 to 525600",
        ),
        (
            START + "[data]\nkeep_snapshots = 0",
            "config.ini:4: data.keep_snapshots is 0; it goes from 2 to 100000",
        ),
        (
            START + "[privacy]\nusers = hide",
            'config.ini:4: privacy.users is \'hide\'; it can be "show" or "mask"',
        ),
        # the text itself
        (
            START + "garbage",
            "config.ini:3: Expected '=' after a key in a key/value pair in 'garbage'. Each line is [",
        ),
        (
            START + 'user = "bob\nport = 22',
            "config.ini:3: Illegal character '\\n' in 'user = \"bob'. Each line is [",
        ),
        ("[common\nhosts = a", "config.ini:1: Expected ']' at the end of a table declaration in '[common'"),
        (START + "hosts = b", "config.ini:3: Cannot overwrite a value in 'hosts = \"b\"'"),
        (START + "[common]", "config.ini:3: Cannot declare ('common',) twice in '[common]'"),
        (START + 'title = """x\n', "config.ini:4: Unterminated string"),
        (
            START + f"{'a.' * 2000}b = 1",
            "config.ini: TOML key has more than the allowed 1000 parts. Each line is [",
        ),
        (b"[common]\nhosts = a\nuser = b\xf6b\n", "config.ini:3: not UTF-8 text. Save the file as UTF-8"),
    ],
)
def test_an_error_says_the_line_the_problem_and_the_remedy(file, text, error):
    """In one line, as a compiler does."""
    said = file.error(text)
    assert said.startswith(error)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("section", "key", "lowest", "highest"),
    [
        ("common", "port", 1, 65535),
        ("common", "timeout", 1, 600),
        ("common", "jobs", 1, 512),
        ("free", "max_memory_pct", 0, 100),
        ("free", "max_utilization_pct", 0, 100),
        ("free", "held_after_min", 0, 525_600),
        ("data", "keep_days", 1, 36_500),
        ("data", "keep_rollup_days", 1, 36_500),
        ("data", "keep_snapshots", 2, 100_000),
        ("site", "refresh", 1, 86_400),
    ],
)
def test_every_number_has_limits(file, section, key, lowest, highest):
    """They are part of what is allowed, and named when they are not kept."""
    text = "[common]\nhosts = gpu01\n" + (f"[{section}]\n" if section != "common" else "")
    for number in (lowest, highest):
        assert file.load(f"{text}{key} = {number}\n").hosts
    for number in (lowest - 1, highest + 1):
        assert file.error(f"{text}{key} = {number}\n").endswith(
            f"{section}.{key} is {number}; it goes from {lowest} to {highest}"
        )


def test_a_templates_folder_has_to_exist(file):
    """Its pages would silently be those of webmon."""
    error = file.error(START + "[site]\ntemplates = mine")
    folder = file.path.parent / "mine"
    assert error == f"config.ini:4: site.templates: there is no folder {folder}. Make it, or remove the line"


def test_a_file_that_is_not_there_is_named(tmp_path):
    """With what to do about it."""
    path = tmp_path / "config.ini"
    with pytest.raises(ConfigError) as raised:
        config.load(path)
    assert raised.value.problem == f"{path}: there is no such file"
    assert raised.value.remedy == "Copy config.example.ini there and name your hosts in it"


def test_a_file_that_can_not_be_read_is_named(tmp_path):
    """A folder, or a file of another user."""
    with pytest.raises(ConfigError, match=r"Is a directory. It has to be a file that this user may read"):
        config.load(tmp_path)


def test_what_is_not_done_yet_is_a_warning(file):
    """[notify] is read and checked."""
    assert file.load(START + "[notify]\nurls = ntfy://gpus\n").warnings == (
        "config.ini:3: [notify] is read and checked, but this version sends nothing yet",
    )
