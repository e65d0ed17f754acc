// SPDX-License-Identifier: Apache-2.0
// Memory for tests: guard bands before and after every buffer, outputs poisoned, and random data that a seed
// reproduces.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tsr {

// Bytes between two guard bands; `intact` tells whether anything wrote into a band.
class GuardedBuffer {
 public:
  // The address is a multiple of `alignment`, plus `skew`.
  explicit GuardedBuffer(size_t bytes, size_t alignment = 64, size_t skew = 0);
  std::byte* data() { return storage_.data() + offset_; }
  const std::byte* data() const { return storage_.data() + offset_; }
  size_t size() const { return bytes_; }
  bool intact() const;
  void poison();  // all bytes 0xff: NaN in every floating-point type

 private:
  std::vector<std::byte> storage_;
  size_t offset_ = 0, bytes_ = 0;
};

// How inputs are filled: a default and exceptions by tensor name. Kinds: normal, positive (0.1..2), integers (-3..3),
// extreme (up to 1e4 in magnitude), special (normal with NaN, infinities and zeros), zeros, ones, below:N (0..N-1),
// places:N (the same, all of them scattered before any comes again), values:a,b,... (repeated), range:lo,hi.
struct DataSpec {
  std::string all = "normal";
  std::map<std::string, std::string> by_name;
  uint64_t seed = 0;
};

void fill(const Tensor& t, void* data, int64_t count, const DataSpec& spec);
// Checks a kind of data; raises for one that does not exist.
void check_data_kind(const std::string& kind);

// Buffers for all stored tensors of a graph. Inputs are filled (offsets of ragged tensors first), outputs poisoned.
class GraphBuffers {
 public:
  GraphBuffers(const Graph& g, const DataSpec& spec);
  std::vector<void*> table();  // by TensorId, null for tensors without memory
  GuardedBuffer& buffer(TensorId t) { return buffers_.at(t); }
  const GuardedBuffer& buffer(TensorId t) const { return buffers_.at(t); }
  int64_t elements(TensorId t) const { return elements_.at(t); }
  void poison_outputs();
  std::string damage() const;  // names of buffers whose bands were overwritten, or empty

 private:
  const Graph& g_;
  std::map<TensorId, GuardedBuffer> buffers_;
  std::map<TensorId, int64_t> elements_;
};

// Elements that a stored tensor's memory holds; `offsets` are the values of its ragged offsets.
int64_t memory_elements(const Tensor& t, const Ints& offsets);

// A counter-based random generator: the value depends on seed, stream and index alone.
double random_uniform(uint64_t seed, uint64_t stream, uint64_t index);  // [0, 1)
double random_normal(uint64_t seed, uint64_t stream, uint64_t index);

}  // namespace tsr
