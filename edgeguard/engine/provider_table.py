"""The table of execution providers. A row is everything that a new one costs; the row's words are in ``provider``.

Options are those of the providers' own pages (onnxruntime.ai, "Execution Providers", 1.24 to 1.32, and NVIDIA's for its
plugin). Where ``verified`` is empty, a row has not been run on its hardware, and ``edgeguard providers`` says so. A
Rockchip's NPU has no row: no provider of ONNX Runtime runs it.
"""

from __future__ import annotations

from edgeguard.engine.provider import Compiled, Graph, Provider

_NVIDIA = ("/dev/nvidia[0-9]*", "/dev/nvhost-gpu", "/dev/nvgpu/igpu0")  # desktop; Jetson
_NVIDIA_DRIVER = (
    "nvidia-smi shows whether its driver works; sudo ubuntu-drivers install (Debian: sudo apt install nvidia-driver; "
    "Jetson: sudo apt install nvidia-jetpack) brings it, and into a container: --gpus all"
)
_RENDER = ("/dev/dri/renderD*",)

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="cpu",
        ort_name="CPUExecutionProvider",
        package="onnxruntime",
        extra="cpu",
        hardware="any CPU: Raspberry Pi, Rockchip, PC",
        # With one row, MatMulNBits takes a kernel that sums in another order: up to 1.24 logits off at accuracy level
        # 4, 1e-4 at level 0. From two rows on, every way to split the same tokens gives the same bits (measured).
        smallest_pass=2,
        same_bits=True,
        # Longer ones gain nothing, and their work space stays with the process. Of 76 rounds in one run on two threads,
        # against one pass: in passes of 128 tokens, 192 took 1.02 and 262 took 0.99 times as long; in passes of 64, it
        # was 1.10 for 80 tokens, 1.08 for 98 and 1.05 for 128 (SmolLM2-135M).
        longest_pass=128,
        # What a size costs the first time is code, which any of them has run, and memory, which the largest has
        # touched: one that was not warmed up took 0.99 to 1.02 times what later ones did (nine sizes of 15 to 240).
        warm_sizes=2,
        hint="cpupower frequency-set -g performance",
        verified="x86-64, in CI",
    ),
    Provider(
        name="cuda",
        ort_name="CUDAExecutionProvider",
        package="onnxruntime-gpu",
        extra="gpu",
        hardware="NVIDIA GPU, Jetson",
        options={
            "arena_extend_strategy": "kSameAsRequested",  # the other one doubles: a cudaMalloc in mid-request, later
            "use_tf32": "0",  # ten bits of mantissa less would be another model than the one that was compared
        },
        option_names=(
            "device_id", "user_compute_stream", "has_user_compute_stream", "gpu_mem_limit", "arena_extend_strategy",
            "cudnn_conv_algo_search", "do_copy_in_default_stream", "cudnn_conv_use_max_workspace",
            "cudnn_conv1d_pad_to_nc1d", "enable_cuda_graph", "tunable_op_enable", "tunable_op_tuning_enable",
            "tunable_op_max_tuning_duration_ms", "enable_skip_layer_norm_strict_mode", "prefer_nhwc",
            "use_ep_level_unified_stream", "use_tf32", "fuse_conv_bias", "sdpa_kernel",
        ),
        kv_device="cuda",
        kv_types=("tensor(float16)",),  # its GroupQueryAttention takes bfloat16 too, which numpy has not
        graph=Graph(activations="float16"),
        graph_option="enable_cuda_graph",
        device_files=_NVIDIA,
        driver=_NVIDIA_DRIVER,
        cuda=True,
        hint="nvidia-smi -lgc MIN,MAX (Jetson: jetson_clocks): calls 200 ms apart run 5 to 25 times slower unlocked",
    ),
    Provider(
        name="tensorrt",
        ort_name="TensorrtExecutionProvider",
        package="onnxruntime-gpu",
        extra="gpu",
        hardware="NVIDIA GPU, Jetson",
        options={"trt_fp16_enable": "1"},
        option_names=(
            "device_id", "user_compute_stream", "trt_max_partition_iterations", "trt_min_subgraph_size",
            "trt_max_workspace_size", "trt_fp16_enable", "trt_bf16_enable", "trt_int8_enable",
            "trt_engine_cache_enable", "trt_engine_cache_path", "trt_engine_cache_prefix", "trt_engine_hw_compatible",
            "trt_timing_cache_enable", "trt_timing_cache_path", "trt_force_timing_cache", "trt_detailed_build_log",
            "trt_build_heuristics_enable", "trt_sparsity_enable", "trt_builder_optimization_level",
            "trt_auxiliary_streams", "trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes",
            "trt_context_memory_sharing_enable", "trt_layer_norm_fp32_fallback",  # no CUDA graphs: its cache is here
            "trt_dump_ep_context_model", "trt_ep_context_file_path", "trt_ep_context_embed_mode",
            "trt_weight_stripped_engine_enable", "trt_op_types_to_exclude",
        ),
        kv_types=("tensor(float16)",),  # on the CPU: it grows, which is two copies to and fro in every pass
        compiled=Compiled(
            what="TensorRT engines",
            directory_option="trt_engine_cache_path",
            switches={"trt_engine_cache_enable": "1", "trt_timing_cache_enable": "1"},
        ),
        graph=Graph(activations="float16", attention="plain", weights="float16"),
        shapes="sizes",  # an engine is built anew for a shape outside those it was built for, for minutes
        range_options=("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"),
        device_files=_NVIDIA,
        driver=_NVIDIA_DRIVER,
        cuda=True,
        hint="as for cuda",
    ),
    Provider(
        name="nv_tensorrt_rtx",
        ort_name="NvTensorRTRTXExecutionProvider",
        package="onnxruntime-ep-nv-tensorrt-rtx-cu12",
        extra="tensorrt-rtx",
        hardware="NVIDIA RTX GPU in a PC",
        python=(3, 11),  # the first onnxruntime that takes it, 1.24, needs that
        plugin="onnxruntime_ep_nv_tensorrt_rtx",
        option_names=(
            "device_id", "has_user_compute_stream", "user_compute_stream", "user_aux_stream_array",
            "nv_max_workspace_size", "nv_max_shared_mem_size", "nv_dump_subgraphs", "nv_detailed_build_log",
            "enable_cuda_graph", "nv_profile_min_shapes", "nv_profile_opt_shapes", "nv_profile_max_shapes",
            "nv_multi_profile_enable", "nv_use_external_data_initializer", "nv_runtime_cache_path",
            "nv_weight_streaming_budget", "nv_op_types_to_exclude",
        ),
        kv_device="cuda",
        kv_types=("tensor(float16)",),
        compiled=Compiled(what="TensorRT RTX kernels", directory_option="nv_runtime_cache_path"),
        graph=Graph(activations="float16"),
        # A new shape runs on general kernels, while those for it are compiled beside the requests: in the warm-up then.
        shapes="sizes",
        range_options=("nv_profile_min_shapes", "nv_profile_opt_shapes", "nv_profile_max_shapes"),
        graph_option="enable_cuda_graph",
        graph_key="cuda_graph_annotation_id",  # read in its library, 0.5: with cuda's all sizes would be one graph
        device_files=_NVIDIA,
        driver=_NVIDIA_DRIVER,
        bundled=("libcudart.so.*",),  # 0.5 brings it without the name that is looked for
        hint="as for cuda",
    ),
    Provider(
        name="openvino",
        ort_name="OpenVINOExecutionProvider",
        package="onnxruntime-openvino",
        extra="openvino",
        hardware="Intel CPU, GPU, NPU",
        options={
            "device_type": "CPU",  # GPU or NPU is the user's choice: AUTO would move between them while it runs
            "num_streams": "1",  # one request at a time, on every core
        },
        option_names=(
            "device_type", "device_id", "precision", "num_of_threads", "num_streams", "cache_dir", "load_config",
            "context", "enable_opencl_throttling", "enable_qdq_optimizer", "disable_dynamic_shapes",
            "model_priority", "layout", "reshape_input", "enable_causallm",
        ),
        threads_option="num_of_threads",
        kv_types=("tensor(float)",),
        # Its own cache: an EPContext model it writes, and cannot open again (1.24: "Unhandled exception type: 1").
        compiled=Compiled(what="OpenVINO blobs", directory_option="cache_dir"),
        driver="sudo apt install intel-opencl-icd for the GPU; device_type is the device that is meant",
        # 1.24 leaves every GroupQueryAttention, and the look-up of quantised rows, to the CPU provider (measured).
        graph=Graph(attention="plain", embedding="float16"),
        verified="x86-64 CPU, in CI",
    ),
    Provider(
        name="qnn",
        ort_name="QNNExecutionProvider",
        package="onnxruntime-qnn",
        extra="qnn",
        hardware="Qualcomm NPU",
        python=(3, 11),
        plugin="onnxruntime_qnn",
        options={
            "backend_type": "htp",
            "htp_performance_mode": "sustained_high_performance",  # burst is faster until it is hot, then it is not
            "rpc_control_latency": "100",  # microseconds; the default lets the link to the DSP sleep
        },
        option_names=(
            "backend_path", "backend_type", "profiling_level", "profiling_file_path", "rpc_control_latency",
            "vtcm_mb", "htp_performance_mode", "htp_graph_finalization_optimization_mode", "qnn_context_priority",
            "qnn_saver_path", "soc_model", "htp_arch", "device_id", "enable_htp_fp16_precision",
            "offload_graph_io_quantization", "enable_htp_spill_fill_buffer", "enable_htp_shared_memory_allocator",
        ),
        kv_types=("tensor(float16)",),
        shapes="one",  # it takes no node whose shape is open
        compiled=Compiled(what="QNN context binaries"),
        graph=Graph(activations="float16", attention="plain", weights="float16"),
        device_files=("/dev/fastrpc-cdsp*", "/dev/adsprpc-smd*"),
        driver="sudo dmesg | grep -i fastrpc shows whether the kernel has the NPU's driver: the board's own image does",
        verified="its simulator, in CI",
    ),
    Provider(
        name="migraphx",
        ort_name="MIGraphXExecutionProvider",
        package="onnxruntime-migraphx",
        extra="migraphx",
        hardware="AMD GPU",
        option_names=(
            "device_id", "migraphx_fp16_enable", "migraphx_bf16_enable", "migraphx_fp8_enable",
            "migraphx_int8_enable", "migraphx_model_cache_dir", "migraphx_exhaustive_tune", "migraphx_mem_limit",
        ),
        kv_device="cpu",
        kv_types=("tensor(float16)", "tensor(float)"),
        compiled=Compiled(what="MIGraphX programs", directory_option="migraphx_model_cache_dir"),
        graph=Graph(activations="float16", attention="plain", weights="float16"),
        device_files=("/dev/kfd",),
        driver="rocminfo shows the GPU; sudo modprobe amdgpu, sudo usermod -aG render,video $USER, or install ROCm",
        hint="rocm-smi --setperflevel high",
    ),
    Provider(
        name="webgpu",
        ort_name="WebGpuExecutionProvider",
        package="onnxruntime-ep-webgpu",
        extra="webgpu",
        hardware="GPU with Vulkan",
        python=(3, 11),  # the first onnxruntime that takes it, 1.24, needs that
        plugin="onnxruntime_ep_webgpu",
        kv_device="cpu",  # past and present in one buffer breaks caches that grow, so they are handed over by copy
        graph=Graph(activations="float16"),
        device_files=_RENDER,
        driver="sudo apt install mesa-vulkan-drivers vulkan-tools; vulkaninfo --summary then lists the devices",
    ),
    Provider(
        name="xnnpack",
        ort_name="XnnpackExecutionProvider",
        package="onnxruntime",
        build_flag="--use_xnnpack",
        extra="cpu",
        hardware="ARM and x86 CPU",
        option_names=("intra_op_num_threads",),
        threads_option="intra_op_num_threads",
        kv_types=("tensor(float)",),
        graph=Graph(attention="plain", weights="float32"),
    ),
    Provider(
        name="acl",
        ort_name="ACLExecutionProvider",
        package="onnxruntime",
        build_flag="--use_acl",
        extra="cpu",
        hardware="ARM CPU",
        options={"enable_fast_math": "false"},  # bfloat16 inside float32 would be another model
        option_names=("enable_fast_math",),
        kv_types=("tensor(float)",),
        graph=Graph(attention="plain", weights="float32"),
    ),
)  # fmt: skip
