// SPDX-License-Identifier: Apache-2.0
// The tensor cores of the emulated GPU. A product is computed when the last thread of its warpgroup has asked for it;
// its sums reach the registers of a thread when that waits for them, and are NaN until then. Operands in shared memory
// may not change before.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"
#include "runtime/emulator/numbers.hpp"
#include "runtime/emulator/tensor_box.hpp"

namespace tsr::emulator {
namespace {

using tsr_emulated::Product;

constexpr int kRows = 64, kThreads = 128;  // of a warpgroup

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
    if (across && bytes_of(type) != 2) mistake("operands across the inner dimension have 16 bits", here);
    std::vector<int64_t> chunks;  // of 16 bytes, which lie as they are in every layout
    int along = across ? 1 : 16 / bytes_of(type), beside = across ? 8 : 1;
    for (int i = 0; i < count; i += beside)
      for (int k = 0; k < inner; k += along) chunks.push_back(place(i, k));
    auto [least, most] = std::minmax_element(chunks.begin(), chunks.end());
    first_ = *least, last_ = *most + 16;
    if (last_ > b.shared_bytes)
      mistake(cat("an operand reaches to offset ", last_, " of ", b.shared_bytes, " bytes of shared memory"), here);
    for (int64_t c : chunks) check_came(b, c, 16, "a product", here);
    for (int64_t c : chunks) check_fenced(b, c, 16, "a product", here);
    check_swizzle(chunks);
  }
  Factor operator()(int i, int k) const { return factor(type_, block_.block.shared + place(i, k)); }
  Reading reading(const Fibre* group, size_t number) const {
    int64_t bytes = last_ - first_;
    return {&block_, first_, bytes, hash_of(block_, first_, bytes), group, number, kThreads, here_};
  }

