// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors: loads of every rank, swizzle and size of elements, inside and across the tensor's edges; windows
// over pictures; copies to a cluster; stores and stores that add.
#include "micro_kernel.hpp"

namespace tsr::calibration {
namespace {

constexpr dev::Swizzle kSwizzles[] = {dev::Swizzle::none, dev::Swizzle::bytes_32, dev::Swizzle::bytes_64,
                                      dev::Swizzle::bytes_128};

// `row` bytes of 16 in the first dimension, few in the others.
TensorBox box_of(int rank, int element, int row, dev::Swizzle s) {
  TensorBox b;
  b.rank = rank, b.element_bytes = element, b.swizzle = s;
  int64_t stride = element;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    b.box[i] = i == 0 ? row / element : i == 1 ? 12 : 2;
    b.dims[i] = i == 0 ? 2 * row / element - 3 : i == 1 ? 15 : 3;  // the last row of 16 bytes is a part
    b.strides[i] = stride;
    stride *= i == 0 ? 2 * row / element : b.dims[i] + 1;
  }
  return b;
}

int64_t box_words(const TensorBox& b) {
  int64_t n = b.element_bytes;
  for (int i = 0; i < (b.windows ? 2 : b.rank); ++i) n *= b.box[static_cast<size_t>(i)];
  return n / 4;
}

size_t tensor_words(const TensorBox& b) {
  auto last = static_cast<size_t>(b.rank) - 1;
  return static_cast<size_t>(b.strides[last] * b.dims[last]) / 4;
}

// p: how many words come, the coordinates, the taps.
Program load_program(const std::string& call) {
  return program(
      "if (t == 0) { barrier_init(b, 1); barriers_ready(); barrier_expect(b, a.p[0] * 4); }\n"
      "for (int i = t; i < 16384; i += blockDim.x) reinterpret_cast<u32*>(s)[i] = 0; fence_for_copies(); "
      "__syncthreads();\nif (t == 0) " +
      call +
      "\nbarrier_wait(b, 0); for (int i = t; i < a.p[0]; i += blockDim.x) a.out[i] = reinterpret_cast<u32*>(s)[i];");
}

void add_loads(std::vector<MicroKernel>& all) {
  Program p = load_program(
      "{ const int* c = a.p + 1; if (a.p[11] == 2) tensor_load<2>(s, &a.map, {c[0], c[1]}, b);\n"
      "if (a.p[11] == 3) tensor_load<3>(s, &a.map, {c[0], c[1], c[2]}, b);\n"
      "if (a.p[11] == 4) tensor_load<4>(s, &a.map, {c[0], c[1], c[2], c[3]}, b);\n"
      "if (a.p[11] == 5) tensor_load<5>(s, &a.map, {c[0], c[1], c[2], c[3], c[4]}, b); }");
  for (int rank = 2; rank <= 5; ++rank)
    for (dev::Swizzle s : kSwizzles)
      for (int element : {1, 2, 4})
        for (int edge : {0, 1, 2}) {
          if (rank > 2 && element != 2) continue;
          int row = s == dev::Swizzle::none ? 64 : dev::row_bytes(s);
          MicroKernel m;
          m.box = box_of(rank, element, row, s);
          m.name =
              cat("boxes/load/", rank, "d/swizzle", s == dev::Swizzle::none ? 0 : dev::row_bytes(s), "/bytes", element,
                  edge == 0   ? "/inside"
                  : edge == 1 ? "/before"
                              : "/beyond");
          m.program = p;
          m.in = random_words(m.name, tensor_words(*m.box)), m.out.resize(static_cast<size_t>(box_words(*m.box)));
          m.p[0] = static_cast<int>(m.out.size()), m.p[11] = rank;
          // Along the first dimension by whole 16 bytes: a GPU ends the kernel at others.
          for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
            int step = i == 0 ? 16 / element : 1;
            m.p[1 + i] = edge == 0   ? i == 1
                         : edge == 1 ? -(1 + static_cast<int>(i) % 2) * step
                         : i == 0    ? m.box->box[0]
                                     : static_cast<int>(m.box->dims[i]) - m.box->box[i] + 1;
          }
          all.push_back(std::move(m));
        }
}

