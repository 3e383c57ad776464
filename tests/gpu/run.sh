#!/usr/bin/env bash
# The GPU path on a machine that has one: builds the float16 graph, audits its placement, prints pass costs, time to
# command and the peers' figures. One command, under five minutes: tests/gpu/run.sh [cuda|tensorrt|nv_tensorrt_rtx|…]
# Not part of CI. Nothing here may be called done because it printed something: read the placement line first.
set -euo pipefail
cd "$(dirname "$0")/../.."
provider=${1:-cuda}
extra=$(case $provider in cuda | tensorrt) echo gpu ;; nv_tensorrt_rtx) echo tensorrt-rtx ;; *) echo "$provider" ;; esac)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

step "install"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet -e ".[$extra,models]" pytest pytest-timeout hypothesis
edgeguard="$work/venv/bin/edgeguard"

step "what is usable here"
"$edgeguard" providers

step "the graph that $provider runs, from the same source"
"$edgeguard" model build smollm2-135m --for "$provider"
"$edgeguard" init "$work/robot.toml"
sed -i "s/^provider = .*/provider = \"$provider\"/" "$work/robot.toml"
"$edgeguard" check "$work/robot.toml" --prompt

step "contract tests: what opens, what is refused"
"$work/venv/bin/python" -m pytest -q -p no:cacheprovider tests/test_engine_session.py

step "where one request's time goes"
"$edgeguard" bench --breakdown "$work/robot.toml"

step "the same with every pass size captured as a CUDA graph"
if [ "$provider" != tensorrt ]; then
  sed 's/^provider = .*/&\nprovider_options = { enable_cuda_graph = "1" }/' "$work/robot.toml" >"$work/graphs.toml"
  "$edgeguard" bench --breakdown "$work/graphs.toml" || echo "graphs: not on this machine"
fi

step "calibrated, at the robot's period"
"$edgeguard" calibrate "$work/robot.toml" --quick --limit 1 --out "$work/robot.profile.json" || echo "exit code $?"

step "beside the peers"
"$work/venv/bin/pip" install --quiet onnxruntime-genai-cuda || echo "no onnxruntime-genai for this machine"
"$work/venv/bin/python" calibration/compare_peers.py --provider "$provider" --requests 20