 private:
  int64_t place(int i, int k) const {
    int64_t at, row = dev::row_bytes(swizzle_);
    if (across_ && swizzle_ == dev::Swizzle::none) {  // the two distances have changed places
      at = i / 8 * step_ + k / 8 * leap_ + k % 8 * 16 + i % 8 * 2;
    } else if (across_) {
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
  // Boxes that came with one swizzle cannot be read with another. (Single chunks may be older than what lies there now:
  // stores of equal values leave no trace.)
  void check_swizzle(const std::vector<int64_t>& chunks) const {
    int came = 0;
    for (int64_t c : chunks) {
      int other = block_.swizzles[static_cast<size_t>(c / 16)];
      if (other == 0 || other == static_cast<int>(swizzle_) + 1) return;
      came = other - 1;
    }
    auto text = [](dev::Swizzle s) {
      return s == dev::Swizzle::none ? std::string("no swizzle") : cat("a swizzle of ", dev::row_bytes(s), " bytes");
    };
    mistake(cat("an operand at offset ", first_, " is described with ", text(swizzle_), ", but came in boxes with ",
                text(static_cast<dev::Swizzle>(came))),
            here_);
  }
  BlockState& block_;
  Product::Type type_;
  bool across_;
  int64_t start_, leap_, step_, first_, last_;
  dev::Swizzle swizzle_;
  Here here_;
};

// The left operand in the registers of the warpgroup.
Factor from_registers(const Fibre* group, size_t number, Product::Type type, int row, int k) {
  int each = 4 / bytes_of(type);  // elements of a register
  int quad = k % (4 * each) / each, half = k / (4 * each);
  int thread = row / 16 * 32 + row % 8 * 4 + quad, reg = row % 16 / 8 + 2 * half;
  const auto* r = reinterpret_cast<const char*>(group[thread].products.list[number].a.data() + reg);
  return factor(type, r + k % each * bytes_of(type));
}

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
  std::vector<Factor> left(static_cast<size_t>(kRows * p.inner));
  if (p.a_registers) {
    for (int i = 0; i < kRows; ++i)
      for (int k = 0; k < p.inner; ++k)
        left[static_cast<size_t>(i * p.inner + k)] = from_registers(group, number, p.a_type, i, k);
  } else {
    Operand a(block, p.a, p.a_type, kRows, p.inner, p.a_across, p.here);
    for (int i = 0; i < kRows; ++i)
      for (int k = 0; k < p.inner; ++k) left[static_cast<size_t>(i * p.inner + k)] = a(i, k);
    cluster().readings.push_back(a.reading(group, number));
  }
  cluster().readings.push_back(b.reading(group, number));
  for (int j = 0; j < p.columns; ++j) {
    std::vector<Factor> right(static_cast<size_t>(p.inner));
    for (int k = 0; k < p.inner; ++k) right[static_cast<size_t>(k)] = b(j, k);
    for (int i = 0; i < kRows; ++i) {
      int thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, slot = j / 8 * 4 + i % 16 / 8 * 2 + j % 2;
      take_sum(group[thread].products.list[number].sums.data(), slot,
               {&left[static_cast<size_t>(i * p.inner)], right.data(), p.inner, p.a_type, p.b_type, false}, p.add,
               p.half_sums);
    }
  }
  for (int t = 0; t < kThreads; ++t) group[t].products.list[number].done = true;
  cluster().progress = true;
}

size_t sum_words(const Product& p) { return static_cast<size_t>(p.half_sums ? p.columns / 4 : p.columns / 2); }

// What stands in the registers of sums that are under way: NaN of the kind that any arithmetic turns into the other
// kind, so that it leaves a trace.
uint32_t unknown_sum(const Product& p) { return p.half_sums ? 0xfdfffdff : 0xffbfffff; }

// Nobody may touch these registers.
void check_untouched(const Products::One& o, Here where) {
  const auto* sums = static_cast<const uint32_t*>(o.asked.sums);
  if (std::any_of(sums, sums + sum_words(o.asked), [&](uint32_t w) { return w != unknown_sum(o.asked); }))
    mistake(cat("sums of the product asked for at ", o.asked.here.file, ":", o.asked.here.line,
                " were written before they were waited for"),
            where);
}

void wgmma(const Product& p) {
  Fibre& f = *cluster().here;
  unsigned x = f.thread.index.x;
  if (x / kThreads * kThreads + kThreads > cluster().world.block_dim.x)
    mistake("a product takes a whole warpgroup: four warps, the first of which has a number that is a multiple of four",
            p.here);
  Products& all = f.products;
  // A product that goes on with the sums of one under way has them from there. (Nothing is owned here while others run:
  // they may make a mistake, and then this thread never ends.)
  auto end = all.list.rend() - static_cast<std::ptrdiff_t>(all.waited);
  auto under_way = std::find_if(all.list.rbegin(), end, [&](const Products::One& o) { return o.asked.sums == p.sums; });
  bool goes_on = under_way != end;
  while (goes_on && !under_way->done) yield("the other threads of a product", p.here);
  if (!goes_on && !all.fenced) mistake("wgmma_fence must stand between other use of the sums and a product", p.here);
  if (goes_on) check_untouched(*under_way, p.here);
  Products::One one{p, goes_on ? under_way->sums : std::vector<uint32_t>(sum_words(p)), {}, false};
  if (!goes_on) std::memcpy(one.sums.data(), p.sums, one.sums.size() * 4);
  if (p.a_registers) std::memcpy(one.a.data(), p.a_registers, sizeof one.a);
  all.list.push_back(std::move(one));
  std::fill_n(static_cast<uint32_t*>(p.sums), sum_words(p), unknown_sum(p));
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
      if (last) {
        check_untouched(o, o.asked.here);
        std::memcpy(o.asked.sums, o.sums.data(), o.sums.size() * 4);
      }
      o.sums.clear();
      end_reading(o.asked, all.waited);
    }
  }
}

}  // namespace

void add_products(tsr_emulated::World& w) {
  w.check_operand = [](const void* start, unsigned leap, unsigned step, Here here) {
    int64_t at = shared_place(*cluster().here->block, start, 16, "an operand", here);
    if (at % 16 != 0 || leap % 16 != 0 || step % 16 != 0)
      mistake(cat("an operand at offset ", at, " with distances of ", leap, " and ", step,
                  " bytes: all must be multiples of 16"),
              here);
  };
  w.wgmma = wgmma;
  w.wgmma_fence = wgmma_fence;
  w.wgmma_commit = wgmma_commit;
  w.wgmma_wait = wgmma_wait;
}

}  // namespace tsr::emulator