// Pictures of 5 x 4 pixels with 24 channels; a window of 3 x 3 around every second position.
void add_windows(std::vector<MicroKernel>& all) {
  Program p = load_program("window_load(s, &a.map, {a.p[1], a.p[2], a.p[3], a.p[4]}, {a.p[5], a.p[6]}, b);");
  for (int step : {1, 2})
    for (int tap : {0, 1, 2}) {
      MicroKernel m;
      TensorBox b;
      b.rank = 4, b.swizzle = dev::Swizzle::bytes_32, b.windows = true;
      b.dims = {24, 5, 4, 3}, b.strides = {2, 48, 240, 960}, b.box = {16, 20, 1, 1};
      b.lower = {-1, -1}, b.upper = {-1, -1}, b.steps = {step, step, 1};
      m.box = b;
      m.name = cat("boxes/windows/step", step, "/tap", tap);
      m.program = p;
      m.in = random_words(m.name, 1024), m.out.resize(static_cast<size_t>(box_words(b)));
      m.p = {static_cast<int>(m.out.size()), 8, -1, -1 + step, 0, tap, 2 - tap};
      all.push_back(std::move(m));
    }
}

void add_multicast(std::vector<MicroKernel>& all) {
  MicroKernel m;
  m.name = "boxes/multicast";
  m.box = box_of(2, 2, 128, dev::Swizzle::bytes_128);
  int64_t words = box_words(*m.box);
  m.program = program(
      "if (t == 0) { barrier_init(b, 1); barriers_ready(); barrier_expect(b, a.p[0] * 4); } cluster_sync();\n"
      "if (t == 0 && cluster_rank() == 1) tensor_load_multicast<2>(s, &a.map, {8, 1}, b, 3);\nbarrier_wait(b, 0);"
      "for (int i = t; i < a.p[0]; i += 32) a.out[cluster_rank() * a.p[0] + i] = reinterpret_cast<u32*>(s)[i]; "
      "cluster_sync();");
  m.cluster = 2, m.p[0] = static_cast<int>(words);
  m.in = random_words(m.name, 4096), m.out.resize(static_cast<size_t>(2 * words));
  all.push_back(std::move(m));
}

void add_stores(std::vector<MicroKernel>& all) {
  Program p = program(
      "for (int i = t; i < 8192; i += blockDim.x) reinterpret_cast<u32*>(s)[i] = a.in[i]; fence_for_copies(); "
      "__syncthreads();\nif (t == 0) { const int* c = a.p + 1;\n"
      "if (a.p[0] == 0) tensor_store<2>(&a.map, {c[0], c[1]}, s);\n"
      "if (a.p[0] == 1) tensor_store<3>(&a.map, {c[0], c[1], c[2]}, s);\n"
      "if (a.p[0] == 2) tensor_add<2>(&a.map, {c[0], c[1]}, s);\n"
      "if (a.p[0] == 3) tensor_add<3>(&a.map, {c[0], c[1], c[2]}, s);\nstores_commit(); stores_wait<0>(); }");
  using Adds = TensorBox::Adds;
  for (Adds adds : {Adds::nothing, Adds::f32, Adds::f16, Adds::bf16})
    for (dev::Swizzle s : kSwizzles)
      for (int rank : {2, 3}) {
        int row = s == dev::Swizzle::none ? 64 : dev::row_bytes(s);
        MicroKernel m;
        TensorBox b = box_of(rank, adds == Adds::f32 ? 4 : 2, row, s);
        b.dims[0] = 2 * row / b.element_bytes - 16 / b.element_bytes;  // rows end with 16 bytes
        b.adds = adds;
        const char* what = adds == Adds::nothing ? "store"
                           : adds == Adds::f32   ? "add-f32"
                           : adds == Adds::f16   ? "add-f16"
                                                 : "add-bf16";
        m.name = cat("boxes/", what, "/", rank, "d/swizzle", s == dev::Swizzle::none ? 0 : dev::row_bytes(s));
        m.program = p, m.box = b, m.box_of_out = true;
        m.in.resize(8192), m.out.resize(8192);
        Random r(m.name);
        DType t = adds == Adds::f32 ? DType::f32 : adds == Adds::f16 ? DType::f16 : DType::bf16;
        fill_exact(t, m.in.data(), 0, 32768 * 8 / info(t).bits, r);
        fill_exact(t, m.out.data(), 0, 32768 * 8 / info(t).bits, r);
        m.p = {(adds == Adds::nothing ? 0 : 2) + rank - 2, row / b.element_bytes, 4, 2};
        all.push_back(std::move(m));
      }
}

}  // namespace

std::vector<MicroKernel> boxes() {
  std::vector<MicroKernel> all;
  add_loads(all);
  add_windows(all);
  add_multicast(all);
  add_stores(all);
  return all;
}

}  // namespace tsr::calibration
