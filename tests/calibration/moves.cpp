// SPDX-License-Identifier: Apache-2.0
// Matrices to and from registers, pieces, runs, and words of other blocks.
#include "micro_kernel.hpp"

namespace tsr::calibration {
namespace {

const char* const kFill =
    "for (int i = t; i < 2048; i += blockDim.x) reinterpret_cast<u32*>(s)[i] = a.in[i];\nfence_for_copies(); "
    "__syncthreads();\n";

MicroKernel micro(const std::string& name, const std::string& body, size_t out_words) {
  MicroKernel m;
  m.name = name;
  m.program = program(body);
  m.in = random_words(name, 4096);
  m.out = random_words(name + " before", out_words);
  return m;
}

// p[0]: which; rows in an order that no two lanes share. Loads leave registers, stores the memory.
void add_matrices(std::vector<MicroKernel>& all) {
  std::string body = std::string(kFill) + "char* row = s + (t * 7 + 3) % 32 * 16;\n";
  std::vector<std::string> names;
  for (bool out : {false, true})
    for (int count : {1, 2, 4})
      for (bool turned : {false, true}) {
        std::string call = out ? "matrix_store" : "matrix_load", which = turned ? "<true>" : "";
        body += cat("if (a.p[0] == ", names.size(), ") { u32 r[", count, "]; for (int i = 0; i < ", count,
                    "; ++i) r[i] = a.in[2048 + 4 * t + i]; ",
                    out ? cat(call, which, "(row, r);")
                        : cat(call, which, "(r, row); for (int i = 0; i < ", count, "; ++i) a.out[4 * t + i] = r[i];"),
                    " }\n");
        names.push_back(cat("matrix/", out ? "store" : "load", "/x", count, turned ? "-turned" : ""));
      }
  body +=
      "__syncwarp(); if (a.p[0] >= 6) for (int i = 0; i < 4; ++i) a.out[4 * t + i] = "
      "reinterpret_cast<u32*>(s)[4 * t + i];";
  for (size_t i = 0; i < names.size(); ++i) {
    MicroKernel m = micro(names[i], body, 128);
    m.p[0] = static_cast<int>(i);
    all.push_back(std::move(m));
  }
}

}  // namespace

std::vector<MicroKernel> moves() {
  std::vector<MicroKernel> all;
  add_matrices(all);
  for (int bytes : {4, 8, 16}) {
    all.push_back(micro(cat("pieces/", bytes),
                        cat(kFill, "int from = t % ", bytes + 1, ";\npiece_load<", bytes, ">(s + ", bytes,
                            " * t, a.in + 2048 + ", bytes / 4,
                            " * t, from); pieces_commit(); pieces_wait<0>(); __syncthreads();\n"
                            "for (int i = t; i < 128; i += 32) a.out[i] = reinterpret_cast<u32*>(s)[i];"),
                        128));
  }
  all.push_back(micro("pieces/arrive",
                      "if (t == 0) { barrier_init(b, 32); barriers_ready(); } __syncthreads();\n"
                      "piece_load<16>(s + 16 * t, a.in + 4 * t); pieces_arrive(b); barrier_wait(b, 0);\n"
                      "for (int i = t; i < 128; i += 32) a.out[i] = reinterpret_cast<u32*>(s)[i];",
                      128));
  all.push_back(micro("runs/load",
                      "if (t == 0) { barrier_init(b, 1); barriers_ready(); barrier_expect(b, 512); bulk_load(s, a.in, "
                      "512, b); } __syncthreads(); barrier_wait(b, 0);\n"
                      "for (int i = t; i < 128; i += 32) a.out[i] = reinterpret_cast<u32*>(s)[i];",
                      128));
  all.push_back(micro("runs/store",
                      cat(kFill, "if (t == 0) { bulk_store(a.out + 4, s, 496); stores_commit(); stores_wait<0>(); }"),
                      256));
  for (const char* type : {"float", "f16", "bf16"})
    for (bool special : {false, true}) {
      MicroKernel m = micro(cat("runs/add/", type, special ? "/special" : ""),
                            cat(kFill, "if (t == 0) { bulk_add(reinterpret_cast<", type, "*>(a.out), reinterpret_cast<",
                                type, "*>(s), 8192); stores_commit(); stores_wait<0>(); }"),
                            2048);
      // Normal numbers, or any bits at all: small numbers, infinities, NaN.
      bool wide = std::string(type) == "float";
      if (!special)
        for (Words* words : {&m.in, &m.out})
          for (uint32_t& w : *words) w = (w & (wide ? 0xbfffffff : 0xbfffbfff)) | (wide ? 0x20000000 : 0x20002000);
      all.push_back(std::move(m));
    }
  MicroKernel remote =
      micro("remote/words-and-runs",
            cat(kFill,
                "u32* x = reinterpret_cast<u32*>(s); u32 other = cluster_rank() ^ 1;\n"
                "if (t == 0) { barrier_init(b, 2); barriers_ready(); } cluster_sync();\n"
                "if (t == 0) { barrier_arrive(b); barrier_expect_at(b, other, 64); remote_copy(s + "
                "16384, s + 64 * other, 64, b, "
                "other); }\nremote_store(x + 6000 + t, other, a.in[3000 + t] + cluster_rank());\n"
                "barrier_wait_cluster(b, 0); cluster_sync(); u32* out = a.out + 128 * cluster_rank();\n"
                "if (t < 16) out[t] = x[4096 + t]; out[32 + t] = x[6000 + t]; out[64 + t] = "
                "remote_load(x + 6000 + t, other); "
                "cluster_sync();"),
            256);
  remote.cluster = 2;
  all.push_back(remote);
  return all;
}

}  // namespace tsr::calibration
