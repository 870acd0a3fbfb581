"""The system calls that sandboxed code may make, as a seccomp filter (child side).

An allow-list: pure computation, reading files, writing to files already open. There is
no call in it that makes a process or thread, opens a socket, signals, traces or changes
the limits of a process; every other call fails with `EPERM`, which Python raises as
`PermissionError`. The filter binds root as it binds everyone and cannot be taken off.
Numbers: x86-64 from `asm/unistd_64.h`, ARM64 from `asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import os
import struct

__all__ = ["install_filter", "machine_is_known"]

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Machine name -> column in the tables below, `AUDIT_ARCH_*` of its calls."""

_COMPUTE = """
read 0 63|write 1 64|readv 19 65|writev 20 66|pread64 17 67|pwrite64 18 68|close 3 57
close_range 436 436|lseek 8 62|fstat 5 80|newfstatat 262 79|statx 332 291|stat 4 -
lstat 6 -|fstatfs 138 44|statfs 137 43|access 21 -|faccessat 269 48
faccessat2 439 439|readlink 89 -|readlinkat 267 78|getdents64 217 61|getcwd 79 17
chdir 80 49|fchdir 81 50|dup 32 23|dup2 33 -|dup3 292 24|pipe 22 -|pipe2 293 59
poll 7 -|ppoll 271 73|select 23 -|pselect6 270 72|epoll_create1 291 20
epoll_ctl 233 21|epoll_wait 232 -|epoll_pwait 281 22|eventfd2 290 19|fadvise64 221 223
mmap 9 222|munmap 11 215|mprotect 10 226|mremap 25 216|madvise 28 233|mincore 27 232
brk 12 214|futex 202 98|sched_yield 24 124|sched_getaffinity 204 123
membarrier 324 283|rt_sigaction 13 134|rt_sigprocmask 14 135|rt_sigreturn 15 139
rt_sigpending 127 136|rt_sigtimedwait 128 137|sigaltstack 131 132
restart_syscall 219 128|pause 34 -|alarm 37 -|getitimer 36 102|setitimer 38 103
nanosleep 35 101|clock_nanosleep 230 115|clock_gettime 228 113|clock_getres 229 114
gettimeofday 96 169|time 201 -|times 100 153|getpid 39 172|gettid 186 178
getppid 110 173|getpgrp 111 -|getpgid 121 155|getsid 124 156|getuid 102 174
geteuid 107 175|getgid 104 176|getegid 108 177|getresuid 118 148|getresgid 120 150
getgroups 115 158|getrusage 98 165|getrlimit 97 163|uname 63 160|sysinfo 99 179
getrandom 318 278|getcpu 309 168|umask 95 166|wait4 61 260|waitid 247 95|exit 60 93
exit_group 231 94
"""

_CHANGE_FILES = """
ftruncate 77 46|truncate 76 45|fallocate 285 47|fsync 74 82|fdatasync 75 83|flock 73 32
mkdir 83 -|mkdirat 258 34|unlink 87 -|unlinkat 263 35|rmdir 84 -|rename 82 -
renameat 264 38|renameat2 316 276|link 86 -|linkat 265 37|symlink 88 -|symlinkat 266 36
chmod 90 -|fchmod 91 52|fchmodat 268 53|utimensat 280 88|sendfile 40 71
copy_file_range 326 285
"""

_GUARDED = "openat 257 56|fcntl 72 25|ioctl 16 29|prlimit64 302 261|clone3 435 435"

_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
"""Copy a descriptor, its flags; no owner and no signal (`F_SETOWN`, `F_SETSIG`)."""

_IOCTL_REQUESTS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5450, 0x5451)
"""Is it a terminal, its size, bytes waiting, close-on-exec."""

_OPEN_TO_CHANGE = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000
)
"""Any of these flags of `open` changes a file; the last is `__O_TMPFILE`."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
_NUMBER, _ARCHITECTURE = 0, 4
_X32_CALLS = 0x40000000
_SET_SECCOMP, _MODE_FILTER = 22, 2


def machine_is_known() -> bool:
    """Whether this machine's system calls are in the tables."""
    return os.uname().machine in _ARCHITECTURES


def _numbers(table: str, column: int) -> dict[str, int]:
    rows = [row.split() for row in table.replace("|", "\n").splitlines() if row]
    return {row[0]: int(row[1 + column]) for row in rows if row[1 + column] != "-"}


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _argument(index: int, *, high: bool = False) -> bytes:
    return _instruction(_LOAD, 16 + 8 * index + 4 * high)


def _guard(number: int, *body: bytes) -> list[bytes]:
    """`body`, which must return, for this call alone."""
    return [_instruction(_EQUAL, number, 0, len(body)), *body]


def _one_of(index: int, values: tuple[int, ...]) -> list[bytes]:
    program = [_argument(index)]
    for value in values:
        program += [_instruction(_EQUAL, value, 0, 1), _instruction(_RETURN, _ALLOW)]
    return [*program, _instruction(_RETURN, _REFUSE)]


def _is_zero(index: int) -> list[bytes]:
    return [
        _argument(index, high=True),
        _instruction(_EQUAL, 0, 0, 3),
        _argument(index),
        _instruction(_EQUAL, 0, 0, 1),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _REFUSE),
    ]


def _guards(column: int, writable: bool) -> list[bytes]:
    number = _numbers(_GUARDED, column)
    open_to_read = [
        _argument(2),
        _instruction(_ANY_BIT, 0 if writable else _OPEN_TO_CHANGE, 1, 0),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _REFUSE),
    ]
    return [
        *_guard(number["openat"], *open_to_read),
        *_guard(number["fcntl"], *_one_of(1, _FCNTL_COMMANDS)),
        *_guard(number["ioctl"], *_one_of(1, _IOCTL_REQUESTS)),
        *_guard(number["prlimit64"], *_is_zero(2)),
        # The C library falls back to `clone`, which is refused, on ENOSYS alone.
        *_guard(number["clone3"], _instruction(_RETURN, _UNKNOWN)),
    ]


def _program(*, writable: bool) -> bytes:
    column, architecture = _ARCHITECTURES[os.uname().machine]
    allowed = _numbers(_COMPUTE + _CHANGE_FILES * writable, column)
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        _instruction(_AT_LEAST, _X32_CALLS, 0, 1),
        _instruction(_RETURN, _REFUSE),
    ]
    for number in allowed.values():
        program += [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, _ALLOW)]
    program += [*_guards(column, writable), _instruction(_RETURN, _REFUSE)]
    return b"".join(program)


def install_filter(libc: ctypes.CDLL, *, writable: bool) -> None:
    """Binds this process, for good.

    Args:
      libc: the C library, opened with `use_errno`.
      writable: files may be created and changed; otherwise every file is read-only.

    Raises:
      OSError: the kernel or the machine has no such filter.
    """
    if not machine_is_known():
        raise OSError(f"no system-call table for {os.uname().machine}")
    program = _program(writable=writable)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    if libc.prctl(_SET_SECCOMP, _MODE_FILTER, header, 0, 0) == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")
