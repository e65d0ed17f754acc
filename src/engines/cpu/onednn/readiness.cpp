// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/readiness.hpp"

#include <oneapi/dnnl/dnnl_debug.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/cache_folder.hpp"
#include "base/child_process.hpp"
#include "base/hash.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"
#include "engines/cpu/onednn/families.hpp"
#include "graph/text.hpp"
#include "planner/machine.hpp"
#include "planner/region.hpp"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tsr::onednn {
namespace {

bool has_amx() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 7, kAmxTile = 1u << 24;  // of edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kAmxTile) != 0;
#else
  return false;
#endif
}

std::string user_limit() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

// Each kind of generated code at least once.
constexpr const char* kTrials[] = {
    "x = input f32[2,16,10,10]:nhwc; w = input f32[32,16,3,3]:nhwc; y = conv_fprop x w pad=1,1; output y f32:nhwc",
    "x = input bf16[2,16,10,10]:nhwc; w = input bf16[32,16,3,3]:nhwc; y = conv_fprop x w pad=1,1; output y bf16:nhwc",
    "x = input i8[2,64,10,10]:nhwc; w = input i8[32,64,3,3]:nhwc; y = conv_fprop x w pad=1,1; output y i32:nhwc",
    "dy = input bf16[2,32,10,10]:nhwc; w = input bf16[32,16,3,3]:nhwc; dx = conv_dgrad dy w pad=1,1; "
    "output dx bf16:nhwc",
    "dy = input bf16[2,32,10,10]:nhwc; x = input bf16[2,16,10,10]:nhwc; dw = conv_wgrad dy x pad=1,1 size=3,3; "
    "output dw bf16:nhwc",
    "a = input f32[33,64]; b = input f32[64,48]; c = matmul a b; output c",
    "a = input bf16[33,64]; b = input bf16[64,48]; c = matmul a b; output c bf16",
    "a = input i8[33,64]; b = input i8[64,48]; c = matmul a b; output c i32",
    "x = input f32[5,4,16]; weight = input f32[2176]; y = rnn_fwd x weight mode=lstm hidden=16; output y",
    "x = input bf16[2,16,8,8]:nhwc; y = resample x mode=avg_pool_include window=2,2 stride=2,2; output y bf16:nhwc",
};

// Plans and runs a graph of one operation by oneDNN alone.
void run_graph(const char* text) {
  Graph g = parse_graph(text);
  Region r = make_region(g, GraphIndex(g), {0});
  const FamilyEntry* f = find_family(r);
  if (!f || !f->check(r)) return;  // never asked of it on this machine
  auto step = f->build(r);
  constexpr size_t kAlign = 256;
  auto memory = [](int64_t bytes) {
    auto size = std::max<size_t>(static_cast<size_t>(bytes), 1);
    return std::memset(::operator new (size, std::align_val_t{kAlign}), 0, size);
  };
  std::vector<void*> tensors;
  for (TensorId t = 0; t < g.tensor_count(); ++t) tensors.push_back(memory(g.tensor(t).bytes()));
  step->run({tensors.data(), static_cast<std::byte*>(memory(static_cast<int64_t>(step->workspace_bytes()))), nullptr});
}

// The first graph that does not survive. Answers that may be different next time are not certain.
struct Answer {
  Reason works;
  bool certain;
};
Answer try_graphs() {
  constexpr std::chrono::seconds kLimit{20};  // milliseconds on a quiet machine
  for (const char* graph : kTrials) {
    Trial t = try_in_child(
        [&] {
          set_thread_count(1);  // the threads of a team do not follow into the child
          run_graph(graph);
        },
        kLimit);
    if (t.fate != Fate::survived)
      return {Reason::no("tried in a child process, '", graph, "' ", t.how), t.fate == Fate::died};
  }
  return {Reason::yes(), true};
}

// All that the answer depends on.
std::string key(const std::string& isa) {
  const dnnl_version_t* v = dnnl::version();
  utsname system = {};
  uname(&system);
  return cat("oneDNN ", v->major, ".", v->minor, ".", v->patch, " ", v->hash, ", ", isa, ", ", this_machine().name,
             ", kernel ", system.release);
}

}  // namespace

std::string why_without_amx(int major_version, bool has_amx, std::string_view user) {
  // Version 2.6.3 ends programs with SIGILL at its first AMX instruction; versions from 3 on are known to work.
  if (major_version >= 3 || !has_amx) return "";
  std::string lower(user);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* below : {"sse41", "avx", "avx2", "avx2_vnni", "avx512_mic", "avx512_mic_4ops", "avx512_core",
                            "avx512_core_vnni", "avx512_core_bf16"})
    if (lower == below) return "";
  return cat("AMX is left out, since oneDNN ", major_version, " may end the program with an illegal instruction there");
}

const std::string& hold_isa() {
  static const std::string why = [] {
    std::string limit = why_without_amx(dnnl::version()->major, has_amx(), user_limit());
    if (!limit.empty() && dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16) != dnnl::status::success)
      limit = "AMX cannot be left out, since the program used oneDNN before";
    return limit;
  }();
  return why;
}

const Readiness& readiness() {
  static const Readiness r = [] {
    hold_isa();
    Readiness found;
    constexpr std::string_view kPrefix = "cpu_isa_";
    found.isa = dnnl_cpu_isa2str(static_cast<dnnl_cpu_isa_t>(dnnl::get_effective_cpu_isa()));
    if (found.isa.starts_with(kPrefix)) found.isa.erase(0, kPrefix.size());
    std::string name = key(found.isa);
    auto load = [&](const std::string& text) {
      std::string body = unseal("onednn", text);
      size_t end = body.find('\n');
      if (body.substr(0, end) != name) fail(Status::corrupt_data, "tried with '", body.substr(0, end), "'");
      found.works = end + 1 < body.size() ? Reason::no(body.substr(end + 1)) : Reason::yes();
    };
    recall(cat("onednn-", hex(hash_text(name))), load, [&] {
      Answer a = try_graphs();
      found.works = a.works;
      return a.certain ? seal("onednn", cat(name, "\n", a.works.text())) : "";
    });
    if (!found.works) log_line(2, cat("oneDNN is not used: ", found.works.text()));
    return found;
  }();
  return r;
}

}  // namespace tsr::onednn
