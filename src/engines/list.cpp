// SPDX-License-Identifier: Apache-2.0
// Every engine, one line each, in order of preference: views, which cost nothing, first, the last resort of each kind
// of device last. Numbers in EngineInfo::id are public and never reused.
#include "engines/cpu/attention/attention.hpp"
#include "engines/cpu/conv1d/conv1d.hpp"
#include "engines/cpu/fused/fused.hpp"
#include "engines/cpu/gemm/gemm.hpp"
#include "engines/cpu/index/index.hpp"
#include "engines/cpu/move/move.hpp"
#include "engines/cpu/resample/resample.hpp"
#include "engines/cpu/rnn/rnn.hpp"
#ifdef TESSERA_HAS_ONEDNN
#include "engines/cpu/onednn/onednn.hpp"
#endif
#include "engines/cuda/attention/attention.hpp"
#include "engines/cuda/conv1d/conv1d.hpp"
#include "engines/cuda/decode/decode.hpp"
#include "engines/cuda/flash/flash.hpp"
#include "engines/cuda/flash_back/flash_back.hpp"
#include "engines/cuda/flash_mma/back.hpp"
#include "engines/cuda/flash_mma/flash_mma.hpp"
#include "engines/cuda/fused/fused.hpp"
#include "engines/cuda/gemm/gemm.hpp"
#include "engines/cuda/groups/groups.hpp"
#include "engines/cuda/host/host.hpp"
#include "engines/cuda/move/move.hpp"
#include "engines/cuda/resample/resample.hpp"
#include "engines/cuda/rnn/rnn.hpp"
#include "engines/cuda/rope/rope.hpp"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/thin/thin.hpp"
#include "engines/cuda/wgmma/wgmma.hpp"
#include "engines/reference/reference.hpp"
#include "engines/view/view.hpp"

namespace tsr {

std::span<const Engine* const> all_engines() {
  // clang-format off
  static const Engine* const list[] = {
      &view_engine(DeviceKind::cpu),
#ifdef TESSERA_HAS_ONEDNN
      &onednn::engine(),
#endif
      &cpu::fused_engine(),
      &cpu::gemm_engine(),
      &cpu::move_engine(),
      &cpu::index_engine(),
      &cpu::conv1d_engine(),
      &cpu::resample_engine(),
      &cpu::rnn_engine(),
      &cpu::attention_engine(),
      &ref::engine(),
      &view_engine(DeviceKind::cuda),
      &cuda::fused_engine(),
      &cuda::move_engine(),
      &cuda::conv1d_engine(),
      &cuda::rope_engine(),
      &cuda::resample_engine(),
      &cuda::special_engine(),
      &cuda::rnn_engine(),
      &cuda::depthwise_engine(),
      &cuda::groups_engine(),
      &cuda::thin_engine(),
      &cuda::wgmma_engine(),
      &cuda::mma_engine(),
      &cuda::gemm_engine(),
      &cuda::decode_engine(),
      &cuda::flash_engine(),
      &cuda::flash_mma_engine(),
      &cuda::flash_back_engine(),
      &cuda::flash_back_ordered_engine(),
      &cuda::flash_mma_back_engine(),
      &cuda::attention_engine(),
      &cuda::host_engine(),
  };
  // clang-format on
  return list;
}

}  // namespace tsr
