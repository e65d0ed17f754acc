// SPDX-License-Identifier: Apache-2.0
// The graph interface in random order: descriptors of all types, attributes that they have or not, values, counts and
// references right and wrong. Nothing crashes, failures have a text, and memory around what was given stays untouched.
// FUZZ_ROUNDS and FUZZ_SEED ask for other sequences.
#include <cstdlib>

#include "recording.hpp"

namespace {

using client::Recording;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

struct Attribute {
  int name;
  cudnnBackendAttributeType_t type;
};
constexpr int kTypes = 51, kNames = 3415, kAttributeTypes = 33;  // numbers that the headers give, and one

// The attributes of a type of descriptors, as the library itself tells by what it refuses.
std::vector<Attribute> learn(int type) {
  std::vector<Attribute> known;
  cudnnBackendDescriptor_t d = nullptr;
  if (cudnnBackendCreateDescriptor(static_cast<cudnnBackendDescriptorType_t>(type), &d) != CUDNN_STATUS_SUCCESS)
    return known;
  for (int name = 0; name < kNames; ++name)
    for (int t = 0; t < kAttributeTypes; ++t) {
      auto as = static_cast<cudnnBackendAttributeType_t>(t);
      cudnnStatus_t s = cudnnBackendSetAttribute(d, static_cast<cudnnBackendAttributeName_t>(name), as, -1, nullptr);
      if (s == CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE) continue;
      if (client::last_error().find("has no attribute") == std::string::npos) known.push_back({name, as});
      break;
    }
  cudnnBackendDestroyDescriptor(d);
  return known;
}

size_t size_of(cudnnBackendAttributeType_t t) {
  switch (t) {
    case CUDNN_TYPE_FRACTION:
      return 16;
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

class Fuzzer {
 public:
  explicit Fuzzer(unsigned seed) : random_(seed) {}
  ~Fuzzer() {
    for (cudnnBackendDescriptor_t d : own_) cudnnBackendDestroyDescriptor(d);
  }
  Fuzzer(const Fuzzer&) = delete;
  Fuzzer& operator=(const Fuzzer&) = delete;

  // Descriptors of somebody else that calls may refer to.
  void lend(const std::vector<cudnnBackendDescriptor_t>& others) { lent_ = others; }

  void call() {
    client::last_error();
    cudnnStatus_t status = one_call();
    std::string text = client::last_error();
    EXPECT_EQ(status == CUDNN_STATUS_SUCCESS, text.empty()) << status << " " << text;
    EXPECT_TRUE(status < 4000 || status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) << status << " " << text;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }

  cudnnStatus_t one_call() {
    size_t what = below(100);
    if (own_.empty() || what < 12) return create();
    if (what < 65) return set();
    if (what < 75) return cudnnBackendFinalize(any());
    if (what < 92) return get();
    if (what < 96) return cudnnBackendExecute(handle_, any(), any());
    if (what < 97) return cudnnBackendInitialize(any());
    size_t at = below(own_.size());
    cudnnBackendDescriptor_t d = own_[at];
    own_.erase(own_.begin() + static_cast<int64_t>(at));
    types_.erase(d);
    return cudnnBackendDestroyDescriptor(d);
  }

  cudnnStatus_t create() {
    int type = static_cast<int>(below(kTypes + 2)) - 1;
    cudnnBackendDescriptor_t d = nullptr;
    cudnnStatus_t s = cudnnBackendCreateDescriptor(static_cast<cudnnBackendDescriptorType_t>(type), &d);
    if (s == CUDNN_STATUS_SUCCESS) own_.push_back(d), types_[d] = type;
    return s;
  }

  // An own descriptor, or sometimes one that was lent or none.
  cudnnBackendDescriptor_t any() {
    if (chance(2)) return nullptr;
    if (!lent_.empty() && chance(40)) return lent_[below(lent_.size())];
    return own_.empty() ? nullptr : own_[below(own_.size())];
  }

  Attribute attribute_of(cudnnBackendDescriptor_t d) {
    static std::map<int, std::vector<Attribute>> known;
    auto type = types_.find(d);
    int t = type == types_.end() ? static_cast<int>(below(kTypes)) : type->second;
    if (!known.contains(t)) known[t] = learn(t);
    client::last_error();
    Attribute a{static_cast<int>(below(kNames)), CUDNN_TYPE_INT64};
    if (!known[t].empty() && chance(97)) a = known[t][below(known[t].size())];
    if (chance(8)) a.type = static_cast<cudnnBackendAttributeType_t>(below(kAttributeTypes + 1));
    return a;
  }

  // Sizes that nobody executes are rarely small enough to be right.
  int64_t number() {
    static constexpr int64_t kNumbers[] = {0, 1, 1, 2, 2, 3, 4, 8, 16, 64, -1, INT32_MAX, INT64_MAX, INT64_MIN};
    return kNumbers[below(std::size(kNumbers))];
  }

  template <class T>
  static void append(std::vector<unsigned char>& to, T v) {
    const auto* p = reinterpret_cast<const unsigned char*>(&v);
    to.insert(to.end(), p, p + sizeof v);
  }
  void append_value(std::vector<unsigned char>& to, cudnnBackendAttributeType_t type) {
    static constexpr double kReals[] = {0, 1, -1, 0.5, 1e30, HUGE_VAL, NAN};
    switch (type) {
      case CUDNN_TYPE_HANDLE:
        return append(to, chance(95) ? static_cast<cudnnHandle_t>(handle_) : nullptr);
      case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return append(to, any());
      case CUDNN_TYPE_VOID_PTR:
        return append(to, chance(95) ? static_cast<void*>(scalar_) : nullptr);
      case CUDNN_TYPE_INT64:
        return append(to, number());
      case CUDNN_TYPE_FLOAT:
        return append(to, static_cast<float>(kReals[below(std::size(kReals))]));
      case CUDNN_TYPE_DOUBLE:
        return append(to, kReals[below(std::size(kReals))]);
      case CUDNN_TYPE_FRACTION:
        return append(to, cudnnFraction_t{number(), number()});
      case CUDNN_TYPE_BOOLEAN:
      case CUDNN_TYPE_CHAR:
        return append(to, static_cast<char>(below(128)));
      default:  // INT32 and enumerators
        return append(to, static_cast<int32_t>(chance(90) ? below(20) : static_cast<size_t>(number())));
    }
  }

  cudnnStatus_t set() {
    cudnnBackendDescriptor_t d = any();
    Attribute a = attribute_of(d);
    // Their elements are C++ objects, by the interface's own rule.
    using Lists = std::vector<std::vector<int64_t>>;
    Lists lists(below(3), {number(), number()});
    bool takes_lists =
        a.name == CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES || a.name == CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES;
    int64_t count = chance(70) ? 1 : static_cast<int64_t>(below(9));
    std::vector<unsigned char> values;  // as long as the count says, to the byte
    for (int64_t i = 0; i < count; ++i) append_value(values, a.type);
    values.shrink_to_fit();
    if (chance(2)) count = -1;
    const void* elements = takes_lists ? static_cast<const void*>(&lists) : values.data();
    if (chance(2)) elements = nullptr;
    return cudnnBackendSetAttribute(d, static_cast<cudnnBackendAttributeName_t>(a.name), a.type, count, elements);
  }

  cudnnStatus_t get() {
    cudnnBackendDescriptor_t d = any();
    Attribute a = attribute_of(d);
    auto requested = static_cast<int64_t>(below(6)) - 1;
    size_t bytes = static_cast<size_t>(std::max<int64_t>(0, requested)) * size_of(a.type);
    constexpr size_t kGuard = 32;
    std::vector<unsigned char> memory;
    if (a.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      for (int64_t i = 0; i < requested; ++i) append(memory, own_.empty() ? nullptr : own_[below(own_.size())]);
    memory.resize(bytes + kGuard, 0xa5);
    int64_t count = 0;
    cudnnStatus_t s = cudnnBackendGetAttribute(d, static_cast<cudnnBackendAttributeName_t>(a.name), a.type, requested,
                                               chance(90) ? &count : nullptr, chance(90) ? memory.data() : nullptr);
    for (size_t i = bytes; i < memory.size(); ++i) EXPECT_EQ(0xa5, memory[i]) << "attribute " << a.name;
    return s;
  }

  std::mt19937 random_;
  client::Handle handle_;
  std::vector<cudnnBackendDescriptor_t> own_, lent_;
  std::map<cudnnBackendDescriptor_t, int> types_;
  alignas(16) unsigned char scalar_[64] = {};
};

// With and without the finished descriptors of a real graph to refer to.
TEST(Fuzz, AnySequenceOfCallsIsAnswered) {
  client::Handle handle;
  std::vector<client::RecordedGraph> graphs = client::read_recorded("frontend_1_32.txt");
  ASSERT_FALSE(graphs.empty());
  int64_t rounds = from_environment("FUZZ_ROUNDS", 150), seed = from_environment("FUZZ_SEED", 1);
  for (int64_t i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("FUZZ_SEED=" + std::to_string(seed + i));
    auto s = static_cast<unsigned>(seed + i);
    Recording real(graphs[s % graphs.size()].lines, handle);
    Fuzzer f(s);
    if (s % 4 != 0) f.lend(real.descriptors());
    for (int n = 0; n < 150; ++n) f.call();
  }
}

}  // namespace
