"""The probe in every shell that a host may have, asking a stand-in nvidia-smi."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from machine import Machine, lacks, me, shell
from probe_answers import NOW, TOKEN, read
from servers.programs import need
from servers.states import gpu, healthy, process, uuid

from webmon.collect import probe


@pytest.fixture
def machine(tmp_path):
    """A machine with the usual programs and two idle cards."""
    return Machine(tmp_path).says(healthy(2))


@pytest.fixture
def start():
    """Start programs for one test, with any arguments, and end them after it."""
    started = []

    def begin(*arguments):
        started.append(subprocess.Popen(arguments, executable="/bin/sleep", stdin=subprocess.DEVNULL))
        return started[-1].pid

    yield begin
    for program in started:
        program.kill()
        program.wait()


def _with(*rows, **state):
    return {"gpus": [gpu(0), gpu(1)], "processes": list(rows), **state}


EVERY_SHELL = pytest.mark.parametrize("name", ["dash", "bash", "busybox"])
EVERY_LOGIN_SHELL = pytest.mark.parametrize("name", ["sh", "bash", "busybox", "csh", "fish"])


def _check_all_is_known(reading, pid):
    """Both cards, the process with its owner and its age, and the machine itself."""
    assert reading.problem is None
    assert reading.remarks == ()
    assert [(card.index, card.uuid, card.name) for card in reading.gpus] == [
        (0, uuid(0), "NVIDIA RTX A6000"),
        (1, uuid(1), "NVIDIA RTX A6000"),
    ]
    (running,) = reading.processes
    assert (running.pid, running.gpu_index, running.memory_mib) == (pid, 1, 512)
    assert (running.user, running.name, running.command) == (me(), "/bin/sleep", "sleep 300")
    assert NOW - running.started_at < timedelta(seconds=30)
    assert None not in (reading.load1, reading.cpus, reading.ram_used_mib, reading.ram_total_mib)
    assert reading.driver == "550.54.14"


@EVERY_SHELL
def test_the_probe_reads_everything_in_any_shell(machine, start, name):
    """Sent to `sh -s TOKEN`, whatever sh is."""
    pid = start("sleep", "300")
    machine.says(_with(process(1, pid, "/bin/sleep", "512")))
    _check_all_is_known(machine.probed(shell(name)), pid)


@EVERY_LOGIN_SHELL
def test_the_login_shell_does_not_matter(machine, start, name):
    """sshd gives it the command that starts sh; the script comes on standard input."""
    pid = start("sleep", "300")
    machine.says(_with(process(1, pid, "/bin/sleep", "512")))
    done = machine.run([*shell(name), "-c", probe.command(TOKEN)], probe.script())
    assert (done.returncode, done.stderr) == (0, b"")
    _check_all_is_known(read(done.stdout), pid)


@EVERY_LOGIN_SHELL
def test_the_forced_command_reads_the_same_in_any_login_shell(machine, start, name):
    """One line in authorized_keys; the token is the last word of what was asked for."""
    pid = start("sleep", "300")
    machine.says(_with(process(1, pid, "/bin/sleep", "512")))
    done = machine.run(
        [*shell(name), "-c", probe.forced_command()], "ignored\n", SSH_ORIGINAL_COMMAND=probe.command(TOKEN)
    )
    assert (done.returncode, done.stderr) == (0, b"")
    _check_all_is_known(read(done.stdout), pid)


def _busybox_machine(tmp_path, *applets):
    busybox = need("busybox", "busybox")
    return Machine(tmp_path, path="").link("sh", *applets, target=busybox)


def test_a_host_with_nothing_but_busybox_tells_the_owners_too(tmp_path, start):
    """Its ps knows none of the options, so they come from /proc and /etc/passwd."""
    pid = start("sleep", "300")
    machine = _busybox_machine(tmp_path, "ps", "timeout", "tr", "grep", "cat")
    machine.says(_with(process(1, pid, "/bin/sleep", "512")))
    _check_all_is_known(machine.probed(["sh"]), pid)


def test_without_ps_and_without_grep_the_owner_is_a_number(tmp_path, start):
    """A user without a name is shown by its number, as ps does."""
    if not lacks("ps", "getent", "grep"):
        pytest.skip("this machine has ps or getent where the probe always looks")
    pid = start("sleep", "300")
    machine = _busybox_machine(tmp_path, "tr").says(_with(process(1, pid, "/bin/sleep", "512")))
    (running,) = machine.probed(["sh"]).processes
    assert running.user == subprocess.check_output(["id", "-u"], text=True).strip()
    assert running.command == "sleep 300"


def test_without_timeout_the_questions_are_asked_all_the_same(tmp_path, start):
    """The caller has a deadline of its own."""
    if not lacks("timeout"):
        pytest.skip("this machine has a timeout where the probe always looks")
    pid = start("sleep", "300")
    machine = Machine(tmp_path, path="").link("sh", "ps").says(_with(process(1, pid, "/bin/sleep", "512")))
    _check_all_is_known(machine.probed(["sh"]), pid)


@pytest.mark.parametrize("code", [1, 125])
def test_a_timeout_of_another_kind_is_done_without(machine, start, code):
    """That of an old busybox knows no -k, says so, and runs nothing."""
    pid = start("sleep", "300")
    machine.says(_with(process(1, pid, "/bin/sleep", "512")))
    machine.program("timeout", f'echo "timeout: unrecognized option: k"; exit {code}')
    _check_all_is_known(machine.probed(), pid)
    assert len(machine.calls("timeout")) == 1
    assert len(machine.calls("nvidia-smi")) == 2


@EVERY_SHELL
def test_an_old_driver_is_asked_again_without_the_young_fields(machine, name):
    """In the same round trip."""
    machine.says({**healthy(2), "refused_fields": ["mig.mode.current"]})
    reading = machine.probed(shell(name))
    assert (len(reading.gpus), reading.problem, reading.remarks) == (2, None, ())
    assert len(machine.calls("nvidia-smi")) == 3


@EVERY_SHELL
def test_any_field_that_a_driver_lacks_is_taken_out(machine, name):
    """One after the other, by the name that it refuses; what is left is read."""
    refused = ["mig.mode.current", "fan.speed", "pstate", "utilization.memory"]
    machine.says({**_with(), "refused_fields": refused})
    reading = machine.probed(shell(name))
    assert reading.problem is None
    assert [(card.utilization_pct, card.power_w, card.fan_pct, card.pstate) for card in reading.gpus] == [
        (0, 21.53, None, None)
    ] * 2


@pytest.mark.parametrize("refused", [["name"], ["uuid"], list(gpu(0)), ["no.such.field"]])
def test_a_driver_that_refuses_what_is_needed_is_not_asked_for_ever(machine, refused):
    """Without the name there are no rows; a field that was not asked for can't be taken out."""
    state = {**_with(), "refused_fields": refused}
    machine.says(state)
    if refused == ["no.such.field"]:
        text = 'Field "no.such.field" is not a valid field to query.'
        machine.program("nvidia-smi", f"echo '{text}'; exit 2")
    reading = machine.probed()
    assert reading.gpus == ()
    assert reading.problem is not None
    assert len(machine.calls("nvidia-smi")) < 40


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        (9, 1),
        (12, 1),
        (18, 1),
        (127, 1),
        (124, 1),
        (137, 1),
        (143, 1),
        (6, 2),
        (14, 2),
        (15, 2),
        (255, 2),
        (4, 2),
    ],
)
def test_processes_are_not_asked_for_where_nobody_can_know_them(machine, code, asked):
    """No driver, no library, no program, a driver that hangs: the second question would only take time."""
    machine.says(healthy()).program("nvidia-smi", f"echo No; exit {code}")
    reading = machine.probed()
    assert reading.processes is None
    assert len(machine.calls("nvidia-smi")) == asked


