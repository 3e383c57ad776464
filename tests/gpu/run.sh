#!/usr/bin/env bash
# The GPU path on a machine that has one: builds the float16 graph, audits its placement, prints pass costs, time to
# command and the peers' figures. One command, under five minutes: tests/gpu/run.sh [cuda|tensorrt|nv_tensorrt_rtx|…]
# It needs NVIDIA's driver and a package index, no CUDA; PYTHON=python3.12 chooses the Python. A step that fails is said
# at the end, and the others are made. `tests/gpu/run.sh cpu` makes all of them where there is no GPU.
# Not part of CI. Nothing here may be called done because it printed something: read the placement line first.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
provider=${1:-cuda}
genai=onnxruntime-genai graphs=no
case $provider in
  cuda) extra=gpu genai=onnxruntime-genai-cuda graphs=yes ;;
  tensorrt) extra=gpu genai= ;; # onnxruntime-genai does not run on it
  nv_tensorrt_rtx) extra=tensorrt-rtx graphs=yes ;;
  *) extra=$provider ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
robot=$work/robot.toml
failed=()

# step WORDS COMMAND…: a command that hangs takes no more than two minutes.
step() {
  printf '\n== %s (%s s)\n' "$1" "$SECONDS"
  timeout -k 5 "${STEP_LIMIT:-120}" "${@:2}" || { echo "-- exit code $?"; failed+=("$1"); return 1; }
}

configure() {
  "$edgeguard" init "$robot" &&
    sed -i "s/^provider = .*/provider = \"$provider\"/" "$robot" && grep -q "^provider = \"$provider\"" "$robot" &&
    sed 's/^provider = .*/&\nprovider_options = { enable_cuda_graph = "1" }/' "$robot" >"$work/graphs.toml"
}

[ "$provider" = cpu ] || step "the driver" nvidia-smi || exit
step "an environment" "${PYTHON:-python3}" -m venv "$work/venv" || exit
python=$work/venv/bin/python edgeguard=$work/venv/bin/edgeguard
STEP_LIMIT=300 step "install" "$python" -m pip install -qq -e ".[$extra,models]" pytest pytest-timeout hypothesis \
  $genai || exit
if [ "$provider" = tensorrt ]; then
  number=$("$python" -c 'import onnxruntime; print(onnxruntime.cuda_version.partition(".")[0])')
  step "TensorRT" "$python" -m pip install -qq "tensorrt-cu$number==10.*"
  LD_LIBRARY_PATH=$("$python" -c 'import tensorrt_libs; print(*tensorrt_libs.__path__)')
  export LD_LIBRARY_PATH
fi
configure || exit

step "what is usable here" "$edgeguard" providers
step "is $provider usable" "$python" - "$provider" <<'END' || exit
import sys

from edgeguard.engine.probe import survey
from edgeguard.engine.providers import find_provider

(found,) = survey([find_provider(sys.argv[1])])
print("yes" if found.usable else f"no: {found.reason}; {found.remedy}")
sys.exit(not found.usable)
END

step "the graph that $provider runs, from the same source" \
  "$edgeguard" model build smollm2-135m --adapter smollm2-135m-operator --for "$provider"
step "what the prompt costs" "$edgeguard" check "$robot" --prompt
step "contract tests: what opens, what is refused" "$python" -m pytest -q -rs -p no:cacheprovider \
  tests/test_engine_session.py
step "where one request's time goes" "$edgeguard" bench --breakdown "$robot" --requests 30
[ $graphs = no ] || step "the same with every pass size captured as a CUDA graph" \
  "$edgeguard" bench --breakdown "$work/graphs.toml" --requests 30
step "calibrated, at the robot's period" \
  "$edgeguard" calibrate "$robot" --quick --limit 1 --out "$work/robot.profile.json"
[ -z "$genai" ] || step "beside the peers" "$python" calibration/compare_peers.py --provider "$provider" --requests 20

printf '\n== done (%s s)\n' "$SECONDS"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
