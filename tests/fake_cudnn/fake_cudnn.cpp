// SPDX-License-Identifier: Apache-2.0
#include "fake_cudnn.hpp"

#include <algorithm>

namespace {

enum Kind { kHeuristics = 4, kPlan = 5 };
enum Attribute {
  kHeurMode = 200,
  kHeurResults = 202,
  kConfigEngine = 300,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPackUids = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineIndex = 1301,
  kEngineNote = 1303
};
enum Type {
  kHandle = 0,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kVoidPtr = 6,
  kDescriptor = 15,
  kFraction = 26
};
enum Status { kOk = 0, kNotInitialized = 1001, kBadParam = 2000, kNullPointer = 2002, kNotFinalized = 2004 };
constexpr int kNotSupported = 3000;

FakeCudnn state;
std::string last_error;

int fail(int status, const std::string& text) {
  last_error = text;
  return status;
}

size_t size_of(int type) {
  switch (type) {
    case kBoolean:
      return 1;
    case kFloat:
      return sizeof(float);
    case kHandle:
    case kInt64:
    case kDouble:
    case kVoidPtr:
    case kDescriptor:
      return 8;
    case kFraction:
      return 16;
    default:
      return sizeof(int);
  }
}

FakeDescriptor* cast(void* d) { return static_cast<FakeDescriptor*>(d); }

template <class T>
int answer(const std::vector<T>& values, int64_t capacity, int64_t* count, void* out) {
  if (capacity == 0) {
    *count = static_cast<int64_t>(values.size());
    return kOk;
  }
  auto n = std::min(capacity, static_cast<int64_t>(values.size()));
  if (n > 0) std::memcpy(out, values.data(), static_cast<size_t>(n) * sizeof(T));
  *count = n;
  return kOk;
}

}  // namespace

extern "C" {

FakeCudnn* fake_cudnn() { return &state; }

size_t cudnnGetVersion() { return state.version; }

const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_OTHER";
  }
}

void cudnnGetLastErrorString(char* text, size_t size) {
  std::strncpy(text, last_error.c_str(), size - 1);
  text[size - 1] = 0;
  last_error.clear();
}

int cudnnCreate(void** handle) {
  ++state.handles;
  *handle = &state;
  return kOk;
}

int cudnnDestroy(void*) {
  --state.handles;
  return kOk;
}

int cudnnSetStream(void*, void* stream) {
  state.streams.push_back(stream);
  return kOk;
}

int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  ++state.alive;
  *descriptor = new FakeDescriptor{.kind = kind};
  return kOk;
}

int cudnnBackendDestroyDescriptor(void* descriptor) {
  --state.alive;
  delete cast(descriptor);
  return kOk;
}

int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count, const void* values) {
  if (!descriptor || !values) return fail(kNullPointer, "null");
  FakeDescriptor& d = *cast(descriptor);
  if (d.finalized) return fail(kBadParam, "set after finalize");
  FakeAttribute a{.type = type, .count = count};
  a.bytes.resize(size_of(type) * static_cast<size_t>(count));
  std::memcpy(a.bytes.data(), values, a.bytes.size());
  if (type == kDescriptor)
    for (void* used : a.as<void*>())
      if (!cast(used)->finalized) return fail(kNotFinalized, "used before finalize");
  d.attributes[attribute] = std::move(a);
  return kOk;
}

int cudnnBackendFinalize(void* descriptor) {
  FakeDescriptor& d = *cast(descriptor);
  if (d.finalized) return fail(kBadParam, "finalized twice");
  if (d.kind == kHeuristics && !state.engines.contains(d.attributes[kHeurMode].as<int>().at(0)))
    return fail(kNotSupported, "nothing in this mode");
  if (d.kind == kPlan) {
    d.engine = cast(d.attributes[kPlanConfig].as<void*>().at(0))->engine;
    if (std::count(state.refused.begin(), state.refused.end(), d.engine))
      return fail(kNotSupported, "engine " + std::to_string(d.engine) + " has no kernel");
  }
  d.finalized = true;
  state.finalized.push_back(d);
  return kOk;
}

int cudnnBackendGetAttribute(void* descriptor, int attribute, int, int64_t capacity, int64_t* count, void* out) {
  FakeDescriptor& d = *cast(descriptor);
  if (!d.finalized) return fail(kNotInitialized, "get before finalize");
  switch (attribute) {
    case kHeurResults: {
      const auto& engines = state.engines[d.attributes[kHeurMode].as<int>().at(0)];
      if (capacity == 0) return answer(engines, 0, count, nullptr);
      *count = state.viable ? std::min(capacity, static_cast<int64_t>(engines.size())) : 0;
      if (!state.viable) last_error = "no shared memory";
      for (int64_t i = 0; i < *count; ++i) {
        FakeDescriptor& config = *cast(static_cast<void**>(out)[i]);
        config.engine = engines[static_cast<size_t>(i)];
        config.finalized = true;
      }
      return kOk;
    }
    case kConfigEngine: {
      FakeDescriptor& engine = *cast(*static_cast<void**>(out));
      engine.engine = d.engine;
      engine.finalized = true;
      *count = 1;
      return kOk;
    }
    case kEngineIndex:
      return answer(std::vector{d.engine}, capacity, count, out);
    case kEngineNote:
      return answer(state.notes[d.engine], capacity, count, out);
    case kPlanWorkspace:
      return answer(std::vector{state.workspace}, capacity, count, out);
    default:
      return fail(kBadParam, "unknown attribute");
  }
}

int cudnnBackendExecute(void*, void* plan, void* pack) {
  if (state.fail_execute) return fail(state.fail_execute, "cannot run");
  FakeDescriptor &p = *cast(plan), &arguments = *cast(pack);
  if (!p.finalized || !arguments.finalized) return fail(kNotFinalized, "executed before finalize");
  auto uids = arguments.attributes[kPackUids].as<int64_t>();
  auto pointers = arguments.attributes[kPackPointers].as<void*>();
  state.pointers.clear();
  for (size_t i = 0; i < uids.size(); ++i) state.pointers[uids[i]] = pointers[i];
  state.workspace_pointer = arguments.attributes[kPackWorkspace].as<void*>().at(0);
  state.executed.push_back(p.engine);
  return kOk;
}

}  // extern "C"