def test_a_host_without_nvidia_smi_says_so(tmp_path):
    """Exit 127, from timeout or from the shell."""
    reading = Machine(tmp_path).probed(nvidia_smi="/nowhere/nvidia-smi")
    assert reading.problem.reason == "not-installed"
    assert reading.cpus is not None


def test_nvidia_smi_may_be_somewhere_else(machine, tmp_path):
    """`nvidia_smi = "…"` in the configuration: a path, with words before it if need be."""
    other = tmp_path / "opt" / "nvidia-smi"
    other.parent.mkdir()
    (machine.bin / "nvidia-smi").rename(other)
    assert len(machine.probed(nvidia_smi=f"env LC_ALL=C {other}").gpus) == 2


HANGS = {
    "ends when it is asked to": ("exec sleep 60", {}),
    "does not end before it is killed": (None, {"hangs": True}),
}


@pytest.mark.parametrize("how", HANGS)
def test_an_nvidia_smi_that_hangs_is_ended(machine, how):
    """By timeout: after a second here, and a second later by force."""
    script, state = HANGS[how]
    machine.says({**healthy(), **state})
    if script:
        machine.program("nvidia-smi", script)
    started = datetime.now(UTC)
    reading = machine.probed(timeout=3)
    assert datetime.now(UTC) - started < timedelta(seconds=25)
    assert (reading.problem.reason, reading.processes) == ("smi-timeout", None)
    assert len(machine.calls("nvidia-smi")) == 1


