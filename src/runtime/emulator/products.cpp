// SPDX-License-Identifier: Apache-2.0
// The tensor cores of the emulated GPU. A product is computed when the last thread of its warpgroup has asked for it;
// its sums reach the registers of a thread when that waits for them, and are NaN until then. Operands in shared memory
// may not change before.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"
#include "runtime/emulator/tensor_box.hpp"

namespace tsr::emulator {
namespace {

using tsr_emulated::Product;

constexpr int kRows = 64, kThreads = 128;  // of a warpgroup

int bytes_of(Product::Type t) { return t == Product::tf32 ? 4 : t <= Product::bf16 ? 2 : 1; }

double value_of(Product::Type t, const void* p) {
  switch (t) {
    case Product::f16:
      return load<double>(DType::f16, p, 0);
    case Product::bf16:
      return load<double>(DType::bf16, p, 0);
    case Product::tf32: {  // the last 13 bits are not looked at
      uint32_t bits;
      std::memcpy(&bits, p, sizeof bits);
      return std::bit_cast<float>(bits & ~0x1fffu);
    }
    case Product::e4m3:
      return load<double>(DType::e4m3, p, 0);
    case Product::e5m2:
      return load<double>(DType::e5m2, p, 0);
    case Product::s8:
      return load<double>(DType::i8, p, 0);
    default:
      return load<double>(DType::u8, p, 0);
  }
}

// An operand in shared memory, by its descriptor.
class Operand {
 public:
  Operand(BlockState& b, uint64_t descriptor, Product::Type type, int count, int inner, bool across, Here here)
      : block_(b), type_(type), across_(across), here_(here) {
    auto field = [&](int at) { return static_cast<int64_t>(descriptor >> at & 0x3fff) << 4; };
    start_ = field(0), leap_ = field(16), step_ = field(32);
    swizzle_ = static_cast<dev::Swizzle>(descriptor >> 62);
    int64_t pattern = 8 * dev::row_bytes(swizzle_);
    if (swizzle_ != dev::Swizzle::none && (start_ % pattern) / 128 != 0)
      mistake(cat("an operand begins at offset ", start_, ", inside a pattern of ", pattern,
                  " bytes: only the column within a row may differ"),
              here);
    if (across && (bytes_of(type) != 2 || swizzle_ == dev::Swizzle::none))
      mistake("operands across the inner dimension have 16 bits and a swizzle here", here);
    first_ = b.shared_bytes, last_ = 0;
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < inner; ++k) {
        first_ = std::min(first_, place(i, k));
        last_ = std::max(last_, place(i, k) + bytes_of(type));
      }
    if (last_ > b.shared_bytes)
      mistake(cat("an operand reaches to offset ", last_, " of ", b.shared_bytes, " bytes of shared memory"), here);
    if (std::memcmp(fenced_memory(b) + first_, b.block.shared + first_, static_cast<size_t>(last_ - first_)) != 0)
      mistake(cat("a product reads shared memory at offset ", first_,
                  " that ordinary stores wrote, without fence_for_copies"),
              here);
  }
  double operator()(int i, int k) const { return value_of(type_, block_.block.shared + place(i, k)); }
  Reading reading(const Fibre* group, size_t number) const {
    int64_t bytes = last_ - first_;
    return {&block_, first_, bytes, hash_of(block_, first_, bytes), group, number, kThreads, here_};
  }

