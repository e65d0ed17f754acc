// SPDX-License-Identifier: Apache-2.0
// A plan as a call inside programs of JAX: the handler that XLA calls. The saved plan travels in the program as text,
// so that programs can be kept and loaded by other processes; it is read when it is first called.
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/cat.hpp"
#include "graph/graph.hpp"
#include "module.hpp"
#include "runner.hpp"
#include "xla_ffi.hpp"

namespace tessera::python {
namespace {

namespace nb = nanobind;
using tsr::fail;
using tsr::require;

std::optional<DType> dtype_of(int xla) {
  switch (xla) {
    case 1:
      return DType::boolean;
    case 2:
      return DType::i8;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::u8;
    case 10:
      return DType::f16;
    case 11:
      return DType::f32;
    case 12:
      return DType::f64;
    case 15:
      return DType::c64;
    case 16:
      return DType::bf16;
    case 18:
      return DType::c128;
    case 19:
      return DType::e5m2;
    case 20:
      return DType::e4m3;
    case 33:
      return DType::e8m0;
    default:
      return std::nullopt;
  }
}

// Plans that were called, for each GPU (-1: the host). They are kept: a program may call them as long as the process
// lives.
Runner& runner_for(std::string_view saved, int gpu) {
  static std::mutex lock;
  static auto& known = *new std::map<int, std::map<std::string, std::unique_ptr<Runner>, std::less<>>>;
  std::lock_guard guard(lock);
  auto& plans = known[gpu];
  auto place = plans.find(saved);
  if (place == plans.end()) {
    tsr::Device device = gpu < 0 ? tsr::find_device("cpu") : tsr::cuda_device(gpu);
    place = plans.emplace(saved, std::make_unique<Runner>(tsr::load_plan(saved, device))).first;
  }
  return *place->second;
}

std::string_view saved_plan(const xla::Attributes& all) {
  for (int64_t i = 0; i < all.count; ++i)
    if (all.types[i] == xla::kString && std::string_view(all.names[i]->data, all.names[i]->size) == "plan") {
      const auto& text = *static_cast<const xla::Bytes*>(all.list[i]);
      return {text.data, text.size};
    }
  fail(Status::bad_parameter, "a call of Tessera has no attribute 'plan'");
}

void append(std::vector<tsr::Binding>& bindings, const xla::Buffers& given, const tsr::Graph& g,
            std::span<const tsr::TensorId> wanted, const char* what) {
  require(given.count == static_cast<int64_t>(wanted.size()), "the plan has ", wanted.size(), " ", what,
          "s, but the call has ", given.count);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const tsr::Tensor& t = g.tensor(wanted[i]);
    const xla::Buffer& b = *given.list[i];
    tsr::Dims dims;
    for (int64_t k = 0; k < b.rank; ++k) dims.push_back(b.dims[k]);
    std::optional<DType> type = dtype_of(b.dtype);
    if (type != t.dtype || dims != t.dims)
      fail(Status::bad_parameter, what, " ", tsr::describe(t), " was given an array of ",
           type ? std::string(tsr::name(*type)) : tsr::cat("XLA's type ", b.dtype, " "), dims);
    bindings.push_back({t.uid, b.data});
  }
}

void execute(const xla::CallFrame& frame, bool on_gpu) {
  void* stream = nullptr;
  int gpu = -1;
  if (on_gpu) {
    xla::OrdinalGet place{sizeof place, nullptr, frame.context, 0};
    xla::StreamGet current{sizeof current, nullptr, frame.context, nullptr};
    require(!frame.api->ordinal_get(&place) && !frame.api->stream_get(&current), "XLA names no GPU and no stream");
    gpu = place.ordinal;
    stream = current.stream;
  }
  Runner& runner = runner_for(saved_plan(frame.attributes), gpu);
  const tsr::Graph& g = runner.plan().source();
  std::vector<tsr::Binding> bindings;
  append(bindings, frame.arguments, g, g.inputs(), "input");
  append(bindings, frame.results, g, g.outputs(), "output");
  runner.execute(bindings, stream);
}

xla::Error* refuse(const xla::CallFrame& frame, const char* text, xla::ErrorCode code) {
  xla::ErrorCreate what{sizeof what, nullptr, text, code};
  return frame.api->error_create(&what);
}

xla::ErrorCode code_of(Status s) {
  switch (s) {
    case Status::bad_parameter:
    case Status::corrupt_data:
      return xla::kInvalidArgument;
    case Status::not_supported:
      return xla::kUnimplemented;
    case Status::out_of_memory:
      return xla::kResourceExhausted;
    default:
      return xla::kInternal;
  }
}

template <bool on_gpu>
xla::Error* handle(xla::CallFrame* frame) {
  if (frame->extension && frame->extension->type == xla::kMetadata) {  // XLA asks which version this is written for
    xla::Metadata& m = *reinterpret_cast<xla::MetadataExtension*>(frame->extension)->metadata;
    m.version.major = xla::kMajor;
    m.version.minor = xla::kMinor;
    m.traits = 0;
    if (m.size >= offsetof(xla::Metadata, state_type) + sizeof m.state_type) m.state_type = 0;
    return nullptr;
  }
  if (frame->stage != xla::kExecute) return nullptr;
  try {
    execute(*frame, on_gpu);
    return nullptr;
  } catch (const Error& e) {
    return refuse(*frame, e.what(), code_of(e.status()));
  } catch (const std::exception& e) {
    return refuse(*frame, e.what(), xla::kInternal);
  }
}

}  // namespace

void add_jax(nb::module_& m) {
  m.def(
      "_xla_handler",
      [](bool on_gpu) {
        auto* handler = on_gpu ? &handle<true> : &handle<false>;
        return nb::steal(PyCapsule_New(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET", nullptr));
      },
      nb::arg("on_gpu"), nb::sig("def _xla_handler(on_gpu: bool) -> object"));
}

}  // namespace tessera::python