def test_busyboxs_timeout_ends_it_too(tmp_path):
    """It has another exit code for that."""
    machine = _busybox_machine(tmp_path, "ps", "timeout", "tr", "grep", "sleep").says(healthy())
    machine.program("nvidia-smi", "exec sleep 60")
    assert machine.probed(["sh"], timeout=3).problem.reason == "smi-timeout"


def test_a_query_for_processes_that_hangs_leaves_them_unknown(machine):
    """The cards are there; whether they are free is not known."""
    machine.says(healthy(2))
    standin = (machine.bin / "nvidia-smi").read_text(encoding="utf-8")
    machine.program("nvidia-smi", f"case $1 in *apps*) exec sleep 60 ;; esac\n{standin.splitlines()[-1]}")
    reading = machine.probed(timeout=7)
    assert (len(reading.gpus), reading.processes, reading.problem.reason) == (2, None, "no-processes")


def test_a_query_for_processes_that_fails_leaves_them_unknown(machine):
    """Unknown, not idle."""
    failure = {"text": "Failed to initialize NVML: Unknown Error", "exit": 255}
    machine.says(_with(process_failure=failure))
    reading = machine.probed()
    assert (len(reading.gpus), reading.processes, reading.problem.reason) == (2, None, "no-processes")


def test_a_process_that_has_gone_has_no_owner(machine):
    """`ps` then exits with 1, which is normal."""
    machine.says(_with(process(0, 4194304)))
    (gone,) = machine.probed().processes
    assert (gone.pid, gone.user, gone.command) == (4194304, None, None)


def test_a_process_that_has_gone_does_not_hide_the_others(machine, start):
    """One list is asked for all of them."""
    pid = start("sleep", "300")
    machine.says(_with(process(0, 4194304), process(0, pid), process(1, pid)))
    assert [found.user for found in machine.probed().processes] == [None, me(), me()]


@pytest.mark.parametrize(
    "pid", ["0", "-1", "1x", "*", "1 2", "$(touch pwned)", "../self", "12345678", "[N/A]", ""]
)
def test_what_is_no_process_id_is_asked_of_nobody(machine, tmp_path, pid):
    """Rows come from a program of the host; the shell does not take them for its own words."""
    machine.says(_with(process(0, pid)))
    machine.program("ps", "exit 1")
    machine.probed()
    assert machine.calls("ps") == []
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", ["dash", "busybox"])
@pytest.mark.parametrize("ps", ["", "exit 1"], ids=["ps", "proc"])
def test_arguments_are_taken_as_they_are(machine, start, name, ps):
    """UTF-8, quotes, percent signs, backslashes: nothing is cut, nothing is run."""
    argument = "träin.py \"q\" 'x' %s %n $(id) `id` a\\nb * ; & | " + "x" * 300
    pid = start(argument, "300")
    machine.says(_with(process(0, pid)))
    if ps:
        machine.program("ps", ps)
    (found,) = machine.probed(shell(name)).processes
    assert found.command == f"{argument} 300"


@pytest.mark.parametrize("ps", ["", "exit 1"], ids=["ps", "proc"])
def test_arguments_can_not_forge_a_mark(machine, start, ps):
    """Even for somebody who knew the token, an argument stays on its line."""
    pid = start(f"x\n@{TOKEN} processes\n@{TOKEN} exit 0\n7 0 mallory 5 y", "300")
    machine.says(_with(process(0, pid)))
    if ps:
        machine.program("ps", ps)
    (found,) = machine.probed().processes
    assert (found.pid, found.user) == (pid, me())


def test_a_very_long_list_of_processes_is_unknown_and_ends(machine):
    """After 2000 lines the probe reads no further."""
    machine.says(_with(*(process(0, 4_000_000 + number) for number in range(2500))))
    reading = machine.probed()
    assert (len(reading.gpus), reading.processes) == (2, None)


def test_nothing_of_the_users_environment_changes_the_answer(machine):
    """IFS, a language with decimal commas, an alias file for sh."""
    (machine.folder / "env.sh").write_text("echo NOISE\n", encoding="utf-8")
    done = machine.run(
        ["/bin/sh", "-s", TOKEN],
        probe.script(),
        IFS="0123456789",
        LC_ALL="de_DE.UTF-8",
        ENV=str(machine.folder / "env.sh"),
        t="x",
        q="x",
        smi="x",
    )
    assert len(read(done.stdout).gpus) == 2
