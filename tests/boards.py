"""Trees of boards, made from the formats that the kernel and the boards' makers document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_THERMAL = "sys/class/thermal"
_HWMON = "sys/class/hwmon"
_CPUFREQ = "sys/devices/system/cpu/cpufreq"


def zone(number: int, kind: str, temp: str, **trips: tuple[str, str]) -> dict[str, str]:
    """A thermal zone; ``t0=("passive", "99000")`` is its trip point 0."""
    folder = f"{_THERMAL}/thermal_zone{number}"
    files = {f"{folder}/type": f"{kind}\n", f"{folder}/temp": f"{temp}\n"}
    for name, (trip, value) in trips.items():
        files[f"{folder}/trip_point_{name[1:]}_type"] = f"{trip}\n"
        files[f"{folder}/trip_point_{name[1:]}_temp"] = f"{value}\n"
    return files


def cooling(number: int, kind: str, state: str) -> dict[str, str]:
    folder = f"{_THERMAL}/cooling_device{number}"
    return {f"{folder}/type": f"{kind}\n", f"{folder}/cur_state": f"{state}\n", f"{folder}/max_state": "3\n"}


def hwmon(number: int, name: str, **files: str) -> dict[str, str]:
    folder = f"{_HWMON}/hwmon{number}"
    return {f"{folder}/name": f"{name}\n", **{f"{folder}/{file}": f"{text}\n" for file, text in files.items()}}


def policy(number: int, current: str, cap: str, most: str) -> dict[str, str]:
    folder = f"{_CPUFREQ}/policy{number}"
    return {
        f"{folder}/scaling_cur_freq": f"{current}\n",
        f"{folder}/scaling_max_freq": f"{cap}\n",
        f"{folder}/cpuinfo_max_freq": f"{most}\n",
    }


def devfreq(name: str, current: str, cap: str) -> dict[str, str]:
    folder = f"sys/class/devfreq/{name}"
    return {f"{folder}/cur_freq": f"{current}\n", f"{folder}/max_freq": f"{cap}\n"}


def _throttle(core: int, count: str, total_ms: str) -> dict[str, str]:
    folder = f"sys/devices/system/cpu/cpu{core}/thermal_throttle"
    files = {}
    for part in ("core", "package"):
        files[f"{folder}/{part}_throttle_count"] = f"{count}\n"
        files[f"{folder}/{part}_throttle_total_time_ms"] = f"{total_ms}\n"
        files[f"{folder}/{part}_throttle_max_time_ms"] = "12\n"
    return files


GENERIC = {
    **zone(0, "cpu-thermal", "48500", t0=("passive", "85000"), t1=("critical", "105000")),
    **zone(1, "battery", "30000"),
    **cooling(0, "thermal-cpufreq-0", "0"),
    **cooling(1, "pwm-fan", "2"),
    **policy(0, "1200000", "1800000", "1800000"),
    **devfreq("ff9a0000.gpu", "400000000", "800000000"),
}
INTEL = {
    **zone(0, "acpitz", "27800"),
    **zone(1, "x86_pkg_temp", "61000", t0=("passive", "0"), t1=("passive", "-274000")),
    **zone(2, "iwlwifi_1", "49000"),
    **zone(3, "INT3400 Thermal", "20000"),
    **cooling(0, "Processor", "0"),
    **cooling(1, "intel_powerclamp", "-1"),
    **cooling(2, "Fan", "1"),
    **hwmon(0, "coretemp", temp1_input="61000", temp1_label="Package id 0", temp1_max="100000", temp1_crit="100000"),
    **policy(0, "3100000", "3400000", "3400000"),
    **policy(1, "3100000", "3400000", "3400000"),
    **_throttle(0, "0", "0"),
    **_throttle(1, "7", "31"),
    "sys/firmware/acpi/platform_profile": "balanced\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
}
PI4 = {
    **zone(0, "cpu-thermal", "55504", t0=("critical", "110000")),
    **hwmon(0, "cpu_thermal", temp1_input="55504"),
    **hwmon(1, "rpi_volt", in0_lcrit_alarm="0"),
    **policy(0, "1500000", "1500000", "1500000"),
    "sys/devices/platform/soc/soc:firmware/get_throttled": "0\n",
}
PI5 = {
    **zone(0, "cpu-thermal", "60250", t0=("critical", "110000")),
    **policy(0, "2400000", "2400000", "2400000"),
    "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled": "0\n",
}
ORIN = {
    **zone(0, "cpu-thermal", "52468", t0=("passive", "99000"), t1=("critical", "104500"), t2=("passive", "70000")),
    **zone(1, "gpu-thermal", "50250", t0=("passive", "99000"), t1=("critical", "104500")),
    **zone(2, "PMIC-Die", "100000", t0=("critical", "120000")),
    **cooling(0, "pwm-fan", "1"),
    **cooling(1, "hot-surface-alert", "0"),
    **cooling(2, "cpu-throttle-alert", "0"),
    **cooling(3, "cpufreq-cpu0", "0"),
    **cooling(4, "devfreq-17000000.gpu", "0"),
    **hwmon(0, "soctherm_oc", oc1_event_cnt="0", oc2_event_cnt="0", oc3_event_cnt="4"),
    **hwmon(
        1, "ina3221", in1_label="VDD_IN", in1_input="5000", curr1_input="1800",
        in2_label="VDD_CPU_GPU_CV", in2_input="5000", curr2_input="640", curr4_input="9",
    ),
    **policy(0, "1510400", "1510400", "1510400"),
    **policy(4, "1510400", "1510400", "1510400"),
    **devfreq("17000000.gpu", "306000000", "624750000"),
    "var/lib/nvpmodel/status": "pmode:0001 fmode:quiet\n",
    "etc/nvpmodel.conf": "< POWER_MODEL ID=0 NAME=MAXN >\nCPU_ONLINE CORE_1 1\n< POWER_MODEL ID=1 NAME=15W >\n",
    "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
}  # fmt: skip
RK3588 = {
    **zone(0, "soc-thermal", "43461", t0=("passive", "75000"), t1=("passive", "85000"), t2=("critical", "115000")),
    **zone(1, "npu-thermal", "42538"),
    **cooling(0, "thermal-devfreq-0", "0"),
    **policy(0, "1800000", "1800000", "1800000"),
    **policy(4, "2400000", "2400000", "2400000"),
    **devfreq("fdab0000.npu", "1000000000", "1000000000"),
    **devfreq("dmc", "2112000000", "2112000000"),
}
AMD = {
    **hwmon(0, "k10temp", temp1_input="44375", temp1_label="Tctl", temp1_crit="95000"),
    **hwmon(1, "nvme", temp1_input="38850"),
    **policy(0, "3000000", "4700000", "4700000"),
    "sys/devices/system/cpu/cpufreq/boost": "0\n",
}

BOARDS: Mapping[str, Mapping[str, str]] = {
    "generic": GENERIC,
    "Intel": INTEL,
    "Raspberry Pi 4": PI4,
    "Raspberry Pi 5": PI5,
    "Jetson Orin": ORIN,
    "RK3588": RK3588,
    "AMD": AMD,
}


def make_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write ``files`` below ``root``; a Jetson's passive trip point 2 is bound to its hot-surface-alert only."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    if files is ORIN:
        bind(root, zone_number=0, link=0, device=1, trip=2)
        bind(root, zone_number=0, link=1, device=2, trip=0)
    return root


def bind(root: Path, *, zone_number: int, link: int, device: int, trip: int) -> None:
    """Bind a cooling device to a zone's trip point, as the kernel shows it."""
    folder = root / _THERMAL / f"thermal_zone{zone_number}"
    (folder / f"cdev{link}").symlink_to(f"../cooling_device{device}")
    (folder / f"cdev{link}_trip_point").write_text(f"{trip}\n")
