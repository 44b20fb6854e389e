"""Create the server's files, and start it as the right user."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lcmsite.embedded_postgres.account import Account
from lcmsite.embedded_postgres.binaries import Binaries, choose, make_reachable
from lcmsite.embedded_postgres.location import (
    DATABASE,
    PORT,
    REFUGE,
    ROLE,
    EmbeddedPostgresError,
    Location,
    make_directory,
)

# PostgreSQL logs only its own state. Errors go only to the client: their texts, details and statements could
# quote messages.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "jit": "off",
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
    "log_error_verbosity": "terse",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_timezone": "UTC",
}

# For tests, whose data need not survive a power failure. Autovacuum is off: it does not see uncommitted rows, and
# would record tables as empty, which leads to bad query plans.
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}

PR_SET_PDEATHSIG = 1

# shared_buffers gets this part (1/n) of the memory, within bounds in MB: the rest of LCM runs on the same machine.
_PART_OF_MEMORY = 8
_LEAST_BUFFERS, _MOST_BUFFERS = 128, 1024

# The memory limit of a container, in version 2 and 1 of cgroups.
_MEMORY_BOUNDS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Cluster:
    """One server's files, its programs, and the user it runs as."""

    location: Location
    account: Account
    binaries: Binaries
    durable: bool = True

    @classmethod
    def prepare(cls, location: Location, *, durable: bool = True, refuge: Path = REFUGE) -> "Cluster":
        """Find or create everything that the server needs to start."""
        account = Account.of_server(location.cluster)
        _make_home(location, account=account, refuge=refuge)
        version = location.cluster / "PG_VERSION"
        binaries = choose(major=int(version.read_text()) if version.exists() else None)
        cluster = cls(
            location=location,
            account=account,
            binaries=make_reachable(binaries, account=account, beside=location.server.resolve()),
            durable=durable,
        )
        if not version.exists():
            cluster._create()
        elif account.is_another and location.cluster.stat().st_uid != account.uid:
            account.take_ownership(location.cluster)
        cluster._write_access_files()
        cluster._make_socket_directory()
        return cluster

    def start(self, *, lock: int) -> "subprocess.Popen[bytes]":
        """Start the server; its processes inherit the lock and hold it while they run."""
        # This process holds the lock, so the server that wrote these files has ended. PostgreSQL would still trust them
        # if the process id in them now belongs to another process or to a zombie.
        for stale in (self.location.cluster / "postmaster.pid", *self.location.socket_dir.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)
        settings = SETTINGS | ({} if self.durable else CARELESS) | {"shared_buffers": shared_buffers(usable_memory())}
        command = [self.binaries.program("postgres"), "-D", str(self.location.cluster.resolve()), "-p", str(PORT)]
        # Quote the path as one entry of PostgreSQL's list of directories.
        socket_dir = str(self.location.socket_dir.resolve()).replace('"', '""')
        command += ["-k", f'"{socket_dir}"']
        for name, value in (settings | self._access_files).items():
            command += ["-c", f"{name}={value}"]
        return subprocess.Popen(
            command,
            cwd="/",
            env=_environment(),
            stdin=subprocess.DEVNULL,
            pass_fds=[lock],
            # A session of its own: Ctrl-C reaches only LCM, which stops the server when the last lease ends.
            start_new_session=True,
            preexec_fn=_stop_with_parent,
            **self.account.process_arguments(),
        )

    def remove_socket_directory(self) -> None:
        """Remove the socket directory outside the data directory, if there is one."""
        if self.location.socket_dir.parent != self.location.server:
            shutil.rmtree(self.location.socket_dir, ignore_errors=True)

    def _create(self) -> None:
        """Create the cluster under a temporary name; rename it once complete."""
        fresh = self.location.server.resolve() / "cluster.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self.account.take_ownership(fresh)
        if self.binaries.major >= 17:
            locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        else:
            locale = ["--locale-provider=libc", "--locale=C.UTF-8"]
        speed = [] if self.durable else ["--no-sync"]
        self._run("initdb", "-D", str(fresh), f"--username={ROLE}", "--encoding=UTF8", "--auth=peer", *locale, *speed)
        self._run("postgres", "--single", "-D", str(fresh), "postgres", input=f"CREATE DATABASE {DATABASE}\n")
        fresh.rename(self.location.cluster.resolve())

    def _run(self, program: str, *arguments: str, input: str = "") -> None:
        done = subprocess.run(
            [self.binaries.program(program), *arguments],
            cwd="/",
            env=_environment(),
            input=input,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            **self.account.process_arguments(),
        )
        if done.returncode != 0:
            raise EmbeddedPostgresError(f"{program} failed:\n{done.stdout.strip()}")

    def _write_access_files(self) -> None:
        """Allow connections by root and LCM's user, with peer authentication.

        If root runs LCM, the unprivileged user of the server is not allowed: other services may run as that user.
        """
        names = ["root"] if self.account.is_another else dict.fromkeys(("root", self.account.name))
        texts = ("local all all peer map=lcm\n", "".join(f'lcm "{name}" {ROLE}\n' for name in names))
        for file, text in zip(self._access_files.values(), texts, strict=True):
            file.write_text(text)
            file.chmod(0o644)

    @property
    def _access_files(self) -> dict[str, Path]:
        server = self.location.server.resolve()
        return {"hba_file": server / "pg_hba.conf", "ident_file": server / "pg_ident.conf"}

    def _make_socket_directory(self) -> None:
        directory = self.location.socket_dir
        try:
            directory.mkdir(mode=0o700)
            self.account.take_ownership(directory)
        except FileExistsError:
            # In a shared directory such as /tmp, another user may have created it, to intercept connections.
            found = directory.lstat()
            if directory.is_symlink() or found.st_uid != self.account.uid or found.st_mode & 0o077:
                raise EmbeddedPostgresError(
                    f"{directory} is not a private directory of {self.account.name}: remove it."
                ) from None


def _make_home(location: Location, *, account: Account, refuge: Path) -> None:
    """Create the server's directory, or link to `refuge` if the server cannot enter."""
    server = location.server
    if not server.is_symlink() and not server.exists():
        if account.can_enter(location.home):
            make_directory(server)
        else:
            elsewhere = refuge / location.digest
            make_directory(elsewhere)
            server.symlink_to(elsewhere)
    if not account.can_enter(server.resolve()):
        raise EmbeddedPostgresError(
            f"The user {account.name}, as whom PostgreSQL runs, cannot enter {server.resolve()}:"
            " open the directories above it (chmod o+x), or set LCM_DATA_DIR to another place."
        )


def _environment() -> dict[str, str]:
    """Return the environment without LCM's, PostgreSQL's and locale variables."""
    foreign = ("PG", "LCM_", "LC_", "LANG", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | {"LC_ALL": "C"}


def _stop_with_parent() -> None:
    """Ask Linux to send the server SIGINT (a fast shutdown) if its keeper dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def shared_buffers(memory: int) -> str:
    """Return the value of `shared_buffers` for a machine with this much memory."""
    return f"{min(_MOST_BUFFERS, max(_LEAST_BUFFERS, memory // _PART_OF_MEMORY // 2**20))}MB"


def usable_memory(bounds: tuple[Path, ...] = _MEMORY_BOUNDS) -> int:
    """Return the bytes of memory of this machine, or of its container's limit."""
    bounds_found = [file.read_text().strip() for file in bounds if file.is_file()]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(int(bound) for bound in bounds_found if bound.isdecimal())])
