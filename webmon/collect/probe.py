"""The one shell script that a host is sent, with its section marks.

It goes to `sh -s TOKEN` on standard input, or stands in authorized_keys as a forced command; it is
the same text in both. So outside of comments it has no single quote, no exclamation mark (csh) and
no backslash before a quote; it reads nothing from standard input; and every line may be joined to
the next by a space. It forks and writes as little as it can: one process for the GPUs, one for
their processes, one for `ps`; each write is a packet, and wakes both sides.

A section starts with a line of its own, `@TOKEN name …`, after a newline of its own. The token is
new in every call, because command lines, which are part of the answer, are written by other users.
"""

from __future__ import annotations

from functools import lru_cache

# Names come last in a row: they may have commas in them, and cells have no quotes.
GPU_FIELDS = (
    "index",
    "uuid",
    "driver_version",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "memory.total",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "fan.speed",
    "clocks.sm",
    "pstate",
    "mig.mode.current",
    "name",
)
PROCESS_FIELDS = ("gpu_uuid", "pid", "used_memory", "process_name")

# Drivers before about 450 refuse these, and with them the whole query.
YOUNG_FIELDS = ("mig.mode.current",)

TOKEN_DIGITS = 16
PID_DIGITS = 7
MAX_PROCESSES = 2000

# A claim is a file whose name is this and the uuid; `pick.claims` writes them.
CLAIM_FILE = "webmon-claim-"
MAX_CLAIMS = 256

_SCRIPT = r"""
main() {
# The token is the argument, or under a forced command the last word of what was asked for.
t=${1:-${SSH_ORIGINAL_COMMAND##* }};
case $t in
  @TOKEN_PATTERN@) ;;
  *) echo "This key runs the webmon probe and nothing else." >&2; return 64 ;;
esac;
exec 2>&1 </dev/null;
LC_ALL=C; PATH=${PATH:-/usr/bin:/bin}:/usr/local/bin:/usr/sbin:/usr/local/nvidia/bin;
PATH=$PATH:/usr/lib/wsl/lib:/run/current-system/sw/bin;
export LC_ALL PATH; unset IFS;
smi="@SMI@"; q="@GPU_FIELDS@"; k=no;
if command -v timeout >/dev/null; then k=yes; fi;

mark() { printf "\n@%s %s\n" "$t" "$*"; };
limited() {
  s=$1; shift;
  if [ $k = yes ]; then timeout -k 1 $s "$@"; else "$@"; fi;
};
ask() {
  limited @GPU_SECONDS@ $smi --query-gpu="$q" --format=csv,noheader,nounits;
  r=$?;
};
again() { printf "%s\n" "" "@$t exit $r" "" "@$t gpus $q"; ask; };

set --; i=0;
{ read -r a b < /proc/loadavg && set -- "load $a"; } 2>/dev/null;
{ read -r a < /sys/devices/system/cpu/online && set -- "$@" "cpus $a"; } 2>/dev/null;
{
  while [ $i -lt 5 ] && read -r a b c; do set -- "$@" "mem $a $b"; i=$((i+1)); done < /proc/meminfo;
} 2>/dev/null;
printf "%s\n" "" "@$t system" "$@" "" "@$t gpus $q";
ask;
# An old busybox has a timeout with other arguments: then without, the caller has a deadline.
case $k$r in yes1|yes125) k=no; again ;; esac;
# 2 is a field that this driver lacks: ask without the young ones, then without the one it names.
if [ $r = 2 ]; then q="@OLD_FIELDS@"; again; fi;
i=0;
while [ $r = 2 ] && [ $i -lt 12 ]; do
  i=$((i+1));
  e=$(limited @GPU_SECONDS@ $smi --query-gpu="$q" --format=csv,noheader,nounits);
  e=${e#*Field ?}; e=${e%% is not a*}; e=${e%?}; o=$q; q=; IFS=,;
  for f in $o; do if [ "$f" = "$e" ]; then :; else q=${q:+$q,}$f; fi; done;
  unset IFS;
  if [ "$q" = "$o" ]; then break; fi;
  again;
done;

# No second question where the first says that nobody can answer it: not installed (127), it hangs
# (124, 137, 143), no driver (9), no library (12), a driver of another version (18).
case $r in
127|124|137|143|9|12|18) mark exit $r ;;
*)
  printf "%s\n" "" "@$t exit $r" "" "@$t processes";
  {
    limited @PROCESS_SECONDS@ $smi --query-compute-apps=@PROCESS_FIELDS@ --format=csv,noheader,nounits;
    mark exit $?;
  } |
  {
    i=0; p=; set --;
    while [ $i -lt @MAX_PROCESSES@ ] && IFS= read -r l; do
      i=$((i+1)); set -- "$@" "$l"; a=${l#*, }; a=${a%%,*};
      case $l in GPU-*|MIG-*)
        case $a in @PID_PATTERN@)
          case ,$p, in *,$a,*) ;; *) p=${p:+$p,}$a ;; esac ;;
        esac ;;
      esac;
    done;
    printf "%s\n" "$@";
    if [ -n "$p" ]; then known "$p"; fi;
  } ;;
esac;

case $WEBMON_CLAIMS in
  "") set -- /run/lock/@CLAIM@* /tmp/@CLAIM@* ;;
  *) set -- "$WEBMON_CLAIMS"/@CLAIM@* ;;
esac;
i=0;
for a in "$@"; do
  shift;
  if [ -f "$a" ] && [ $i -lt @MAX_CLAIMS@ ]; then i=$((i+1)); set -- "$@" "$a"; fi;
done;
case $# in 0) ;; *) claims "$@" ;; esac;
mark end;
};

# The GPUs that a `webmon select` holds: the files of the claims, and who has locked them.
claims() {
  mark claims;
  stat -c "%D %i %n" "$@" 2>/dev/null | {
    i=" "; p=;
    while read -r a n f; do printf "%s\n" "file $a $n $f"; i="$i$n "; done;
    while read -r a k b c h n _; do
      case $k$i in FLOCK*" ${n##*:} "*)
        case $h in @PID_PATTERN@) printf "%s\n" "lock $h $n"; p=${p:+$p,}$h ;; esac ;;
      esac;
    done < /proc/locks;
    if [ -n "$p" ]; then known "$p"; fi;
  };
};

# What is known of some processes: who owns them, since when, and in which container they are.
known() {
  mark owners;
  { LC_ALL=C.UTF-8 ps -ww -o pid=,uid=,user:40=,etimes=,args= -p "$1" || owners "$1"; } 2>/dev/null;
  mark cgroups; IFS=,;
  for a in $1; do
    { while IFS= read -r c; do printf "%s %s\n" $a "$c"; done < /proc/$a/cgroup; } 2>/dev/null;
  done;
};

# Where ps is busybox, or too old: the same rows from /proc. A pid that has gone gives none.
owners() {
  h=$(getconf CLK_TCK) || h=100;
  read -r up b < /proc/uptime; up=${up%%.*};
  IFS=,;
  for a in $1; do
    unset IFS;
    if read -r s < /proc/$a/stat; then
      u=; while read -r b c _; do if [ "$b" = Uid: ]; then u=$c; break; fi; done < /proc/$a/status;
      m=$(getent passwd $u) || m=$(grep "^[^:]*:[^:]*:$u:" /etc/passwd); m=${m%%:*};
      set -- ${s##*) };
      printf "%s %s %s %s %s\n" $a $u "${m:-$u}" $((up-${20}/h)) "$(tr "\000\n" "  " < /proc/$a/cmdline)";
    fi;
  done;
};
main "$@"
"""