 private:
  int64_t place(int i, int k) const {
    int64_t at, row = dev::row_bytes(swizzle_);
    if (across_) {
      int64_t run = row / 2;
      at = i / run * leap_ + k / 8 * step_ + k % 8 * row + i % run * 2;
    } else if (swizzle_ == dev::Swizzle::none) {
      int64_t column = int64_t{k} * bytes_of(type_);
      at = i / 8 * step_ + column / 16 * leap_ + i % 8 * 16 + column % 16;
    } else {
      at = i / 8 * step_ + i % 8 * row + int64_t{k} * bytes_of(type_);
    }
    return swizzled(start_ + at, swizzle_);
  }
  BlockState& block_;
  Product::Type type_;
  bool across_;
  int64_t start_, leap_, step_, first_, last_;
  dev::Swizzle swizzle_;
  Here here_;
};

// The left operand in the registers of the warpgroup.
double from_registers(const Product* const* asked, Product::Type type, int row, int k) {
  int each = 4 / bytes_of(type);  // elements of a register
  int quad = k % (4 * each) / each, half = k / (4 * each);
  int thread = row / 16 * 32 + row % 8 * 4 + quad, reg = row % 16 / 8 + 2 * half;
  const auto* r = reinterpret_cast<const char*>(asked[thread]->a_registers + reg);
  return value_of(type, r + k % each * bytes_of(type));
}

// Rounded towards zero once for each instruction. (A GPU also drops what small terms have beyond the largest.)
uint32_t float_sum(double sum) {
  auto f = static_cast<float>(sum);
  if (std::isfinite(f) && std::fabs(static_cast<double>(f)) > std::fabs(sum)) f = std::nextafter(f, 0.0F);
  return std::bit_cast<uint32_t>(f);
}

int64_t clamp_to_int(double v) { return static_cast<int64_t>(v); }

// The `number`-th product of all threads of a warpgroup.
void compute(Fibre* group, size_t number) {
  const Product* asked[kThreads];
  for (int t = 0; t < kThreads; ++t) asked[t] = &group[t].products.list[number].asked;
  const Product& p = *asked[0];
  for (int t = 1; t < kThreads; ++t)
    if (asked[t]->columns != p.columns || asked[t]->b != p.b || asked[t]->a != p.a || asked[t]->add != p.add)
      mistake("threads of a warpgroup ask for different products", asked[t]->here);
  BlockState& block = *group->block;
  Operand b(block, p.b, p.b_type, p.columns, p.inner, p.b_across, p.here);
  std::vector<double> left(static_cast<size_t>(kRows * p.inner));
  if (p.a_registers) {
    for (int i = 0; i < kRows; ++i)
      for (int k = 0; k < p.inner; ++k)
        left[static_cast<size_t>(i * p.inner + k)] = from_registers(asked, p.a_type, i, k);
  } else {
    Operand a(block, p.a, p.a_type, kRows, p.inner, p.a_across, p.here);
    for (int i = 0; i < kRows; ++i)
      for (int k = 0; k < p.inner; ++k) left[static_cast<size_t>(i * p.inner + k)] = a(i, k);
    cluster().readings.push_back(a.reading(group, number));
  }
  cluster().readings.push_back(b.reading(group, number));
  bool whole = p.a_type >= Product::s8;
  for (int j = 0; j < p.columns; ++j) {
    std::vector<double> right(static_cast<size_t>(p.inner));
    for (int k = 0; k < p.inner; ++k) right[static_cast<size_t>(k)] = b(j, k);
    for (int i = 0; i < kRows; ++i) {
      int thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2;
      auto slot = static_cast<size_t>(j / 8 * 4 + i % 16 / 8 * 2 + j % 2);
      uint32_t& sum = group[thread].products.list[number].sums[p.half_sums ? slot / 2 : slot];
      double total = 0;
      for (int k = 0; k < p.inner; ++k)
        total += left[static_cast<size_t>(i * p.inner + k)] * right[static_cast<size_t>(k)];
      if (whole) {
        int64_t before = p.add ? static_cast<int32_t>(sum) : 0;
        sum = static_cast<uint32_t>(before + clamp_to_int(total));
      } else if (p.half_sums) {
        char* half = reinterpret_cast<char*>(&sum) + slot % 2 * 2;
        store(DType::f16, half, 0, total + (p.add ? load<double>(DType::f16, half, 0) : 0));
      } else {
        sum = float_sum(total + (p.add ? std::bit_cast<float>(sum) : 0));
      }
    }
  }
  for (int t = 0; t < kThreads; ++t) group[t].products.list[number].done = true;
  cluster().progress = true;
}

size_t sum_words(const Product& p) { return static_cast<size_t>(p.half_sums ? p.columns / 4 : p.columns / 2); }

void wgmma(const Product& p) {
  Fibre& f = *cluster().here;
  unsigned x = f.thread.index.x;
  if (x / kThreads * kThreads + kThreads > cluster().world.block_dim.x)
    mistake("a product takes a whole warpgroup: four warps, the first of which has a number that is a multiple of four",
            p.here);
  Products& all = f.products;
  Products::One one{p, std::vector<uint32_t>(sum_words(p)), false};
  // A product that goes on with the sums of one under way has them from there.
  auto under_way = std::find_if(all.list.rbegin(), all.list.rend() - static_cast<std::ptrdiff_t>(all.waited),
                                [&](const Products::One& o) { return o.asked.sums == p.sums; });
  bool goes_on = under_way != all.list.rend() - static_cast<std::ptrdiff_t>(all.waited);
  if (!goes_on) {
    if (!all.fenced) mistake("wgmma_fence must stand between other use of the sums and a product", p.here);
    std::memcpy(one.sums.data(), p.sums, one.sums.size() * 4);
  } else {
    while (!under_way->done) yield("the other threads of a product", p.here);
    one.sums = under_way->sums;
  }
  all.list.push_back(std::move(one));
  std::memset(p.sums, 0xff, sum_words(p) * 4);
  Fibre* group = &f - x % kThreads;
  size_t number = all.list.size() - 1;
  for (int t = 0; t < kThreads; ++t)
    if (group[t].products.list.size() <= number) return;
  compute(group, number);
}

void wgmma_fence() { cluster().here->products.fenced = true; }

void wgmma_commit() {
  Products& all = cluster().here->products;
  all.groups.push_back(all.list.size());
}

// Work that everybody has waited for no longer reads; it must have found its operands as they were.
void end_reading(const Product& p, size_t number) {
  const Fibre* group = cluster().here - cluster().here->thread.index.x % kThreads;
  for (auto r = cluster().readings.begin(); r != cluster().readings.end();) {
    if (r->group != group || r->number != number || --r->users > 0) {
      ++r;
      continue;
    }
    if (hash_of(*r->block, r->first, r->bytes) != r->contents)
      mistake(cat("shared memory at offset ", r->first, " was overwritten while the product asked for at ",
                  r->here.file, ":", r->here.line, " might read it"),
              p.here);
    r = cluster().readings.erase(r);
  }
}

void wgmma_wait(int left) {
  Products& all = cluster().here->products;
  all.fenced = false;
  while (all.groups.size() - all.retired_groups > static_cast<size_t>(left)) {
    size_t end = all.groups[all.retired_groups++];
    for (; all.waited < end; ++all.waited) {
      Products::One& o = all.list[all.waited];
      while (!o.done) yield("the other threads of a product", o.asked.here);
      bool last = std::none_of(all.list.begin() + static_cast<std::ptrdiff_t>(all.waited) + 1, all.list.end(),
                               [&](const Products::One& later) { return later.asked.sums == o.asked.sums; });
      if (last) std::memcpy(o.asked.sums, o.sums.data(), o.sums.size() * 4);
      o.sums.clear();
      end_reading(o.asked, all.waited);
    }
  }
}

}  // namespace

void add_products(tsr_emulated::World& w) {
  w.wgmma = wgmma;
  w.wgmma_fence = wgmma_fence;
  w.wgmma_commit = wgmma_commit;
  w.wgmma_wait = wgmma_wait;
}

}  // namespace tsr::emulator
