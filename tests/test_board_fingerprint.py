"""What a machine is, read from made trees: a PC, a Raspberry Pi, a container, and ruins."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import AMD, INTEL, ORIN, RK3588, make_tree

from edgeguard.board import UNKNOWN, read_fingerprint

PC = {
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) N100\n\nprocessor\t: 1\n"
    "model name\t: Intel(R) N100\n",
    "proc/meminfo": "MemTotal:       16146052 kB\nMemFree:  1 kB\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/self/cgroup": "0::/robot.slice/guard.service\n",
    "sys/class/dmi/id/sys_vendor": "ACME\n",
    "sys/class/dmi/id/product_name": "Mini 3\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "3400000\n",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq": "3400000\n",
}
PI = {
    "proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n\nModel\t\t: Raspberry Pi 5\n",
    "proc/meminfo": "MemTotal:        8245264 kB\n",
    "proc/sys/kernel/osrelease": "6.6.31+rpt-rpi-2712\n",
    "proc/device-tree/model": "Raspberry Pi 5 Model B Rev 1.0\0",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "ondemand\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "2400000\n",
}


def _read(root: Path) -> dict[str, str]:
    return read_fingerprint(root=root, affinity=range(4), architecture="aarch64")


def test_a_pc(tmp_path: Path) -> None:
    assert _read(make_tree(tmp_path, PC)) == {
        "machine": "ACME Mini 3",
        "architecture": "aarch64",
        "cpu model": "Intel(R) N100",
        "cores": "4",
        "cpu quota": "none",
        "memory": "15.4 GiB",
        "kernel": "6.1.0-18-amd64",
        "governor": "performance",
        "power mode": "unknown",
        "clock cap": "cpu 3400 MHz",
    }


def test_a_board_with_a_devicemake_tree(tmp_path: Path) -> None:
    found = _read(make_tree(tmp_path, PI))
    assert found["machine"] == "Raspberry Pi 5 Model B Rev 1.0"
    assert found["cpu model"] == "implementer 0x41, part 0xd0b"
    assert found["memory"] == "7.9 GiB"
    assert found["governor"] == "ondemand"


def test_cores_of_two_kinds_are_both_named(tmp_path: Path) -> None:
    little = "sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq"
    assert _read(make_tree(tmp_path, {**PI, little: "1800000"}))["clock cap"] == "cpu 1800+2400 MHz"


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"sys/fs/cgroup/robot.slice/guard.service/cpu.max": "150000 100000\n"}, "1.50 cores"),
        ({"sys/fs/cgroup/robot.slice/cpu.max": "50000 100000\n"}, "0.50 cores"),
        (
            {"sys/fs/cgroup/robot.slice/guard.service/cpu.max": "2000 1000", "sys/fs/cgroup/cpu.max": "900 1000"},
            "0.90 cores",
        ),
        ({"sys/fs/cgroup/robot.slice/guard.service/cpu.max": "max 100000\n"}, "none"),
        ({"sys/fs/cgroup/robot.slice/guard.service/cpu.max": "garbage"}, "none"),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n1:cpu,cpuacct:/box\n",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            "2.00 cores",
        ),
    ],
)  # fmt: skip
def test_the_least_quota_of_all_control_groups_above_us_counts(
    tmp_path: Path, files: dict[str, str], quota: str
) -> None:
    assert _read(make_tree(tmp_path, {**PC, **files}))["cpu quota"] == quota


def test_nothing_to_read_is_unknown_and_no_error(tmp_path: Path) -> None:
    found = _read(tmp_path)
    assert found.pop("architecture") == "aarch64"
    assert found.pop("cores") == "4"
    assert found.pop("cpu quota") == "none"
    assert set(found.values()) == {UNKNOWN}


def test_garbage_is_unknown_and_no_error(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {
        "proc/cpuinfo": b"\xff\xfe\x00 no pairs here",
        "proc/meminfo": "MemTotal: lots\n",
        "proc/sys/kernel/osrelease": "",
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "<none>\n",
        "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "-1\n",
        "proc/self/cgroup": "::\n:::::\n0\n",
    })  # fmt: skip
    (root / "proc/device-tree/model").mkdir(parents=True)  # a folder where a file should be
    found = _read(root)
    names = ("cpu model", "memory", "kernel", "governor", "power mode", "clock cap", "machine")
    assert {found[name] for name in names} == {UNKNOWN}


@pytest.mark.parametrize(
    ("files", "mode", "cap"),
    [
        (ORIN, "15W", "cpu 1510.4 MHz, gpu 624.75 MHz"),
        ({**ORIN, "var/lib/nvpmodel/status": "pmode:0000\n"}, "MAXN", "cpu 1510.4 MHz, gpu 624.75 MHz"),
        ({**ORIN, "var/lib/nvpmodel/status": "pmode:0007\n"}, "nvpmodel 7", "cpu 1510.4 MHz, gpu 624.75 MHz"),
        ({**ORIN, "var/lib/nvpmodel/status": "mode?\n"}, UNKNOWN, "cpu 1510.4 MHz, gpu 624.75 MHz"),
        (INTEL, "balanced", "cpu 3400 MHz, turbo off"),
        (RK3588, UNKNOWN, "cpu 1800+2400 MHz, dmc 2112 MHz, npu 1000 MHz"),
        (AMD, UNKNOWN, "cpu 4700 MHz, turbo off"),
    ],
)
def test_the_power_mode_and_the_clock_cap(tmp_path: Path, files: dict[str, str], mode: str, cap: str) -> None:
    found = _read(make_tree(tmp_path, files))
    assert (found["power mode"], found["clock cap"]) == (mode, cap)


def test_a_control_group_outside_of_our_namespace_is_not_followed(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/../../../..\n", "../cpu.max": "1 1000", "sys/fs/cgroup/cpu.max": "900 1000"}
    assert _read(make_tree(tmp_path / "root", files))["cpu quota"] == "0.90 cores"


def test_this_machine_is_the_same_twice() -> None:
    assert read_fingerprint() == read_fingerprint()
    assert read_fingerprint()["kernel"] != UNKNOWN