@lru_cache(maxsize=64)
def script(nvidia_smi: str = "nvidia-smi", timeout: float = 20.0) -> str:
    """Return the probe, without its comments, for a host that has `timeout` seconds in all."""
    gpu_seconds = max(1, int((timeout - 2) / 2))
    values = {
        "TOKEN_PATTERN": "[0-9a-f]" * TOKEN_DIGITS,
        "PID_PATTERN": "|".join("[1-9]" + "[0-9]" * more for more in range(PID_DIGITS)),
        "SMI": nvidia_smi,
        "GPU_FIELDS": ",".join(GPU_FIELDS),
        "OLD_FIELDS": ",".join(name for name in GPU_FIELDS if name not in YOUNG_FIELDS),
        "PROCESS_FIELDS": ",".join(PROCESS_FIELDS),
        "GPU_SECONDS": str(gpu_seconds),
        "PROCESS_SECONDS": str(max(1, int(timeout - 2) - gpu_seconds)),
        "MAX_PROCESSES": str(MAX_PROCESSES),
        "CLAIM": f"{CLAIM_FILE}GPU-",
        "MAX_CLAIMS": str(MAX_CLAIMS),
    }
    lines = [line.strip() for line in _SCRIPT.splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text + "\n"


def command(token: str) -> str:
    """Return the command that the script is sent to. `exec` spares a csh or fish its own process."""
    return f"exec sh -s {token}"


def forced_command(nvidia_smi: str = "nvidia-smi", timeout: float = 20.0) -> str:
    """Return the probe as one line for `command="…"`: it runs whatever is asked for."""
    return "exec sh -c '" + " ".join(script(nvidia_smi, timeout).split("\n")).strip() + "'"
