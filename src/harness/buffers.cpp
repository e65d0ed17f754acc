// SPDX-License-Identifier: Apache-2.0
#include "harness/buffers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/hash.hpp"
#include "graph/ragged.hpp"

namespace tsr {
namespace {

constexpr size_t kBand = 256;
constexpr std::byte kBandByte{0xa5}, kPoison{0xff};

// What stands behind the colon, between commas.
template <class T>
std::vector<T> after_colon(const std::string& kind) {
  std::vector<T> values;
  size_t colon = kind.find(':');
  if (colon == std::string::npos) return values;
  for (size_t at = colon + 1, end = 0; end != std::string::npos; at = end + 1) {
    end = kind.find(',', at);
    std::string word = kind.substr(at, end == std::string::npos ? end : end - at);
    T v = 0;
    auto [stop, bad] = std::from_chars(word.data(), word.data() + word.size(), v);
    require(bad == std::errc() && stop == word.data() + word.size(), "data '", kind, "': '", word, "' is no ",
            std::is_integral_v<T> ? "whole number of 64 bits" : "number");
    values.push_back(v);
  }
  return values;
}

double sample(const std::string& kind, const std::vector<double>& args, uint64_t seed, uint64_t stream, uint64_t i) {
  double u = random_uniform(seed, stream, i), n = random_normal(seed, stream, i);
  if (kind == "normal") return n;
  if (kind == "positive") return 0.1 + 1.9 * u;
  if (kind == "integers") return std::floor(u * 7) - 3;
  if (kind == "extreme") return n * std::pow(10.0, std::floor(u * 5));
  if (kind == "special") {
    constexpr double kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40};
    auto pick = static_cast<int>(u * 24);
    return pick < 6 ? kSpecial[pick] : n;
  }
  if (kind == "zeros") return 0;
  if (kind == "ones") return 1;
  if (kind == "below") return std::floor(u * args.at(0));
  if (kind == "places") {
    constexpr uint64_t kPrime = 2654435761;
    return static_cast<double>(i * kPrime % static_cast<uint64_t>(std::max(1.0, args.at(0))));
  }
  if (kind == "range") return args.at(0) + u * (args.at(1) - args.at(0));
  if (kind == "values") return args[i % args.size()];
  fail(Status::bad_parameter, "unknown kind of data '", kind,
       "'; kinds: normal, positive, integers, extreme, special, zeros, ones, below:N, places:N, range:lo,hi, "
       "values:a,b,...");
}

std::string data_kind(const Tensor& t, const DataSpec& spec) {
  auto it = spec.by_name.find(t.name);
  if (it != spec.by_name.end()) return it->second;
  if (is_boolean(t.dtype)) return "below:2";
  if (is_integer(t.dtype)) return "integers";
  if (t.by_value && spec.all == "normal") return "positive";
  if (is_real(t.dtype) && !info(t.dtype).format.sign && spec.all == "normal") return "positive";
  return spec.all;
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes, size_t alignment, size_t skew) : bytes_(bytes) {
  storage_.assign(bytes + 2 * kBand + alignment + skew, kBandByte);
  auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kBand;
  offset_ = kBand + (alignment - address % alignment) % alignment + skew;
}

bool GuardedBuffer::intact() const {
  auto clean = [](auto first, auto last) {
    return std::all_of(first, last, [](std::byte b) { return b == kBandByte; });
  };
  auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(offset_),
       end = begin + static_cast<std::ptrdiff_t>(bytes_);
  return clean(storage_.begin(), begin) && clean(end, storage_.end());
}

void GuardedBuffer::poison() { std::fill_n(data(), bytes_, kPoison); }

double random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  uint64_t z =
      (seed + 1) * 0x9e3779b97f4a7c15ull + stream * 0xd1b54a32d192ed03ull + (index + 1) * 0x8cb92ba72f3d8dd7ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  double u = random_uniform(seed, stream ^ 0x5555, index), v = random_uniform(seed, stream ^ 0xaaaa, index);
  return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v);
}

void check_data_kind(const std::string& kind) {
  std::string base = kind.substr(0, kind.find(':'));
  size_t least = base == "below" || base == "places" || base == "values" ? 1 : base == "range" ? 2 : 0;
  require(kind != base || least == 0, "data '", kind, "' needs values after a colon");
  auto args = after_colon<double>(kind);
  if (args.size() >= least) (void)sample(base, args, 0, 0, 0);  // raises for a name that does not exist
  require(base == "values" || args.size() == least, "data '", kind, "' has ", args.size(),
          " values after the colon; it takes ", least);
  bool count = base == "below" || base == "places";
  require(!count || (args[0] >= 1 && std::isfinite(args[0])), "data '", kind, "' must count 1 or more");
  require(base != "range" || args[0] <= args[1], "data '", kind, "': the first number must not exceed the second");
}

