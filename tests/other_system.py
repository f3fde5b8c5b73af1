"""Windows and macOS, as far as lazygrad's modules see them: `become("win32", ...)`, in a process of its own.

From then on they, and no others, import a `sys`, `os`, `mmap` and the like that have what the other system's
do, and find no `fcntl`. LLVM, SQLite and the C library remain this system's.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import mmap
import platform
import types
from typing import Any

_MODULES_OF_UNIX = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
#: What CPython's documentation gives for Unix alone, by module.
_OF_UNIX = {
    "os": """fork forkpty register_at_fork getuid geteuid getgid getegid getgroups setuid setgid setsid
        getpgid killpg sysconf sysconf_names confstr pathconf uname getloadavg nice chown fchown lchown
        fchmod chroot sched_getaffinity sched_setaffinity sched_yield pread pwrite preadv pwritev
        readv writev sendfile copy_file_range splice mkfifo mknod posix_fallocate posix_fadvise
        posix_spawn openpty ttyname ctermid wait waitid wait3 wait4 WNOHANG O_NOFOLLOW O_NONBLOCK
        O_CLOEXEC O_DIRECTORY O_SYNC O_DSYNC O_NOCTTY O_TMPFILE O_PATH memfd_create eventfd
        getrandom statvfs fstatvfs fdatasync sync lockf""",
    "mmap": """MAP_SHARED MAP_PRIVATE MAP_ANON MAP_ANONYMOUS MAP_POPULATE MAP_STACK MAP_NORESERVE PROT_READ
        PROT_WRITE PROT_EXEC MADV_HUGEPAGE MADV_NOHUGEPAGE MADV_NORMAL MADV_DONTNEED MADV_WILLNEED
        MADV_SEQUENTIAL MADV_RANDOM MADV_FREE""",
    "signal": """SIGALRM SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2 SIGCHLD SIGQUIT SIGSTOP SIGTSTP SIGWINCH alarm
        setitimer getitimer ITIMER_REAL pause pthread_kill pthread_sigmask sigwait siginterrupt""",
    "time": "clock_getres clock_gettime clock_settime tzset CLOCK_MONOTONIC CLOCK_REALTIME",
    "socket": "AF_UNIX",
    "select": "poll epoll kqueue",
}
_OF_UNIX["_signal"] = _OF_UNIX["signal"]
#: And for Linux alone.
_OF_LINUX = {
    "os": """sched_getaffinity sched_setaffinity copy_file_range splice memfd_create eventfd getrandom
        posix_fallocate posix_fadvise O_TMPFILE O_PATH""",
    "mmap": "MADV_HUGEPAGE MADV_NOHUGEPAGE MAP_POPULATE",
    "select": "epoll",
}


class _Other(types.ModuleType):
    """A module of this system, with other `values`, and without the `hidden` ones."""

    def __init__(self, name: str, hidden: str, values: dict[str, Any]) -> None:
        super().__init__(name)
        self.real, self.hidden = importlib.import_module(name), frozenset(hidden.split())
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        if name in self.hidden:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self.real, name)


class _WindowsMap(mmap.mmap):
    """Memory that has no flags and takes no advice."""

    def __new__(cls, fileno: int, length: int, tagname: None = None, access: int = 0, offset: int = 0) -> Any:
        return mmap.mmap.__new__(cls, fileno, length, access=access or mmap.ACCESS_DEFAULT, offset=offset)

    madvise = property()


def become(system: str, windows_functions: str) -> set[str]:
    """The modules that lazygrad asks for and that are others there, as they are asked for.

    windows_functions  a library of those functions of Windows that it calls
    """
    windows = system == "win32"
    values: dict[str, dict[str, Any]] = {"sys": {"platform": system}}
    if windows:
        functions = ctypes.CDLL(windows_functions, mode=ctypes.RTLD_GLOBAL)

        class Library(ctypes.CDLL):
            def __init__(self, name: str | None, *args: Any, **kwargs: Any) -> None:
                if name is None:
                    raise TypeError("there is no library of the whole process")
                super().__init__(windows_functions if name == "ucrtbase" else name, *args, **kwargs)

        values["ctypes"] = {"CDLL": Library, "WinDLL": {"kernel32": functions}.__getitem__}
        values["mmap"] = {"mmap": _WindowsMap}
        values["platform"] = {"system": lambda: "Windows", "machine": lambda: "AMD64"}
    else:
        values["platform"] = {"system": lambda: "Darwin", "machine": platform.machine}
    hidden = _OF_UNIX if windows else _OF_LINUX
    others: dict[str, Any] = {
        name: _Other(name, hidden.get(name, ""), values.get(name, {})) for name in {*values, *hidden}
    }
    if windows:
        others["msvcrt"] = types.ModuleType("msvcrt")
    asked: set[str] = set()
    really = builtins.__import__

    def an_import(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if level == 0 and (globals or {}).get("__name__", "").partition(".")[0] == "lazygrad":
            if windows and name.partition(".")[0] in _MODULES_OF_UNIX:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in others:
                asked.add(name)
                return others[name]
        return really(name, globals, locals, fromlist, level)

    builtins.__import__ = an_import
    return asked
