"""Transfer hosts in an emulated network: agents, a daemon, limits of processors and disks, and transfers by iperf3, scp and GridFTP.

Every limit is real: processors by the quota of a control group, disks by a loop device with synchronous writes whose rate a control group
limits, windows by the sysctls of the host, the path by the emulator.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self

PREFIX = "cf-"
CGROUPS = Path("/sys/fs/cgroup")
ETC = Path("/etc/netns")
"""`ip netns exec` puts the files of the namespace's directory here over those of /etc."""

SECRET = "0123456789abcdef0123456789abcdef"
IPERF3_PORT, SSH_PORT, GRIDFTP_PORT = 5201, 2222, 2811
PERIOD_US = 10_000
"""Period of processor quotas. Short ones limit a transfer evenly."""


@dataclass(frozen=True)
class Limits:
    """What a host has less of. None: no limit.

    Attributes:
        cpu: Share of a processor, for all processes of the host together; at least a tenth, because no quota is below 1 ms.
        disk_write_bps, disk_read_bps: Rate of the disk of the data, in bit/s.
        send_buffer, receive_buffer: Largest TCP buffers, in bytes.
        load: Processes that compute all the time on the host, within its quota.
    """

    cpu: float | None = None
    disk_write_bps: int | None = None
    disk_read_bps: int | None = None
    send_buffer: int | None = None
    receive_buffer: int | None = None
    load: int = 0


@dataclass(frozen=True)
class Host:
    """A host of the lab."""

    number: int

    @property
    def name(self) -> str:
        """Returns its name."""
        return f"h{self.number}"

    @property
    def address(self) -> str:
        """Returns its address."""
        return f"10.0.0.{self.number + 1}"

    @property
    def namespace(self) -> str:
        """Returns its network namespace."""
        return f"{PREFIX}{self.name}"