void fill(const Tensor& t, void* data, int64_t count, const DataSpec& spec) {
  std::string kind = data_kind(t, spec), base = kind.substr(0, kind.find(':'));
  uint64_t stream = hash_text(t.name);
  if (base == "values" && is_integer(t.dtype)) {
    Ints values = after_colon<int64_t>(kind);
    for (int64_t i = 0; i < count; ++i) {
      int64_t v = values.at(static_cast<size_t>(i) % values.size());
      store(t.dtype, data, i, v);
      require(load<int64_t>(t.dtype, data, i) == v, "data '", kind, "' of ", describe(t), ": ", v, " does not fit in ",
              t.dtype);
    }
    return;
  }
  auto args = after_colon<double>(kind);
  for (int64_t i = 0; i < count; ++i) {
    double v = sample(base, args, spec.seed, stream, static_cast<uint64_t>(i));
    if (is_complex(t.dtype))
      store(t.dtype, data, i,
            std::complex<double>(v, sample(base, args, spec.seed, stream + 1, static_cast<uint64_t>(i))));
    else
      store(t.dtype, data, i, v);
  }
}

int64_t memory_elements(const Tensor& t, const Ints& offsets) {
  if (t.ragged == kNone || offsets.empty()) return t.span();
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    int64_t first = offsets[i] * t.ragged_multiplier;
    end = std::max(end, first);
    if (i + 1 == offsets.size()) continue;
    // Dimensions slower than the steps (head-major statistics) reach beyond the offset of the next batch.
    Tensor batch = t;
    int64_t room = (offsets[i + 1] - offsets[i]) * t.ragged_multiplier;
    batch.dims[0] = 1;
    int axis = ragged_axis(t);
    batch.dims[axis] = std::clamp<int64_t>(room / std::max<int64_t>(1, t.strides[axis]), 0, t.dims[axis]);
    end = std::max(end, first + batch.span());
  }
  return end;
}

GraphBuffers::GraphBuffers(const Graph& g, const DataSpec& spec) : g_(g) {
  auto add = [&](TensorId id) {
    const Tensor& t = g.tensor(id);
    Ints offsets;
    if (t.ragged != kNone) {
      const Tensor& o = g.tensor(t.ragged);
      const std::byte* values = o.is_constant() ? o.constant.data() : buffers_.at(t.ragged).data();
      for (int64_t i = 0; i < o.numel(); ++i) offsets.push_back(load<int64_t>(o.dtype, values, i));
    }
    int64_t n = memory_elements(t, offsets);
    auto bytes = static_cast<size_t>(byte_size(t.dtype, n));
    require(n < (int64_t{1} << 34), "tensor ", describe(t), " is too large to allocate here: ", bytes, " bytes");
    // Aligned exactly as promised and no better.
    size_t skew = t.alignment < 64 ? static_cast<size_t>(std::max<int64_t>(t.alignment, info(t.dtype).bits / 8)) : 0;
    GuardedBuffer& buffer = [&]() -> GuardedBuffer& {
      try {
        return buffers_.try_emplace(id, bytes, 64, skew).first->second;
      } catch (const std::bad_alloc&) {
        fail(Status::out_of_memory, "out of memory: tensor ", describe(t), " needs ", bytes, " bytes");
      }
    }();
    elements_[id] = n;
    if (g.producer(id) == kNone)
      fill(t, buffer.data(), n, spec);
    else
      buffer.poison();
  };
  // Plain tensors first: they may hold the offsets of the ragged ones.
  for (bool ragged : {false, true})
    for (TensorId t = 0; t < g.tensor_count(); ++t)
      if ((g.tensor(t).stored || g.tensor(t).by_value) && (g.tensor(t).ragged != kNone) == ragged) add(t);
}

std::vector<void*> GraphBuffers::table() {
  std::vector<void*> pointers(static_cast<size_t>(g_.tensor_count()), nullptr);
  for (auto& [t, buffer] : buffers_) pointers[static_cast<size_t>(t)] = buffer.data();
  return pointers;
}

void GraphBuffers::poison_outputs() {
  for (auto& [t, buffer] : buffers_)
    if (g_.producer(t) != kNone) buffer.poison();
}

std::string GraphBuffers::damage() const {
  std::string names;
  for (const auto& [t, buffer] : buffers_)
    if (!buffer.intact()) names += (names.empty() ? "" : ", ") + g_.tensor(t).name;
  return names;
}

}  // namespace tsr