@dataclass
class Lab:
    """The network, the daemon and the agents, as long as the block lasts.

    Attributes:
        thalweg: The program.
        network: File with the emulated network.
        folder: Directory for logs, disks and the store.
        hosts: Hosts that transfer.
        daemon: Host of the daemon.
        buffer: TCP buffers of all hosts, in bytes.
        tcp: Congestion control.
    """

    thalweg: str
    network: Path
    folder: Path
    hosts: Sequence[Host]
    daemon: Host
    buffer: int
    tcp: str = "htcp"
    disk_mib: int = 600
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ["--wait", "real-time", "--overhead", "1ms", "--tcp", self.tcp, "--output", str(self.folder)]
        self.lab("up", "--emulate", str(self.network), *options)
        try:
            # The arbiter has the last processor. What this program starts leaves it alone.
            processors = os.sched_getaffinity(0)
            os.sched_setaffinity(0, processors - {max(processors)} or processors)
            for host in self.hosts:
                self.prepare(host)
                self.limit(host, Limits())
            self.start_daemon()
            for host in self.hosts:
                self.start_agent(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        for host in self.hosts:
            subprocess.run(["umount", str(self.disk(host))], capture_output=True, check=False)
            shutil.rmtree(ETC / host.namespace, ignore_errors=True)
            for controller in ("cpu", "blkio"):
                group = self.group(host, controller)
                if group.exists():
                    for pid in (group / "tasks").read_text().split():
                        (CGROUPS / controller / "tasks").write_text(pid)
                    group.rmdir()
        self.lab("down")

    def lab(self, command: str, *options: str) -> str:
        """Run a command about the lab, and return its output."""
        return self.run([self.thalweg, "lab", command, *options, "--prefix", PREFIX])

    @staticmethod
    def run(words: Sequence[str], **options: object) -> str:
        """Run a command, and end the program if it fails."""
        done = subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr.strip()} {done.stdout.strip()}")
        return str(done.stdout)

    def report(self) -> dict[str, object]:
        """Return the counters of the arbiter so far: slots, and late ones."""
        live = json.loads(self.lab("status", "--json"))["arbiters"][0]["live"]
        return {key: live[key] for key in ("slots", "late_slots", "skipped_slots")}

    # Hosts.

    def home(self, host: Host) -> Path:
        """Return the directory of a host's logs."""
        return self.folder / host.name

    def disk(self, host: Host) -> Path:
        """Return the mount point of a host's disk."""
        return self.home(host) / "disk"

    @staticmethod
    def group(host: Host, controller: str) -> Path:
        """Return a host's control group."""
        return CGROUPS / controller / f"{PREFIX}{host.name}"

    def inside(self, host: Host, words: Sequence[str]) -> list[str]:
        """Return a command that runs on a host, within its control groups."""
        groups = " ".join(f"echo $$ > {self.group(host, controller)}/tasks;" for controller in ("cpu", "blkio"))
        # The namespace has a /sys of its own, without control groups.
        return ["sh", "-c", f'{groups} exec ip netns exec {host.namespace} "$@"', "sh", *words]

    def start(self, host: Host, words: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        """Start a program on a host. Its output goes to a file."""
        with (self.home(host) / log).open("ab") as output:
            process = subprocess.Popen(self.inside(host, words), stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        return process

    def prepare(self, host: Host) -> None:
        """Create a host's directories, control groups and disk."""
        self.disk(host).mkdir(parents=True, exist_ok=True)
        # The GridFTP server looks up names, and would wait for a name server.
        etc = ETC / host.namespace
        etc.mkdir(parents=True, exist_ok=True)
        (etc / "nsswitch.conf").write_text("hosts: files\npasswd: files\ngroup: files\n")
        names = f"127.0.0.1 localhost\n{host.address} {os.uname().nodename}\n"
        (etc / "hosts").write_text(names + "".join(f"{other.address} {other.name}\n" for other in self.hosts))
        for controller in ("cpu", "blkio"):
            self.group(host, controller).mkdir(exist_ok=True)
        image = self.home(host) / "disk.img"
        image.unlink(missing_ok=True)
        with image.open("wb") as file:
            file.truncate(self.disk_mib << 20)
        self.run(["mkfs.ext4", "-q", "-F", str(image)])
        self.run(["mount", "-o", "loop", str(image), str(self.disk(host))])
        # The GridFTP server does not run as root.
        self.disk(host).chmod(0o1777)

    def device(self, host: Host) -> str:
        """Return the numbers of a host's disk."""
        number = self.disk(host).stat().st_dev
        return f"{os.major(number)}:{os.minor(number)}"

    def limit(self, host: Host, limits: Limits) -> None:
        """Set the limits of a host. Those that are not given are lifted."""
        quota = -1 if limits.cpu is None else max(1_000, round(PERIOD_US * limits.cpu))
        cpu, blkio = self.group(host, "cpu"), self.group(host, "blkio")
        (cpu / "cpu.cfs_quota_us").write_text("-1")
        (cpu / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (cpu / "cpu.cfs_quota_us").write_text(str(quota))
        for name, rate in (("write", limits.disk_write_bps), ("read", limits.disk_read_bps)):
            (blkio / f"blkio.throttle.{name}_bps_device").write_text(f"{self.device(host)} {(rate or 0) // 8}")
        # Buffered writes are not limited by a control group of version 1: a limited disk writes at once.
        how = "sync" if limits.disk_write_bps is not None else "async"
        self.run(["mount", "-o", f"remount,{how}", str(self.disk(host))])
        for name, size in (("wmem", limits.send_buffer), ("rmem", limits.receive_buffer)):
            largest = size or self.buffer
            values = f"4096 {min(131072, largest)} {largest}"
            self.run(["ip", "netns", "exec", host.namespace, "sysctl", "-q", "-w", f"net.ipv4.tcp_{name}={values}"])

    # Daemon and agents.

    def start_daemon(self) -> None:
        """Start the daemon on its host, and wait until it answers."""
        home = self.home(self.daemon)
        home.mkdir(parents=True, exist_ok=True)
        tokens = home / "tokens"
        tokens.write_text("".join(f"{host.name} report {SECRET}-{host.name}\n" for host in self.hosts))
        tokens.chmod(0o600)
        store = self.folder / "store"
        store.mkdir(exist_ok=True)
        (home / "thalweg.toml").write_text(
            f'[api]\nlisten = "{self.daemon.address}:9477"\ntoken_file = "tokens"\n[process]\nuser = "root"\n'
            f'[records]\nfolder = "{store}"\n[transfers]\nreceive = true\n'
        )
        with (home / "serve.log").open("ab") as log:
            words = ["ip", "netns", "exec", self.daemon.namespace, self.thalweg, "serve", "-c", str(home / "thalweg.toml")]
            self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log))

    def start_agent(self, host: Host) -> None:
        """Start the agent of a host. It is not limited as the host's transfers are."""
        home = self.home(host)
        token = home / "token"
        token.write_text(f"{SECRET}-{host.name}\n")
        token.chmod(0o600)
        (home / "agent.toml").write_text(
            f'[agent]\nhost = "{host.name}"\napi = "http://{self.daemon.address}:9477"\ntoken_file = "token"\nqueue = "queue"\n'
            f'names = "clear"\ndata_directory = "{self.disk(host)}"\n'
            '[[log]]\npath = "client.json"\nformat = "iperf3"\nfrom_start = true\n'
            '[[log]]\npath = "server.json"\nformat = "iperf3"\nfrom_start = true\n'
            '[[log]]\npath = "scp.log"\nformat = "openssh"\nfrom_start = true\n'
            '[[log]]\npath = "gridftp.log"\nformat = "gridftp"\nfrom_start = true\n'
        )
        with (home / "agent.log").open("ab") as log:
            words = ["ip", "netns", "exec", host.namespace, self.thalweg, "transfers", "agent", "-c", str(home / "agent.toml")]
            self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log))

    # Transfers.

    def load(self, host: Host, count: int) -> list[subprocess.Popen[bytes]]:
        """Start processes that compute on a host."""
        words = self.inside(host, ["sh", "-c", "while :; do :; done"])
        return [subprocess.Popen(words, stdin=subprocess.DEVNULL) for _ in range(count)]

    def file(self, host: Host, size: int) -> Path:
        """Create a file of random bytes on the disk of a host, if it has none of this size, and return it."""
        path = self.disk(host) / f"data-{size}"
        if not path.exists():
            block = os.urandom(1 << 20)
            with path.open("wb") as file:
                for _ in range(size >> 20):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
        return path

    def files(self, src: Host, dst: Host, size: int) -> tuple[Path, Path]:
        """Return the files of a transfer. That of the sender is on its disk only, not in memory."""
        source, target = self.file(src, size), self.disk(dst) / "received"
        target.unlink(missing_ok=True)
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1")
        return source, target

    def iperf3(self, src: Host, dst: Host, size: int, streams: int, options: Sequence[str] = ()) -> float:
        """Send a file by iperf3 to a file. Return the throughput in bit/s, by the receiver."""
        port = IPERF3_PORT
        source, target = self.files(src, dst, size)
        server_log, client_log = self.home(dst) / "server.json", self.home(src) / "client.json"
        server = self.start(dst, ["iperf3", "-s", "-1", "-J", "--logfile", str(server_log), "-F", str(target), "-p", str(port)], "iperf3.log")
        self.wait_listening(dst, port)
        words = ["iperf3", "-c", dst.address, "-p", str(port), "-J", "--logfile", str(client_log), "-F", str(source), "-n", str(size), "-P", str(streams), *options]
        before = client_log.stat().st_size if client_log.exists() else 0
        client = self.start(src, words, "iperf3.log")
        done = client.wait(600)
        with client_log.open() as file:
            file.seek(before)
            found = json.load(file)
        # With JSON, iperf3 ends without an error even if it could not connect.
        if done != 0 or "error" in found or server.wait(120) != 0:
            sys.exit(f"iperf3 failed: {found.get('error', '')}; see {client_log} and {server_log}")
        return float(found["end"]["sum_received"]["bits_per_second"])

    def wait_listening(self, host: Host, port: int) -> None:
        """Wait until a server listens on a port of a host."""
        words = ["ip", "netns", "exec", host.namespace, "ss", "-Hltn", f"sport = :{port}"]
        for _ in range(600):
            if self.run(words):
                return
            time.sleep(0.05)
        sys.exit(f"{host.name}: nothing listens on port {port} after 30 s")

    def start_servers(self, host: Host) -> None:
        """Start the servers of scp and GridFTP on a host."""
        home = self.home(host)
        for key in ("host_key", "client_key"):
            if not (home / key).exists():
                self.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / key)])
        (home / "sshd_config").write_text(
            f"Port {SSH_PORT}\nListenAddress {host.address}\nHostKey {home / 'host_key'}\nPidFile {home / 'sshd.pid'}\n"
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}\nStrictModes no\nPermitRootLogin yes\n"
            "Subsystem sftp internal-sftp\nUsePAM no\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        keys = [self.home(other) / "client_key.pub" for other in self.hosts]
        (self.folder / "authorized_keys").write_text("".join(key.read_text() for key in keys if key.exists()))
        self.processes.append(self.start(host, ["/usr/sbin/sshd", "-D", "-e", "-f", str(home / "sshd_config")], "sshd.log"))
        words = ["globus-gridftp-server", "-aa", "-anonymous-user", "nobody", "-p", str(GRIDFTP_PORT), "-data-interface", host.address]
        words += ["-log-transfer", str(home / "gridftp.log"), "-log-level", "ERROR,WARN", "-no-detach"]
        self.processes.append(self.start(host, words, "gridftp-server.log"))
        for port in (SSH_PORT, GRIDFTP_PORT):
            self.wait_listening(host, port)

    def scp(self, src: Host, dst: Host, size: int) -> float:
        """Copy a file by scp. Return the throughput in bit/s."""
        source, target = self.files(src, dst, size)
        words = ["scp", "-v", "-P", str(SSH_PORT), "-i", str(self.home(src) / "client_key"), "-o", "StrictHostKeyChecking=no"]
        words += ["-o", "UserKnownHostsFile=/dev/null", str(source), f"root@{dst.address}:{target}"]
        # Its messages have no times.
        words = ["bash", "-o", "pipefail", "-c", "\"$@\" 2>&1 | ts '%Y-%m-%dT%H:%M:%.S%z'", "bash", *words]
        start = time.monotonic()
        if self.start(src, words, "scp.log").wait(600) != 0:
            sys.exit(f"scp failed: see {self.home(src) / 'scp.log'}")
        return 8 * size / (time.monotonic() - start)

    def gridftp(self, src: Host, dst: Host, size: int, streams: int) -> float:
        """Copy a file by GridFTP. Return the throughput in bit/s, by the log of the server."""
        source, target = self.files(src, dst, size)
        words = ["globus-url-copy", "-p", str(streams), f"file://{source}", f"ftp://{dst.address}:{GRIDFTP_PORT}{target}"]
        if self.start(src, words, "gridftp-client.log").wait(600) != 0:
            sys.exit(f"globus-url-copy failed: see {self.home(src) / 'gridftp-client.log'}")
        entry = dict(word.split("=", 1) for word in (self.home(dst) / "gridftp.log").read_text().splitlines()[-1].split() if "=" in word)
        start, end = (datetime.strptime(entry[name], "%Y%m%d%H%M%S.%f") for name in ("START", "DATE"))
        return 8 * size / (end - start).total_seconds()

